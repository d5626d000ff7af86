//! What sets a row apart from one beside it that reads much the same.

use std::cell::OnceCell;
use std::ops::Range;

use crate::row::{Field, Held, Row};
use crate::vocabulary::Vocabulary;

/// How far apart in an answer two rows may stand to be told apart. Siblings stand side by side.
const REACH: usize = 12;
/// The share of their words that two rows must have in common to be siblings.
const ALIKE: f64 = 0.5;
/// How many words are named.
const NAMED: usize = 4;

/// For each of the rows at these places of an answer, in words, what sets it apart from the one near it that is most
/// alike; nothing where none is.
pub(crate) fn differences(answer: &[&Row], places: Range<usize>, vocabulary: &Vocabulary) -> Vec<Option<String>> {
    let from = places.start.saturating_sub(REACH);
    let near = &answer[from..answer.len().min(places.end + REACH)];
    let words: Vec<Words<'_>> = near.iter().map(|row| Words::of(row)).collect();
    let tell = |this: usize| {
        let around = this.saturating_sub(REACH)..near.len().min(this + REACH + 1);
        let others = around.filter(|that| *that != this && words[this].may_be_like(&words[*that]));
        let others = others.map(|that| (words[this].likeness(&words[that]), that));
        let alike = others.filter(|(alike, _)| *alike >= ALIKE);
        let (_, that) = alike.reduce(|best, other| if other.0 > best.0 { other } else { best })?;
        Some(difference(&words[this], &words[that], vocabulary))
    };
    places.map(|place| tell(place - from)).collect()
}

fn difference(row: &Words<'_>, other: &Words<'_>, vocabulary: &Vocabulary) -> String {
    let key = &other.row.key;
    let own = spelt(row.row, other.terms(), vocabulary);
    let lacks = spelt(other.row, row.terms(), vocabulary);
    match (own.is_empty(), lacks.is_empty()) {
        (false, _) => format!("unlike {key}: {}", own.join(", ")),
        (true, false) => format!("unlike {key}: not {}", lacks.join(", ")),
        (true, true) => format!("like {key} in every word"),
    }
}

/// The row's first words that are not among the others, as they are written.
fn spelt<'v>(row: &Row, others: &[u32], vocabulary: &'v Vocabulary) -> Vec<&'v str> {
    let written = |held: Held| {
        let surfaces = row.surfaces.iter().map(|surface| vocabulary.word(*surface));
        surfaces.filter(|(_, term)| *term == held.term()).map(|(word, _)| word).min()
    };
    telling(row).filter(|held| others.binary_search(&held.term()).is_err()).filter_map(written).take(NAMED).collect()
}

/// The words that say what the row does and takes; remarks do not tell rows apart.
fn telling(row: &Row) -> impl Iterator<Item = Held> {
    const FIELDS: u8 = Field::Key.bit() | Field::What.bit() | Field::WhenToUse.bit() | Field::ArgumentName.bit();
    row.words.iter().copied().filter(|held| held.is_in_any(FIELDS))
}

/// The telling words of a row.
struct Words<'i> {
    row: &'i Row,
    count: usize,
    /// A bit for the low end of every term.
    sieve: u64,
    /// Sorted; most rows are told from their neighbours without.
    terms: OnceCell<Vec<u32>>,
}

impl<'i> Words<'i> {
    fn of(row: &'i Row) -> Words<'i> {
        let (count, sieve) =
            telling(row).fold((0, 0), |(count, bits), held| (count + 1, bits | 1 << (held.term() % 64)));
        Words { row, count, sieve, terms: OnceCell::new() }
    }

    fn terms(&self) -> &[u32] {
        self.terms.get_or_init(|| {
            let mut terms: Vec<u32> = telling(self.row).map(|held| held.term()).collect();
            terms.sort_unstable();
            terms
        })
    }

    /// False where the two cannot have half of their words in common; it takes a fraction of the time of counting.
    fn may_be_like(&self, other: &Words<'_>) -> bool {
        let most = telling(self.row).filter(|held| other.sieve & 1 << (held.term() % 64) != 0).count();
        3 * most >= self.count + other.count
    }

    /// The share of their words that the two have in common, 0 to 1.
    #[expect(clippy::cast_precision_loss, reason = "counts of words of a row")]
    fn likeness(&self, other: &Words<'_>) -> f64 {
        let (mut common, mut rest) = (0, other.terms());
        for term in self.terms() {
            let at = rest.partition_point(|other| other < term);
            common += usize::from(rest.get(at) == Some(term));
            rest = &rest[at..];
        }
        let all = self.count + other.count - common;
        if all == 0 { 0.0 } else { common as f64 / all as f64 }
    }
}
