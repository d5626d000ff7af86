//! How well the questions of a set are answered, and how fast.

use std::fmt;
use std::time::{Duration, Instant};

use callbook_domain::key::Key;

use crate::sets::Set;

/// Percent, but for the latencies.
#[derive(Default)]
pub struct Figures {
    hit_1: f64,
    recall_5: f64,
    recall_12: f64,
    ndcg_10: f64,
    mrr: f64,
    empty: f64,
    p50: Duration,
    p99: Duration,
}

pub fn measure(set: &Set, abstain: bool, typo: bool) -> Figures {
    let mut figures = Figures::default();
    let mut times = Vec::new();
    let mut random = Random(12345);
    for asked in &set.asked {
        let text = if typo { misspelt(&asked.text, &mut random) } else { asked.text.clone() };
        let start = Instant::now();
        let ranked = set.ask(&text, abstain, 100);
        times.push(start.elapsed());
        let keys: Vec<&Key> = ranked.hits.iter().map(|hit| &hit.key).collect();
        figures.count(&keys, &asked.gold, 100.0 / set.asked.len() as f64);
    }
    times.sort_unstable();
    figures.p50 = percentile(&times, 50);
    figures.p99 = percentile(&times, 99);
    figures
}

pub fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    sorted.get(sorted.len() * percent / 100).copied().unwrap_or_default()
}

impl Figures {
    pub const HEADER: &str = "             hit@1    R@5   R@12  nDCG@10    MRR  empty      p50      p99";

    fn count(&mut self, keys: &[&Key], gold: &[Key], share: f64) {
        let places: Vec<usize> = (0..).zip(keys).filter(|(_, key)| gold.contains(key)).map(|(at, _)| at).collect();
        let within = |n| places.iter().filter(|at| **at < n).count() as f64 / gold.len() as f64;
        let gain = |at: usize| 1.0 / (at as f64 + 2.0).log2();
        let ideal: f64 = (0..gold.len().min(10)).map(gain).sum();
        self.hit_1 += share * f64::from(u8::from(places.first() == Some(&0)));
        self.recall_5 += share * within(5);
        self.recall_12 += share * within(12);
        self.ndcg_10 += share * places.iter().filter(|at| **at < 10).map(|at| gain(*at)).sum::<f64>() / ideal;
        self.mrr += share * places.first().map_or(0.0, |at| 1.0 / (*at as f64 + 1.0));
        self.empty += share * f64::from(u8::from(keys.is_empty()));
    }

    pub fn mean(all: &[Figures]) -> Figures {
        let mean = |of: fn(&Figures) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
        Figures {
            hit_1: mean(|f| f.hit_1),
            recall_5: mean(|f| f.recall_5),
            recall_12: mean(|f| f.recall_12),
            ndcg_10: mean(|f| f.ndcg_10),
            mrr: mean(|f| f.mrr),
            empty: mean(|f| f.empty),
            p50: Duration::from_secs_f64(mean(|f| f.p50.as_secs_f64())),
            p99: Duration::from_secs_f64(mean(|f| f.p99.as_secs_f64())),
        }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figures { hit_1, recall_5, recall_12, ndcg_10, mrr, empty, p50, p99 } = self;
        write!(f, "{hit_1:7.1}{recall_5:7.1}{recall_12:7.1}{ndcg_10:9.2}{mrr:7.1}{empty:7.1}")?;
        write!(f, "{:7}µs{:7}µs", p50.as_micros(), p99.as_micros())
    }
}

/// A small generator, the same on every run.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound.max(1) as u64).expect("below a usize")
    }
}

/// The text with one typing error inside of one word of five letters or more.
fn misspelt(text: &str, random: &mut Random) -> String {
    let mut letters: Vec<char> = text.chars().collect();
    let words: Vec<(usize, usize)> = long_words(&letters);
    if words.is_empty() {
        return text.to_owned();
    }
    let (from, to) = words[random.below(words.len())];
    let at = from + 1 + random.below(to - from - 2);
    let letter = char::from(b'a' + u8::try_from(random.below(26)).expect("a letter"));
    match random.below(4) {
        0 => drop(letters.remove(at)),
        1 => letters.insert(at, letter),
        2 => letters.swap(at, at + 1),
        _ => letters[at] = letter,
    }
    letters.into_iter().collect()
}

fn long_words(letters: &[char]) -> Vec<(usize, usize)> {
    let mut words = Vec::new();
    let mut from = 0;
    for at in 0..=letters.len() {
        if !letters.get(at).is_some_and(char::is_ascii_alphabetic) {
            if at - from >= 5 {
                words.push((from, at));
            }
            from = at + 1;
        }
    }
    words
}
