//! Every number that ranking hangs on, and where it is from.
//!
//! The weights were measured on six public sets of questions over tools (`examples/measure`); near their optimum
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

/// How many rows are looked at closely for their words. The best hit of a question is practically always among the first
/// 50 by plain word weight; 100 leave room for paging.
pub(crate) const SHORTLIST: usize = 100;
/// How many rows are looked at closely for what they mean.
pub(crate) const NEAREST: usize = 100;

/// Into how many steps the order of rows is divided, from 0 to 1. Rows on one step are much the same, and the operator's
/// rank decides between them.
pub(crate) const STEPS: f64 = 64.0;

/// How many rows of the shortlist may carry the decision that the question can be answered.
pub(crate) const DECIDING: usize = 12;

/// Weight of a question's word that was corrected.
pub(crate) const CORRECTED: f32 = 0.8;
/// Weight, in the question's meaning, of a word that carries grammar.
pub(crate) const GRAMMAR: f32 = 0.5;
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
    /// The cosine between their meanings, 0 to 1.
    pub(crate) nearness: f32,
}

/// What the rows of one question are measured against.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    /// The largest weight among them.
    weight: f32,
    /// The largest nearness among them.
    nearness: f32,
    /// The mean nearness of the nearest of them: how near the book as a whole comes to the question.
    around: f32,
    /// How much the meaning decides, 0 to 1; the words decide the rest.
    by_meaning: f32,
    /// The logarithm of the size of the book: the idf of a word that no row has.
    rarest: f32,
}

impl Scale {
    /// The scale of a question of so many telling words over its candidates. The more words there are, the surer they
    /// are, and the less the meaning has to help.
    pub(crate) fn of(candidates: impl Iterator<Item = Overlap>, words: usize, rarest: f32) -> Scale {
        let (mut weight, mut near) = (0.0_f32, Vec::new());
        for overlap in candidates {
            weight = weight.max(overlap.weight);
            near.push(overlap.nearness);
        }
        near.sort_unstable_by(|a, b| b.total_cmp(a));
        near.truncate(AROUND);
        #[expect(clippy::cast_precision_loss, reason = "a count of words, and one of at most twenty rows")]
        let (words, rows) = (words as f32, near.len().max(1) as f32);
        Scale {
            weight,
            nearness: near.first().map_or(FAR, |nearest| nearest.max(FAR)),
            around: near.iter().sum::<f32>() / rows,
            by_meaning: (1.1 - 0.25 * words.ln_1p()).clamp(0.2, 0.7),
            rarest,
        }
    }

    pub(crate) fn best_weight(&self) -> f32 {
        self.weight
    }
}

impl Overlap {
    /// What rows of one question are ordered by.
    pub(crate) fn order(&self, scale: &Scale) -> f64 {
        let names = KEY_SHARE * self.key_share + CATEGORY_SHARE * self.category_share;
        let words = self.weight / scale.weight.max(f32::MIN_POSITIVE) + QUESTION_SHARE * self.question_share + names;
        f64::from((1.0 - scale.by_meaning) * words + scale.by_meaning * self.nearness / scale.nearness)
    }

    /// Whether the row fits at all: it has a word in common with the question, or means much the same.
    pub(crate) fn fits(&self, scale: &Scale) -> bool {
        self.weight > 0.0 || is_near(self.nearness) && self.nearness >= SHARE_OF_NEAREST * scale.nearness
    }

    /// How sure it is that the row answers, 0 to 1, 0.5 being the least that stands.
    ///
    /// A logistic regression over answerable questions against absent ones: how many words are in common, how near the
    /// row and the book around it come to what is meant, and the size of the book, because in a larger book more words
    /// meet by accident. A question that the row holds whole always stands.
    pub(crate) fn certainty(&self, scale: &Scale) -> f64 {
        let size = scale.rarest.min(LARGEST_MEASURED);
        let words = if self.words > 0.0 { 10.5 * self.words.ln_1p() - 4.3 } else { 0.0 };
        let evidence = words + 4.2 * self.nearness + 17.1 * scale.around - 1.7 * size + STANDS;
        let certainty = SUREST.min(1.0 / (1.0 + f64::from(-evidence).exp()));
        if self.question_share > WHOLE { certainty.max(0.5) } else { certainty }
    }
}

/// Whether the meanings of a question and a row are near enough to be a reason of their own.
pub(crate) fn is_near(nearness: f32) -> bool {
    nearness >= NEAR
}

/// The least nearness that is a reason of its own, and the share of the nearest row's that it takes.
const NEAR: f32 = 0.3;
const SHARE_OF_NEAREST: f32 = 0.5;
/// Where even the nearest row is farther than this, nearness is no measure for the others.
const FAR: f32 = 0.2;
/// Over how many rows the nearness of the book is taken.
const AROUND: usize = 20;

/// The most that words and meaning can say; 1 is for rows that are named or recommended.
const SUREST: f64 = 0.99;
const STANDS: f32 = 3.6;
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

    fn scale(overlap: Overlap, rarest: f32) -> Scale {
        Scale::of([overlap].into_iter(), 4, rarest)
    }

    #[test]
    fn certainty_grows_with_evidence_and_shrinks_with_the_book() {
        let overlap = Overlap { weight: 3.0, words: 2.0, nearness: 0.3, ..Overlap::default() };
        let book = scale(overlap, 9.0);
        for weaker in [Overlap { words: 1.0, ..overlap }, Overlap { nearness: 0.2, ..overlap }] {
            assert!(overlap.certainty(&book) > weaker.certainty(&book));
        }
        assert!(overlap.certainty(&scale(overlap, 5.0)) > overlap.certainty(&book));
        assert!(Overlap { question_share: 1.0, ..Overlap::default() }.certainty(&book) >= 0.5);
    }

    #[test]
    fn meaning_decides_the_less_the_more_words_there_are() {
        let by_meaning = |words| Scale::of(std::iter::empty(), words, 9.0).by_meaning;
        assert!(by_meaning(1) > by_meaning(8) && by_meaning(8) > by_meaning(40));
        assert!((0.2..=0.7).contains(&by_meaning(0)) && (0.2..=0.7).contains(&by_meaning(1000)));
    }
}
