//! spike
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let tokens: Vec<u32> = std::fs::read_to_string(&a[2]).unwrap().split_whitespace().map(|x| x.parse().unwrap()).collect();
    duologue_local::spike(a[1].as_ref(), tokens, a[3].parse().unwrap());
}
