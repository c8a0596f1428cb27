//! The program `duo`; what it does is in the library of the same name.

fn main() -> std::process::ExitCode {
    duo::main()
}
