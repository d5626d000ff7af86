//! Reads texts that are nearly flows for as many seconds as it is told, and ends with the first that breaks a rule: the
//! reader never panics, is never slow, says where it stops, and reads a printed flow as the same flow.
//!
//!     cargo run --release --package callbook-domain --example fuzz_flow -- 600
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a tool that prints what it found")]

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use callbook_domain::flow::{Flow, MAX_STEPS};

/// Where it begins. What shows something new is added and changed further.
const SEEDS: [&str; 9] = [
    "LAST_REPLY_OF: $1\n> SEND_BY_CHANNEL: blooio|$2|$PREV",
    "A: $1 => FIRST > KV_PUT: last_1|$FIRST",
    "{ NOW: | TWILIO: [\"$1\", {\"n\": 1.10}] => T } => BOTH > SHA256: $BOTH",
    "?: A: $1 > UPPER: ok => X | LOWER: [\"a|b\"] => X > NEXT: $X",
    "A: => X > JSON: $.a[?(@.b > 1 | 2)] => Y > EACH: B.c: $PREV|$1 > MERGE: a=$X, b.c=$Y, d=$PREV, e=$2+",
    "A: {\"a\":[1,\"x\\\"|>\",{\"b\":\">\"}]}|[a|b > c]|\"q|>=> r\"|a\\|b > B:x",
    "A: ${name} ${+rest} $$5.00 $.id $ $-|$10",
    "A: é\u{2028}ü",
    "A:",
];
/// What the grammar is made of.
const WORDS: [&str; 34] = [
    "A",
    "B.c",
    ":",
    ">",
    " > ",
    "|",
    " | ",
    "{",
    "}",
    "{ ",
    " }",
    "?:",
    "=>",
    " => X",
    "$X",
    "$PREV",
    "$1",
    "$999",
    "$2+",
    "${n}",
    "$$",
    "$",
    "\\|",
    "\\",
    "\"",
    "[",
    "]",
    "[\"a\",\"$1\"]",
    "JSON: $.a",
    "EACH: A: ",
    "MERGE: a=$1",
    ",",
    "é",
    "\n",
];
/// The longest text; longer ones say nothing new.
const LONGEST: usize = 4 * 1024;
/// How long one text may take to read. A machine that is busy with other things may take longer once, not each time.
const PATIENCE: Duration = Duration::from_millis(100);
/// How often a text may be read until it is called slow.
const TRIES: usize = 5;

fn main() {
    let seconds = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(10);
    let (began, mut chance) = (Instant::now(), Chance(getrandom::u64().unwrap()));
    println!("seed {}", chance.0);
    let mut corpus: Vec<String> = SEEDS.iter().map(ToString::to_string).collect();
    let (mut known, mut read, mut taken) = (BTreeSet::new(), 0_u64, 0_u64);
    while began.elapsed() < Duration::from_secs(seconds) {
        let mut text = corpus[chance.below(corpus.len())].clone();
        for _ in 0..=chance.below(6) {
            change(&mut text, &corpus, &mut chance);
        }
        let class = check(&text);
        read += 1;
        taken += u64::from(class.starts_with("parts"));
        if known.insert(class) {
            corpus.push(text);
        }
    }
    println!("{read} texts in {seconds} s, {taken} of them flows, {} classes of outcome; every rule held", known.len());
}

/// Holds the text against the rules. Gives a class of outcomes: texts of one class show the same of the reader.
fn check(text: &str) -> String {
    let is_quick = |_| {
        let began = Instant::now();
        let _ = std::hint::black_box(Flow::parse(text));
        began.elapsed() < PATIENCE
    };
    assert!((0..TRIES).any(is_quick), "slow: {text:?}");
    match Flow::parse(text) {
        Ok(flow) => {
            let printed = flow.to_string();
            assert_eq!(Flow::parse(&printed).as_ref(), Ok(&flow), "{text:?} is printed as {printed:?}");
            assert!(flow.steps().count() <= MAX_STEPS, "{text:?}");
            let (parts, steps, used) = (flow.parts.len().min(8), flow.steps().count().min(16), flow.slot_use());
            format!("parts {parts} steps {steps} rest {} named {}", used.rest_from.is_some(), used.named.len().min(3))
        }
        Err(error) => {
            assert!(text.is_char_boundary(error.at), "{text:?}: {error}");
            let words = error.message.split('`').step_by(2);
            words.collect::<String>().chars().filter(|c| !c.is_ascii_digit()).collect()
        }
    }
}

/// One change: a word comes in, a piece goes, is doubled or is taken from another text.
fn change(text: &mut String, corpus: &[String], chance: &mut Chance) {
    let (from, to) = chance.range(text);
    match chance.below(4) {
        0 => text.insert_str(from, WORDS[chance.below(WORDS.len())]),
        1 => text.replace_range(from..to, ""),
        2 => {
            let piece = text[from..to].repeat(1 + chance.below(8));
            text.insert_str(from, &piece);
        }
        _ => {
            let other = &corpus[chance.below(corpus.len())];
            let (first, last) = chance.range(other);
            text.replace_range(from..to, &other[first..last]);
        }
    }
    text.truncate(text.floor_char_boundary(LONGEST));
}

/// Numbers by xorshift: the same seed gives the same run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(bound).unwrap()).unwrap()
    }

    /// Two places between characters, in order.
    fn range(&mut self, text: &str) -> (usize, usize) {
        let places = [self.below(text.len() + 1), self.below(text.len() + 1)].map(|at| text.floor_char_boundary(at));
        (places[0].min(places[1]), places[0].max(places[1]))
    }
}
