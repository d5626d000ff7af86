#![allow(unreachable_pub, missing_docs, dead_code, clippy::all)]
#[path = "measure/sets.rs"]
mod sets;
use std::path::PathBuf;
fn main() {
    let dir = std::env::args().nth(1).unwrap();
    let s = sets::Set::load(&PathBuf::from(dir), "clinc150").unwrap();
    for l in std::io::stdin().lines() {
        let l = l.unwrap();
        let r = s.ask(&l, true, 14);
        println!("== {l} [{}]", r.total);
        for h in r.hits {
            println!("   {:.3} {} {:?}", h.score, h.key, h.why)
        }
    }
}
