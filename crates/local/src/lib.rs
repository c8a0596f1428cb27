//! A language model inside the process.
mod gguf;
mod half;
mod kernel;
mod pack;
mod net;
mod tokenizer;
pub use gguf::GgufError;
/// spike
pub fn spike(path: &std::path::Path, tokens: Vec<u32>, generate: usize) {
    let t = std::time::Instant::now();
    let net = net::Net::load(gguf::Gguf::open(path).unwrap(), 2).unwrap();
    println!("load {:?} {}", t.elapsed(), kernel::instructions());
    let mut ws = net::Workspace::default();
    let mut seq = net::Sequence::default();
    let t = std::time::Instant::now();
    let mut logits = vec![];
    let n = tokens.len();
    for (i, c) in tokens.chunks(128).enumerate() {
        let last = (i + 1) * 128 >= n;
        logits = net.forward(&mut ws, &mut [net::Chunk { sequence: &mut seq, tokens: c.to_vec(), scores: last }], &|| false).unwrap();
    }
    let e = t.elapsed().as_secs_f64();
    println!("prompt {} tokens {:.1} t/s", n, n as f64 / e);
    let t = std::time::Instant::now();
    let mut out = vec![];
    for _ in 0..generate {
        let l = &logits[0];
        let best = l.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).unwrap();
        if out.is_empty() {
            let mut v: Vec<_> = l.iter().copied().enumerate().collect();
            v.sort_by(|a, b| b.1.total_cmp(&a.1));
            println!("{:?}", &v[..6]);
        }
        out.push(best.0 as u32);
        logits = net.forward(&mut ws, &mut [net::Chunk { sequence: &mut seq, tokens: vec![best.0 as u32], scores: true }], &|| false).unwrap();
    }
    let e = t.elapsed().as_secs_f64();
    println!("gen {:.1} t/s {:?}", generate as f64 / e, out);
    let s = std::fs::read_to_string("/proc/self/status").unwrap();
    println!("{}", s.lines().find(|l| l.starts_with("VmHWM")).unwrap());
}
/// spike
pub fn spike_tokens(path: &std::path::Path, input: &std::path::Path) {
    let mut f = gguf::Gguf::open(path).unwrap();
    let t = tokenizer::Tokenizer::load(&mut f).unwrap();
    let cases: Vec<(String, Vec<u32>)> = serde_json::from_str(&std::fs::read_to_string(input).unwrap()).unwrap();
    let mut bad = 0;
    let mut n = 0;
    for (text, want) in &cases {
        let got = t.encode(text);
        n += want.len();
        let bytes: Vec<u8> = got.iter().flat_map(|x| t.bytes(*x)).copied().collect();
        assert_eq!(bytes, text.as_bytes());
        if &got != want { bad += 1; if bad < 6 { println!("{:?}\n {:?}\n {:?}", text.chars().take(100).collect::<String>(), &got[..got.len().min(30)], &want[..want.len().min(30)]); } }
    }
    println!("{} cases {} tokens, {} differ", cases.len(), n, bad);
}
