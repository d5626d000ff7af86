//! The index: rows in, rows out.

use std::sync::Arc;

use callbook_domain::key::Key;

use crate::encoder::Sketch;
use crate::entry::{Entry, Recommendation};
use crate::mention::Mentions;
use crate::recommend::Standing;
use crate::row::{Row, SharedRow};
use crate::sharing::{Lookup, Pages};
use crate::vocabulary::{Posting, Vocabulary};

/// The searchable rows of one snapshot and the operator's recommendations.
///
/// It holds no text of the rows but key, category and distinct words. Rows that change are written in place: a row's
/// postings are taken out and put in by binary search, slots and word numbers are used again, nothing is left for a
/// later compaction, and the answers are those of an index built afresh from the same entries. Rows past the first
/// 2^24 (16 million) are left out.
#[derive(Clone)]
pub struct Index {
    pub(crate) vocabulary: Vocabulary,
    pub(crate) mentions: Mentions,
    pub(crate) recommended: Arc<[Standing]>,
    rows: Pages<Option<SharedRow>>,
    /// The meanings of each row, in short, by slot; one that has only one has it twice.
    sketches: Pages<[Sketch; 2]>,
    /// The norm of each row by slot.
    norms: Arc<Vec<f32>>,
    by_key: Lookup,
    free: Vec<u32>,
    live: usize,
}

impl Default for Index {
    fn default() -> Self {
        Index::build([])
    }
}

impl Index {
    /// An index of these rows, with no recommendation. Of two entries with one key the later counts.
    pub fn build(entries: impl IntoIterator<Item = Entry>) -> Self {
        let mut index = Index {
            vocabulary: Vocabulary::new(),
            mentions: Mentions::new(),
            recommended: Arc::default(),
            rows: Pages::new(),
            sketches: Pages::new(),
            norms: Arc::default(),
            by_key: Lookup::new(),
            free: Vec::new(),
            live: 0,
        };
        for entry in entries {
            index.upsert(&entry);
        }
        index.vocabulary.shrink();
        index
    }

    /// Puts a row in, in place of the one that has its key.
    pub fn upsert(&mut self, entry: &Entry) {
        self.remove(&entry.key);
        let Some(slot) = self.free_slot() else { return };
        let row = Row::read(entry, &mut self.vocabulary);
        for word in &row.words {
            self.vocabulary.post(word.term(), slot, word.weight());
        }
        self.by_key.insert(row.key.as_str().as_bytes(), slot);
        self.mentions.insert(&row.key, slot);
        Arc::make_mut(&mut self.norms)[slot as usize] = row.norm;
        *self.sketches.at_mut(slot) = row.sketches();
        *self.rows.at_mut(slot) = Some(Arc::new(row));
        self.live += 1;
    }

    /// Takes a row out. Says whether it was there.
    pub fn remove(&mut self, key: &Key) -> bool {
        let Some(slot) = self.slot(key) else { return false };
        let Some(row) = self.rows.at_mut(slot).take() else { return false };
        for word in &row.words {
            self.vocabulary.unpost(word.term(), slot);
        }
        for surface in &row.surfaces {
            self.vocabulary.forget(*surface);
        }
        self.by_key.remove(key.as_str().as_bytes(), slot);
        self.mentions.remove(key, slot);
        self.free.push(slot);
        self.live -= 1;
        true
    }

    /// Replaces all recommendations. They may name rows that are not there, or not yet.
    pub fn set_recommended(&mut self, recommendations: Vec<Recommendation>) {
        self.recommended = recommendations.into_iter().map(Standing::read).collect();
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.live
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// How many slots there are, those of rows that are gone too.
    pub(crate) fn slots(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn norms(&self) -> &[f32] {
        &self.norms
    }

    pub(crate) fn sketches(&self) -> impl Iterator<Item = &[[Sketch; 2]]> {
        self.sketches.pages()
    }

    pub(crate) fn row(&self, slot: u32) -> Option<&Row> {
        self.rows.at(slot).as_deref()
    }

    pub(crate) fn slot(&self, key: &Key) -> Option<u32> {
        self.by_key.find(key.as_str().as_bytes()).find(|slot| self.row(*slot).is_some_and(|row| row.key == *key))
    }

    fn free_slot(&mut self) -> Option<u32> {
        if let Some(slot) = self.free.pop() {
            return Some(slot);
        }
        if self.rows.len() == Posting::SLOTS {
            return None;
        }
        Arc::make_mut(&mut self.norms).push(0.0);
        self.sketches.push(Default::default());
        Some(self.rows.push(None))
    }
}
