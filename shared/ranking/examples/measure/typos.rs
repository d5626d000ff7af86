//! What one typing error a question costs.

use callbook_domain::key::Key;

use crate::random::Random;
use crate::sets::{Asked, Set};

/// nDCG@10 without and with an error, in percent.
pub fn measure(sets: &[Set]) {
    println!("{:11}{:>9}{:>9}{:>7}    nDCG@10", "typos", "without", "with", "cost");
    let (mut without_mean, mut with_mean) = (0.0, 0.0);
    for set in sets {
        let mut random = Random(12345);
        let without = mean(set, str::to_owned);
        let with = mean(set, |text| misspelt(text, &mut random));
        println!("{:11}{without:9.2}{with:9.2}{:7.2}", set.name, without - with);
        without_mean += without / sets.len() as f64;
        with_mean += with / sets.len() as f64;
    }
    println!("{:11}{without_mean:9.2}{with_mean:9.2}{:7.2}", "mean", without_mean - with_mean);
}

fn mean(set: &Set, mut spelt: impl FnMut(&str) -> String) -> f64 {
    let gains = set.asked.iter().map(|asked| {
        let ranked = set.ask(&spelt(&asked.text), false, 10);
        let keys: Vec<&Key> = ranked.hits.iter().map(|hit| &hit.key).collect();
        ndcg(&keys, asked)
    });
    100.0 * gains.sum::<f64>() / set.asked.len() as f64
}

fn ndcg(keys: &[&Key], asked: &Asked) -> f64 {
    let gain = |at: usize| 1.0 / (at as f64 + 2.0).log2();
    let ideal: f64 = (0..asked.gold.len().min(10)).map(gain).sum();
    (0..).zip(keys).filter(|(_, key)| asked.gold.contains(key)).map(|(at, _)| gain(at)).sum::<f64>() / ideal
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
