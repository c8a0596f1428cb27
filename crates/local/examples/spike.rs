//! spike
fn main() {
    let a: Vec<String> = std::env::args().collect();
    if a[3] == "tok" { return duologue_local::spike_tokens(a[1].as_ref(), a[2].as_ref()); }
    let tokens: Vec<u32> = std::fs::read_to_string(&a[2]).unwrap().split_whitespace().map(|x| x.parse().unwrap()).collect();
    duologue_local::spike(a[1].as_ref(), tokens, a[3].parse().unwrap());
}
