//! The rows that are looked at closely: those whose words weigh most for a question, and those that mean most nearly
//! what it means.

use std::cmp::Ordering;

use crate::encoder::Meaning;
use crate::index::Index;
use crate::reading::Reading;
use crate::row::Row;
use crate::score::{self, NEAREST, Overlap, SHORTLIST, Scale};
use crate::vocabulary::Posting;

/// A row on its way into the answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate<'i> {
    pub(crate) slot: u32,
    pub(crate) row: &'i Row,
    pub(crate) overlap: Overlap,
    /// What the rows of one question are ordered by.
    pub(crate) order: f64,
    /// The step of [`score::STEPS`] that the order is on.
    pub(crate) step: f64,
}

impl Candidate<'_> {
    /// Puts it where it belongs among the rows of its question.
    pub(crate) fn place(&mut self, scale: &Scale) {
        self.order = self.overlap.order(scale);
        self.step = (self.order * score::STEPS).floor();
    }

    /// The better first; of those that are much the same, the lower planner rank.
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        other
            .step
            .total_cmp(&self.step)
            .then_with(|| self.row.planner_rank.cmp(&other.row.planner_rank))
            .then_with(|| other.order.total_cmp(&self.order))
            .then_with(|| self.row.key.cmp(&other.row.key))
    }
}

/// The order of rows between which nothing else decides: planner rank, then key.
pub(crate) fn by_rank(a: &Row, b: &Row) -> Ordering {
    a.planner_rank.cmp(&b.planner_rank).then_with(|| a.key.cmp(&b.key))
}

impl Index {
    /// The candidates of a question, in no order.
    pub(crate) fn candidates<'i>(&'i self, reading: &Reading, may_answer: &dyn Fn(&Row) -> bool) -> Vec<Candidate<'i>> {
        let mut found = self.heaviest(reading, may_answer);
        if let Some(meaning) = &reading.meaning {
            found.extend(self.nearest(meaning, may_answer));
        }
        found.sort_unstable_by_key(|(slot, _)| *slot);
        found.dedup_by_key(|(slot, _)| *slot);
        let candidate =
            |(slot, row)| Candidate { slot, row, overlap: reading.overlap(row, self), order: 0.0, step: 0.0 };
        found.into_iter().map(candidate).collect()
    }

    /// The rows whose words weigh most.
    fn heaviest<'i>(&'i self, reading: &Reading, may_answer: &dyn Fn(&Row) -> bool) -> Vec<(u32, &'i Row)> {
        let mut sums = vec![0.0_f32; self.slots()];
        for (postings, telling) in self.telling(reading) {
            for posting in postings {
                sums[posting.slot() as usize] += telling * f32::from(posting.weight());
            }
        }
        // Rows without a word of the question are below the first bar: a test of its own would be mispredicted for every
        // other row.
        let mut best = Best::new(SHORTLIST, f32::MIN_POSITIVE, |a: &f32, b: &f32| b.total_cmp(a));
        for ((slot, sum), norm) in (0..).zip(sums).zip(self.norms()) {
            let weight = sum / norm;
            if best.is_over(&weight) {
                continue;
            }
            if let Some(row) = self.row(slot).filter(|row| may_answer(row)) {
                best.add(weight, slot, row);
            }
        }
        best.finish()
    }

    /// The postings by which likely rows are found, each with the weight of its word. The rarest words come first, and
    /// once they are in as many rows as there are in the book, those that are left would move no row far: they count when
    /// a row is looked at closely.
    fn telling<'i>(&'i self, reading: &Reading) -> Vec<(&'i [Posting], f32)> {
        let known =
            reading.asked.iter().filter_map(|asked| Some((self.vocabulary.postings(asked.term?), asked.telling)));
        let mut known: Vec<(&[Posting], f32)> = known.collect();
        known.sort_by_key(|(postings, _)| postings.len());
        let mut read = 0;
        let few = known.iter().take_while(|(postings, _)| {
            let goes_on = read <= self.len();
            read += postings.len();
            goes_on
        });
        let few = few.count();
        known.truncate(few);
        known
    }

    /// The rows whose sketches are nearest to that of the question.
    fn nearest<'i>(&'i self, meaning: &Meaning, may_answer: &dyn Fn(&Row) -> bool) -> Vec<(u32, &'i Row)> {
        let asked = meaning.sketch();
        let mut best = Best::new(NEAREST, u16::MAX, u16::cmp);
        let mut first = 0;
        let mut distances = Vec::new();
        for page in self.sketches() {
            asked.distances(page, &mut distances);
            for (slot, distance) in (first..).zip(&distances) {
                if best.is_over(distance) {
                    continue;
                }
                let row = self.row(slot).filter(|row| !row.meanings.is_empty() && may_answer(row));
                if let Some(row) = row {
                    best.add(*distance, slot, row);
                }
            }
            first += u32::try_from(page.len()).unwrap_or(u32::MAX);
        }
        best.finish()
    }
}

/// The best so many rows of a stream, ties by rank. Of two measures the lesser by `compare` is the better.
struct Best<'i, M, C> {
    kept: Vec<(M, u32, &'i Row)>,
    most: usize,
    /// The worst measure that may still be among the best.
    bar: M,
    compare: C,
}

impl<'i, M: Copy, C: Fn(&M, &M) -> Ordering> Best<'i, M, C> {
    fn new(most: usize, bar: M, compare: C) -> Self {
        Best { kept: Vec::with_capacity(2 * most), most, bar, compare }
    }

    /// Whether no row of this measure can be among the best.
    fn is_over(&self, measure: &M) -> bool {
        (self.compare)(measure, &self.bar).is_gt()
    }

    fn add(&mut self, measure: M, slot: u32, row: &'i Row) {
        self.kept.push((measure, slot, row));
        if self.kept.len() == 2 * self.most {
            self.cut();
        }
    }

    fn cut(&mut self) {
        if self.kept.len() > self.most {
            let compare = &self.compare;
            let order = |a: &(M, u32, &Row), b: &(M, u32, &Row)| compare(&a.0, &b.0).then_with(|| by_rank(a.2, b.2));
            self.kept.select_nth_unstable_by(self.most - 1, order);
            self.kept.truncate(self.most);
            self.bar = self.kept[self.most - 1].0;
        }
    }

    fn finish(mut self) -> Vec<(u32, &'i Row)> {
        self.cut();
        self.kept.into_iter().map(|(_, slot, row)| (slot, row)).collect()
    }
}
