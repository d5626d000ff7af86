//! A question, read.

use std::collections::HashSet;
use std::sync::Arc;

use hashbrown::HashMap;

use crate::encoder::{self, Meaning};
use crate::index::Index;
use crate::mention::Token;
use crate::row::{Field, Held, Row};
use crate::score::{self, Overlap};
use crate::words::{MAX_TEXT, is_function_word, split, stem};

/// How many different words of a question count, the first ones. More are not a question, and would cost everybody
/// time.
const MAX_WORDS: usize = 128;

/// What ranking needs to know of a question.
pub(crate) struct Reading {
    /// All its words in order.
    pub(crate) tokens: Vec<Token>,
    /// Its different words in order, function words left out.
    pub(crate) asked: Vec<Asked>,
    /// What it means as a whole, if any of its words says something.
    pub(crate) meaning: Option<Meaning>,
    /// Place in `asked` by term, sorted.
    places: Vec<(u32, usize)>,
    /// A bit for the low end of every term in `places`: nearly every word of a row is told apart by it alone.
    sieve: u64,
    /// The idf of all its words together, those too that no row has.
    total: f32,
    /// What ranking takes from the size of the book: the idf that all rows share, and that of a word without a row.
    base: f32,
    pub(crate) rarest: f32,
}

/// One word of a question.
pub(crate) struct Asked {
    pub(crate) word: String,
    stem: String,
    /// Its number, if any row has it.
    pub(crate) term: Option<u32>,
    /// How telling it is: idf, less for a corrected word and for an argument's value.
    pub(crate) telling: f32,
    share: f32,
    /// The word of the book that it was taken for.
    pub(crate) taken_for: Option<Arc<str>>,
}

impl Reading {
    pub(crate) fn of(text: &str, index: &Index) -> Reading {
        let text = &text[..text.floor_char_boundary(MAX_TEXT)];
        let base = score::idf_base(index.len());
        let mut reading = Reading {
            tokens: Vec::new(),
            asked: Vec::new(),
            meaning: None,
            places: Vec::new(),
            sieve: 0,
            total: 0.0,
            base,
            rarest: base - score::idf_part(0),
        };
        let mut seen = HashMap::new();
        for (piece, is_value) in pieces(text) {
            let mut joined = false;
            let share = if is_value { score::VALUE } else { 1.0 };
            split(piece, |word, _| {
                reading.tokens.push(Token { word: word.to_owned(), joined });
                joined = true;
                if !is_function_word(word) {
                    reading.note(word, share, index, &mut seen);
                }
            });
        }
        reading.weigh(index);
        reading.meaning = reading.means();
        reading
    }

    fn note(&mut self, word: &str, share: f32, index: &Index, seen: &mut HashMap<String, usize>) {
        let stem = stem(word);
        if let Some(place) = seen.get(stem.as_ref()) {
            let before = &mut self.asked[*place].share;
            *before = before.max(share);
            return;
        }
        if self.asked.len() == MAX_WORDS {
            return;
        }
        let known = index.vocabulary.term(word);
        if known.is_none() && word.bytes().all(|b| b.is_ascii_digit()) {
            // A number that no row speaks of is an argument's value and says nothing about which row is meant.
            return;
        }
        let corrected = if known.is_none() { index.vocabulary.correct(word) } else { None };
        let term = known.or(corrected.as_ref().map(|(_, term)| *term));
        let share = if corrected.is_some() { share * score::CORRECTED } else { share };
        seen.insert(stem.clone().into_owned(), self.asked.len());
        self.asked.push(Asked {
            word: word.to_owned(),
            stem: stem.into_owned(),
            term,
            telling: 0.0,
            share,
            taken_for: corrected.map(|(word, _)| word),
        });
    }

    /// Gives every word its weight; a misspelt word that the question also has spelt well counts once.
    fn weigh(&mut self, index: &Index) {
        for (place, asked) in self.asked.iter_mut().enumerate() {
            if let Some(term) = asked.term {
                match self.places.iter().find(|(other, _)| *other == term) {
                    Some(_) => asked.term = None,
                    None => self.places.push((term, place)),
                }
            }
        }
        // A word dropped above is one that stands elsewhere in the question and is not missing.
        for asked in &mut self.asked {
            let idf = match asked.term {
                Some(term) => self.base - index.vocabulary.idf_part(term),
                None if asked.taken_for.is_some() => 0.0,
                None => self.rarest,
            };
            asked.telling = idf * asked.share;
            self.total += asked.telling;
        }
        self.places.sort_unstable();
        self.sieve = self.places.iter().fold(0, |bits, (term, _)| bits | 1 << (term % 64));
    }

    /// What the words mean together, typing errors mended; grammar tells less than the rest. A word that the book does
    /// not have may be one that the encoder knows but for an error.
    fn means(&self) -> Option<Meaning> {
        let mended = |word: &str| {
            let asked = self.asked.iter().find(|asked| asked.word == word)?;
            let unknown = asked.term.is_none() && asked.taken_for.is_none();
            asked.taken_for.as_deref().or_else(|| encoder::correct(word).filter(|_| unknown))
        };
        let words = self.tokens.iter().take(2 * MAX_WORDS).map(|token| {
            let weight = if is_function_word(&token.word) { score::GRAMMAR } else { 1.0 };
            (mended(&token.word).unwrap_or(&token.word), weight)
        });
        Meaning::of(words, false)
    }

    /// The question's word that is this word of a row.
    pub(crate) fn asks_for(&self, held: Held) -> Option<&Asked> {
        if !self.may_ask_for(held) {
            return None;
        }
        let at = self.places.binary_search_by_key(&held.term(), |(term, _)| *term).ok()?;
        self.asked.get(self.places[at].1)
    }

    fn may_ask_for(&self, held: Held) -> bool {
        self.sieve & 1 << (held.term() % 64) != 0
    }

    /// How the question and a row meet.
    pub(crate) fn overlap(&self, row: &Row, index: &Index) -> Overlap {
        const NAMES: u8 = Field::Key.bit() | Field::Category.bit();
        let (mut weight, mut question, mut words) = (0.0, 0.0, 0.0);
        let (mut key, mut category) = (Share::default(), Share::default());
        // most words of most rows are neither in the question nor in a name
        for held in row.words.iter().filter(|held| self.may_ask_for(**held) || held.is_in_any(NAMES)) {
            let asked = self.asks_for(*held);
            if let Some(asked) = asked {
                weight += asked.telling * score::from_step(held.weight());
                question += asked.telling;
                words += asked.share;
            }
            for (share, field) in [(&mut key, Field::Key), (&mut category, Field::Category)] {
                if held.is_in(field) {
                    share.add(self.base - index.vocabulary.idf_part(held.term()), asked.is_some());
                }
            }
        }
        Overlap {
            weight: weight / row.norm,
            question_share: if self.total > 0.0 { question / self.total } else { 0.0 },
            key_share: key.value(),
            category_share: category.value(),
            words,
            nearness: row.nearness(self.meaning.as_ref()),
        }
    }

    /// Every word of the question without its ending, corrected words too, and its function words as they are.
    pub(crate) fn stems<'a>(&'a self, index: &'a Index) -> HashSet<&'a str> {
        let function_words = self.tokens.iter().map(|t| t.word.as_str()).filter(|w| is_function_word(w));
        let asked = self.asked.iter().map(|a| a.stem.as_str());
        let terms = self.asked.iter().filter_map(|a| a.term).map(|t| index.vocabulary.stem_of(t));
        function_words.chain(asked).chain(terms).collect()
    }
}

/// A part of a whole.
#[derive(Default)]
struct Share {
    part: f32,
    whole: f32,
}

impl Share {
    fn add(&mut self, amount: f32, in_part: bool) {
        self.whole += amount;
        self.part += if in_part { amount } else { 0.0 };
    }

    fn value(&self) -> f32 {
        if self.whole > 0.0 { self.part / self.whole } else { 0.0 }
    }
}

/// The pieces of a text between spaces, and whether each looks like an argument's value.
fn pieces(text: &str) -> Vec<(&str, bool)> {
    let mut pieces: Vec<(&str, bool)> = text.split_whitespace().map(|piece| (piece, is_value(piece))).collect();
    let mut at = 0;
    while at < pieces.len() {
        let Some(mark) = opening(pieces[at].0) else {
            at += 1;
            continue;
        };
        let closed = pieces[at..].iter().position(|(piece, _)| closes(piece, mark));
        let end = closed.map_or(at, |after| at + after);
        pieces[at..=end].iter_mut().for_each(|(_, value)| *value |= closed.is_some());
        at = end + 1;
    }
    pieces
}

/// The mark that closes a quotation that begins with this piece.
fn opening(piece: &str) -> Option<char> {
    match piece.trim_start_matches(['(', '[']).chars().next()? {
        mark @ ('"' | '\'' | '`') => Some(mark),
        '\u{201c}' => Some('\u{201d}'),
        '\u{2018}' => Some('\u{2019}'),
        _ => None,
    }
}

fn closes(piece: &str, mark: char) -> bool {
    let piece = piece.trim_end_matches(['.', ',', '?', '!', ';', ':', ')', ']']);
    piece.chars().count() > 1 && piece.ends_with(mark)
}

/// Whether the piece is a number, a path, an address, a variable or a pattern.
fn is_value(piece: &str) -> bool {
    let inner = piece.trim_end_matches(['.', ',', '?', '!', ';', ':', ')']);
    inner.contains(['/', '@', '$', '*', '\\', '.']) || inner.bytes().any(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotations_paths_and_numbers_are_values() {
        let values = |text| pieces(text).into_iter().filter(|(_, value)| *value).map(|(p, _)| p).collect::<Vec<_>>();
        assert_eq!(
            values("find \"the old man\" in /var/log by a@b.c, 12 times"),
            ["\"the", "old", "man\"", "/var/log", "a@b.c,", "12"]
        );
        assert_eq!(values("it's the 'quoted' one. don't \"stop"), ["'quoted'"]);
        assert_eq!(values("\" \" '"), [""; 0]);
    }
}
