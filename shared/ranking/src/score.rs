//! Every number that ranking hangs on, and where it is from.
//!
//! The weights were measured on six public sets of questions over tools (`examples/measure.rs`); near their optimum
//! all of them are flat, so none is worth tuning to one catalogue.

use crate::row::Field;

/// What a word counts where it ends a phrase, and where it only stands before the word that does: `zones` in "list the
/// time zones", and `time`, which is not what that row is about. In tenths of an occurrence.
pub(crate) const HEAD: u16 = 10;
/// See [`HEAD`].
pub(crate) const MODIFIER: u16 = 7;

/// What a word counts in each field.
pub(crate) type Counts = [u16; Field::ALL.len()];

/// How much a word can count in one field of a row, and how many words of a field are read. Words of a third party
/// count once and fewer are read, so that saying a thing again and again gains nothing.
pub(crate) struct Bounds {
    count: u16,
    pub(crate) words: usize,
}

/// The bounds of our own text.
pub(crate) const OWN: Bounds = Bounds { count: 8 * HEAD, words: 400 };
/// The bounds of third-party text.
pub(crate) const THIRD_PARTY: Bounds = Bounds { count: HEAD, words: 120 };

/// How many rows are looked at closely. The best hit of a question is practically always among the first 50 by plain
/// word weight; 200 leave room for paging.
pub(crate) const SHORTLIST: usize = 200;

/// How many rows of the shortlist may carry the decision that the question can be answered.
pub(crate) const DECIDING: usize = 12;

/// Weight of a question's word that was corrected.
pub(crate) const CORRECTED: f32 = 0.8;
/// Weight of a question's word that looks like an argument's value: quoted, or in a path, an address or a number.
pub(crate) const VALUE: f32 = 0.5;

/// A key written as plain words is meant as one when its row carries this share of the best row's weight; for a key of
/// a single word ("timer") the bar is higher, for one of three words or more there is none.
pub(crate) const NAMED_BY_WORDS: f32 = 0.5;
/// The bar for a key of a single word.
pub(crate) const NAMED_BY_ONE_WORD: f32 = 0.9;

const SATURATION: f32 = 1.8;
const QUESTION_SHARE: f32 = 0.3;
const KEY_SHARE: f32 = 0.15;
const CATEGORY_SHARE: f32 = 0.1;

/// What one occurrence of a word in a field counts.
fn field_weight(field: Field) -> f32 {
    match field {
        Field::Key | Field::What | Field::WhenToUse | Field::Notes => 1.0,
        Field::Category | Field::ArgumentName => 0.5,
        Field::ArgumentMeaning => 0.6,
    }
}

/// The weight of a word that counts so much in the fields of a row, saturating, in steps of which 255 are the most.
pub(crate) fn word_weight(counts: &Counts, bounds: &Bounds) -> u8 {
    let bounded = |field: Field| f32::from(counts[field as usize].min(bounds.count)) / f32::from(HEAD);
    let sum: f32 = Field::ALL.iter().map(|field| field_weight(*field) * bounded(*field)).sum();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within 1 and 255 by the clamp")]
    let step = (255.0 * sum / (SATURATION + sum)).round().clamp(1.0, 255.0) as u8;
    step
}

/// The weight behind a step.
pub(crate) fn from_step(step: u8) -> f32 {
    f32::from(step) * ((1.0 + SATURATION) / 255.0)
}

/// The part of a term's idf that hangs on how many rows hold it. The idf is [`idf_base`] less this part, which is
/// BM25's `ln(1 + (n - df + 0.5) / (df + 0.5))`.
#[expect(clippy::cast_precision_loss, reason = "a count of rows; its logarithm needs no more precision")]
pub(crate) fn idf_part(rows: usize) -> f32 {
    (rows as f32 + 0.5).ln()
}

/// The part of the idf that hangs on the size of the book.
#[expect(clippy::cast_precision_loss, reason = "a count of rows; its logarithm needs no more precision")]
pub(crate) fn idf_base(book: usize) -> f32 {
    (book as f32 + 1.0).ln()
}

/// What the weights of a row are divided by: the square root of their L2 norm. How rare the words are is left out. With
/// it the six sets gain 0.3 points, but rows made from one mould (their words are in every sibling) win over the one
/// row of its kind, and a row's norm would hang on all other rows.
pub(crate) fn norm(weights: impl Iterator<Item = u8>) -> f32 {
    let squares: f32 = weights.map(|weight| from_step(weight).powi(2)).sum();
    squares.sqrt().sqrt().max(f32::MIN_POSITIVE)
}

/// How a question's words and a row's words meet.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Overlap {
    /// The sum of the weights of the words in common, over the row's norm.
    pub(crate) weight: f32,
    /// The share of the question's idf that the row holds, 0 to 1.
    pub(crate) question_share: f32,
    /// The share of the idf of the key's words that the question holds, 0 to 1.
    pub(crate) key_share: f32,
    /// The same of the category's words.
    pub(crate) category_share: f32,
    /// How many of the question's words the row holds, corrected words and values counting less.
    pub(crate) words: f32,
}

impl Overlap {
    /// What rows of one question are ordered by. `best` is the largest weight among them.
    pub(crate) fn order(&self, best: f32) -> f64 {
        let lexical = self.weight / best.max(f32::MIN_POSITIVE);
        let names = KEY_SHARE * self.key_share + CATEGORY_SHARE * self.category_share;
        f64::from(lexical + QUESTION_SHARE * self.question_share + names)
    }

    /// How sure it is that the row answers, 0 to 1, 0.5 being the least that stands.
    ///
    /// A logistic regression over answerable questions against absent ones: weight relative to the rarest word that
    /// there can be, how many words are in common, and the size of the book (`rarest` is its logarithm), because in a
    /// larger book more words meet by accident. A question that the row holds whole always stands.
    pub(crate) fn certainty(&self, rarest: f32) -> f64 {
        let size = rarest.min(LARGEST_MEASURED);
        let evidence = 5.9 * self.weight / rarest.max(1.0) + 11.2 * self.words.ln_1p() - 1.1 * size - STANDS;
        let certainty = 1.0 / (1.0 + f64::from(-evidence).exp());
        if self.question_share > WHOLE { certainty.max(0.5) } else { certainty }
    }
}

const STANDS: f32 = 3.2;
const WHOLE: f32 = 0.99;
/// The logarithm for a book of 6,000 rows, the largest that the regression saw.
const LARGEST_MEASURED: f32 = 9.4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetition_saturates() {
        let step = |times: u16, bounds: &Bounds| {
            let mut counts = Counts::default();
            counts[Field::What as usize] = times * HEAD;
            from_step(word_weight(&counts, bounds))
        };
        assert!(step(1, &OWN) < step(2, &OWN) && step(2, &OWN) < step(8, &OWN));
        assert!(step(1000, &OWN) < 2.8 * step(1, &OWN));
        assert_eq!(step(1000, &THIRD_PARTY), step(1, &THIRD_PARTY));
    }

    #[test]
    fn certainty_grows_with_evidence_and_shrinks_with_the_book() {
        let overlap = Overlap { weight: 3.0, words: 2.0, ..Overlap::default() };
        let weaker = Overlap { weight: 2.0, words: 1.0, ..overlap };
        assert!(overlap.certainty(9.0) > weaker.certainty(9.0));
        assert!(weaker.certainty(5.0) > weaker.certainty(9.0));
        assert!(Overlap { question_share: 1.0, ..Overlap::default() }.certainty(9.0) >= 0.5);
    }
}
