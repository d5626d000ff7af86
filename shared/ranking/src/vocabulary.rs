//! The words of the book: which rows hold which, how rare each is, and how they are misspelt.

use std::sync::Arc;

use crate::score::idf_part;
use crate::sharing::{Lookup, Pages};
use crate::typo;
use crate::words::stem;

/// Every word of the book as it is written (*surface*) and without its ending (*term*). What no row holds any more is
/// forgotten at once and its number used again, so that nothing depends on the order of writes.
#[derive(Clone)]
pub(crate) struct Vocabulary {
    surfaces: Pages<Surface>,
    terms: Pages<Term>,
    by_word: Lookup,
    by_stem: Lookup,
    /// Each spelled surface under its own text and under its text with one letter left out.
    by_misspelling: Lookup,
    free_surfaces: Vec<u32>,
    free_terms: Vec<u32>,
}

#[derive(Clone)]
struct Surface {
    word: Arc<str>,
    term: u32,
    rows: u32,
}

#[derive(Clone)]
struct Term {
    stem: Arc<str>,
    surfaces: u32,
    /// The part of the idf that hangs on the number of rows that hold the term.
    idf_part: f32,
    postings: Arc<Vec<Posting>>,
}

/// The most terms: rows hold their numbers in 24 bits.
const TERMS: usize = 1 << 24;

/// A row's slot (24 bits) and the weight of the term in it (8 bits), sorted by slot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Posting(u32);

impl Posting {
    /// The most slots that a posting can tell apart.
    pub(crate) const SLOTS: usize = 1 << 24;

    fn new(slot: u32, weight: u8) -> Self {
        Posting(slot << 8 | u32::from(weight))
    }

    pub(crate) fn slot(self) -> u32 {
        self.0 >> 8
    }

    pub(crate) fn weight(self) -> u8 {
        self.0.to_le_bytes()[0]
    }
}

impl Vocabulary {
    pub(crate) fn new() -> Self {
        Vocabulary {
            surfaces: Pages::new(),
            terms: Pages::new(),
            by_word: Lookup::new(),
            by_stem: Lookup::new(),
            by_misspelling: Lookup::new(),
            free_surfaces: Vec::new(),
            free_terms: Vec::new(),
        }
    }

    /// The term of a lower-case word, with or without an ending, if any row holds it.
    pub(crate) fn term(&self, word: &str) -> Option<u32> {
        self.surface(word).map(|s| self.surfaces.at(s).term).or_else(|| self.stemmed(&stem(word)))
    }

    /// The known word that is one letter added, lost, changed or swapped away, the most used one, and its term.
    pub(crate) fn correct(&self, word: &str) -> Option<(Arc<str>, u32)> {
        if !typo::is_corrected(word) {
            return None;
        }
        let mut best: Option<&Surface> = None;
        typo::misspellings(word, |text| {
            for number in self.by_misspelling.find(text) {
                let surface = self.surfaces.at(number);
                let better = best.is_none_or(|b| (b.rows, &surface.word) < (surface.rows, &b.word));
                if better && typo::is_one_off(word, &surface.word) {
                    best = Some(surface);
                }
            }
        });
        best.map(|surface| (surface.word.clone(), surface.term))
    }

    pub(crate) fn postings(&self, term: u32) -> &[Posting] {
        &self.terms.at(term).postings
    }

    /// What [`idf_part`] says of the term.
    pub(crate) fn idf_part(&self, term: u32) -> f32 {
        self.terms.at(term).idf_part
    }

    pub(crate) fn stem_of(&self, term: u32) -> &str {
        &self.terms.at(term).stem
    }

    /// The word of a number, and its term.
    pub(crate) fn word(&self, number: u32) -> (&str, u32) {
        let surface = self.surfaces.at(number);
        (&surface.word, surface.term)
    }

    /// Number of a word that a row holds, and its term; nothing where it would be one term too many. Each word that is
    /// learnt is answered by one [`Vocabulary::forget`].
    pub(crate) fn learn(&mut self, word: &str) -> Option<(u32, u32)> {
        if let Some(number) = self.surface(word) {
            let surface = self.surfaces.at_mut(number);
            surface.rows += 1;
            return Some((number, surface.term));
        }
        let text = stem(word);
        let term = match self.stemmed(&text) {
            Some(term) => term,
            None if self.free_terms.is_empty() && self.terms.len() == TERMS => return None,
            None => {
                let new = Term { stem: text.as_ref().into(), surfaces: 0, idf_part: 0.0, postings: Arc::default() };
                let term = place(&mut self.terms, &mut self.free_terms, new);
                self.by_stem.insert(text.as_bytes(), term);
                term
            }
        };
        self.terms.at_mut(term).surfaces += 1;
        let new = Surface { word: word.into(), term, rows: 1 };
        let number = place(&mut self.surfaces, &mut self.free_surfaces, new);
        self.by_word.insert(word.as_bytes(), number);
        if typo::is_spelt(word) {
            typo::misspellings(word, |text| self.by_misspelling.insert(text, number));
        }
        Some((number, term))
    }

    /// Takes back one [`Vocabulary::learn`]. The postings of the row must be gone before.
    pub(crate) fn forget(&mut self, number: u32) {
        let surface = self.surfaces.at_mut(number);
        surface.rows -= 1;
        if surface.rows > 0 {
            return;
        }
        let Surface { word, term, .. } = surface.clone();
        self.by_word.remove(word.as_bytes(), number);
        if typo::is_spelt(&word) {
            typo::misspellings(&word, |text| self.by_misspelling.remove(text, number));
        }
        self.free_surfaces.push(number);
        let held = self.terms.at_mut(term);
        held.surfaces -= 1;
        if held.surfaces == 0 {
            let text = held.stem.clone();
            self.by_stem.remove(text.as_bytes(), term);
            self.free_terms.push(term);
        }
    }

    pub(crate) fn post(&mut self, term: u32, slot: u32, weight: u8) {
        let term = self.terms.at_mut(term);
        let postings = Arc::make_mut(&mut term.postings);
        let at = postings.partition_point(|p| p.slot() < slot);
        postings.insert(at, Posting::new(slot, weight));
        term.idf_part = idf_part(postings.len());
    }

    pub(crate) fn unpost(&mut self, term: u32, slot: u32) {
        let term = self.terms.at_mut(term);
        let postings = Arc::make_mut(&mut term.postings);
        if let Ok(at) = postings.binary_search_by_key(&slot, |p| p.slot()) {
            postings.remove(at);
        }
        term.idf_part = idf_part(postings.len());
    }

    /// Gives back memory that nothing is in, after a build.
    pub(crate) fn shrink(&mut self) {
        for number in 0..self.terms.len() {
            let number = u32::try_from(number).expect("numbers of pages are u32");
            if let Some(postings) = Arc::get_mut(&mut self.terms.at_mut(number).postings) {
                postings.shrink_to_fit();
            }
        }
        [&mut self.by_word, &mut self.by_stem, &mut self.by_misspelling].into_iter().for_each(Lookup::shrink);
    }

    fn surface(&self, word: &str) -> Option<u32> {
        self.by_word.find(word.as_bytes()).find(|n| *self.surfaces.at(*n).word == *word)
    }

    fn stemmed(&self, stem: &str) -> Option<u32> {
        self.by_stem.find(stem.as_bytes()).find(|n| *self.terms.at(*n).stem == *stem)
    }
}

fn place<T: Clone>(pages: &mut Pages<T>, free: &mut Vec<u32>, value: T) -> u32 {
    match free.pop() {
        None => pages.push(value),
        Some(number) => {
            *pages.at_mut(number) = value;
            number
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_typing_error_is_corrected_to_the_most_used_word() {
        let mut words = Vocabulary::new();
        for word in ["weather", "weather", "leather", "locations", "time"] {
            words.learn(word);
        }
        for typo in ["wether", "weathher", "waether", "weatjer"] {
            assert_eq!(words.correct(typo).unwrap().0.as_ref(), "weather", "{typo}");
        }
        assert_eq!(words.correct("locaitons").unwrap().1, words.term("location").unwrap());
        assert_eq!(words.correct("eather").unwrap().0.as_ref(), "weather");
        for far in ["wheater", "tmie", "waethr", "wéather", "", "zzzzzz"] {
            assert_eq!(words.correct(far), None, "{far}");
        }
    }

    #[test]
    fn a_forgotten_word_is_unknown_and_its_number_is_used_again() {
        let mut words = Vocabulary::new();
        let (number, _) = words.learn("issues").unwrap();
        words.learn("issue");
        words.forget(number);
        assert!(words.term("issues").is_some(), "its ending aside, a row still holds it");
        assert_eq!(words.correct("isssues"), None);
        assert_eq!(words.learn("other").unwrap().0, number);
    }
}
