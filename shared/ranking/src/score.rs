//! Every number that ranking hangs on, and where it is from.
//!
//! The weights were measured on six public sets of questions over tools (`examples/measure.rs`); near their optimum
//! all of them are flat, so none is worth tuning to one catalogue.

use crate::row::Field;

/// How often a word can count in one field of a row, and how many words of a field are read. Words of a third party
/// count once and less of them is read, so that saying a thing again and again gains nothing.
pub(crate) const OWN: Bounds = Bounds { count: 8, words: 400 };
/// The same for third-party text.
pub(crate) const THIRD_PARTY: Bounds = Bounds { count: 1, words: 120 };

/// What one field can bring in.
pub(crate) struct Bounds {
    pub(crate) count: u16,
    pub(crate) words: usize,
}

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

const SATURATION: f32 = 1.6;
const QUESTION_SHARE: f32 = 0.3;
const KEY_SHARE: f32 = 0.15;

/// What one occurrence of a word in a field counts.
fn field_weight(field: Field) -> f32 {
    match field {
        Field::Key => 1.25,
        Field::What | Field::WhenToUse | Field::Notes => 1.0,
        Field::Category | Field::ArgumentName => 0.5,
        Field::ArgumentMeaning => 0.6,
    }
}

/// The weight of a word that occurs so often in the fields of a row, saturating, in steps of which 255 are the most.
pub(crate) fn word_weight(counts: &[u16; Field::ALL.len()]) -> u8 {
    let sum: f32 = Field::ALL.iter().map(|f| field_weight(*f) * f32::from(counts[*f as usize])).sum();
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

/// What the weights of a row are divided by: the square root of their L2 norm, given the sum of their squares.
pub(crate) fn norm(squares: f32) -> f32 {
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
    /// How many of the question's words the row holds, corrected words and values counting less.
    pub(crate) words: f32,
}

impl Overlap {
    /// What rows of one question are ordered by. `best` is the largest weight among them.
    pub(crate) fn order(&self, best: f32) -> f64 {
        let lexical = self.weight / best.max(f32::MIN_POSITIVE);
        f64::from(lexical + QUESTION_SHARE * self.question_share + KEY_SHARE * self.key_share)
    }

    /// How sure it is that the row answers, 0 to 1, 0.5 being the least that stands.
    ///
    /// A logistic regression over answerable questions against absent ones: weight relative to the rarest word that
    /// there can be, how many words are in common, and the size of the book (`rarest` is its logarithm), because in a
    /// larger book more words meet by accident. A question that the row holds whole always stands.
    pub(crate) fn certainty(&self, rarest: f32) -> f64 {
        let size = rarest.min(LARGEST_MEASURED);
        let evidence = 12.0 * self.weight / rarest.max(1.0) + 11.0 * self.words.ln_1p() - size - STANDS;
        let certainty = 1.0 / (1.0 + f64::from(-evidence).exp());
        if self.question_share > WHOLE { certainty.max(0.5) } else { certainty }
    }
}

const STANDS: f32 = 3.7;
const WHOLE: f32 = 0.99;
/// The logarithm for a book of 6,000 rows, the largest that the regression saw.
const LARGEST_MEASURED: f32 = 9.4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetition_saturates() {
        let step = |what: u16| {
            let mut counts = [0; Field::ALL.len()];
            counts[Field::What as usize] = what;
            from_step(word_weight(&counts))
        };
        assert!(step(1) < step(2) && step(2) < step(8));
        assert!(step(1000) < 2.7 * step(1));
    }

    #[test]
    fn certainty_grows_with_evidence_and_shrinks_with_the_book() {
        let overlap = Overlap { weight: 3.0, question_share: 0.5, key_share: 0.5, words: 2.0 };
        let weaker = Overlap { weight: 2.0, words: 1.0, ..overlap };
        assert!(overlap.certainty(9.0) > weaker.certainty(9.0));
        assert!(weaker.certainty(5.0) > weaker.certainty(9.0));
        assert!(Overlap { question_share: 1.0, ..Overlap::default() }.certainty(9.0) >= 0.5);
    }
}
