//! Typing errors: one letter added, lost, changed, or two neighbours swapped, in words of a to z.

use std::ops::RangeInclusive;

/// Lengths, in letters, of words that may be what somebody meant, and of words that are corrected. Shorter words are
/// one letter away from too many others.
const SPELT: RangeInclusive<usize> = 4..=24;
const CORRECTED: RangeInclusive<usize> = 5..=24;

/// Whether the word may be what somebody meant.
pub(crate) fn is_spelt(word: &str) -> bool {
    SPELT.contains(&word.len()) && is_plain(word)
}

/// Whether the word is looked up as a typing error where it is unknown.
pub(crate) fn is_corrected(word: &str) -> bool {
    CORRECTED.contains(&word.len()) && is_plain(word)
}

fn is_plain(word: &str) -> bool {
    word.bytes().all(|b| b.is_ascii_lowercase())
}

/// The word, and the word without each of its letters. Two words that are one typing error apart have one in common.
pub(crate) fn misspellings(word: &str, mut each: impl FnMut(&[u8])) {
    each(word.as_bytes());
    let mut text = [0; *SPELT.end()];
    for left_out in 0..word.len() {
        let rest = word.bytes().enumerate().filter(|(at, _)| *at != left_out).map(|(_, b)| b);
        text.iter_mut().zip(rest).for_each(|(to, from)| *to = from);
        each(&text[..word.len() - 1]);
    }
}

/// Whether one typing error, or none, makes one word of the other.
pub(crate) fn is_one_off(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let same = short.iter().zip(long).take_while(|(x, y)| x == y).count();
    if short.len() < long.len() {
        return short.len() + 1 == long.len() && short[same..] == long[same + 1..];
    }
    match (&short[same..], &long[same..]) {
        ([], []) => true,
        ([_, rest @ ..], [_, other @ ..]) if rest == other => true,
        ([a, b, rest @ ..], [c, d, other @ ..]) => a == d && b == c && rest == other,
        (_, _) => false,
    }
}
