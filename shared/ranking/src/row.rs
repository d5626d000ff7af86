//! A row as the index holds it.

use std::sync::Arc;

use callbook_domain::key::Key;
use callbook_domain::row::{Effect, Risk, RowType};
use hashbrown::HashMap;

use crate::encoder::{Meaning, Sketch};
use crate::entry::Entry;
use crate::question::Filters;
use crate::score::{self, Bounds, Counts};
use crate::vocabulary::Vocabulary;
use crate::words::{Gap, is_function_word, split};

/// A part of a row that words come from, the most telling first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    Key,
    What,
    WhenToUse,
    Category,
    ArgumentName,
    ArgumentMeaning,
    Notes,
}

impl Field {
    pub(crate) const ALL: [Field; 7] = [
        Field::Key,
        Field::What,
        Field::WhenToUse,
        Field::Category,
        Field::ArgumentName,
        Field::ArgumentMeaning,
        Field::Notes,
    ];

    /// The field as a bit.
    pub(crate) const fn bit(self) -> u8 {
        1 << self as u8
    }

    /// Whether the last word of a phrase tells more than those before it.
    fn has_phrases(self) -> bool {
        match self {
            Field::Key | Field::What | Field::WhenToUse | Field::ArgumentMeaning | Field::Notes => true,
            Field::Category | Field::ArgumentName => false,
        }
    }

    /// The name in `why`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Field::Key => "key",
            Field::What => "what",
            Field::WhenToUse => "when_to_use",
            Field::Category => "category",
            Field::ArgumentName | Field::ArgumentMeaning => "argument",
            Field::Notes => "notes",
        }
    }
}

/// What is left of an [`Entry`]: what filters and order need, and its words as numbers, in the order of their first
/// appearance, so that sums over them come out the same whatever the numbers are.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) key: Key,
    pub(crate) planner_rank: i32,
    category: Option<Box<str>>,
    row_type: RowType,
    effect: Effect,
    risk: Risk,
    pub(crate) words: Box<[Held]>,
    /// See [`score::norm`].
    pub(crate) norm: f32,
    /// The surfaces that the row holds in the vocabulary.
    pub(crate) surfaces: Box<[u32]>,
    /// What its WHAT means, and its WHEN_TO_USE: a question may be near to either.
    pub(crate) meanings: Box<[Meaning]>,
}

/// A word of a row, in as few bytes as it takes: a row has some thirty of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    term: [u8; 3],
    weight: u8,
    /// One bit for each field that has the word.
    fields: u8,
}

impl Held {
    fn new(term: u32, weight: u8, fields: u8) -> Self {
        let [a, b, c, _] = term.to_le_bytes();
        Held { term: [a, b, c], weight, fields }
    }

    pub(crate) fn term(self) -> u32 {
        let [a, b, c] = self.term;
        u32::from_le_bytes([a, b, c, 0])
    }

    /// See [`score::word_weight`].
    pub(crate) fn weight(self) -> u8 {
        self.weight
    }

    pub(crate) fn is_in(self, field: Field) -> bool {
        self.is_in_any(field.bit())
    }

    /// Whether one of these fields has the word.
    pub(crate) fn is_in_any(self, bits: u8) -> bool {
        self.fields & bits != 0
    }

    /// The most telling field that has the word.
    pub(crate) fn strongest(self) -> Field {
        Field::ALL.into_iter().find(|f| self.is_in(*f)).unwrap_or(Field::Notes)
    }
}

impl Row {
    /// Reads an entry, its words learnt by the vocabulary (but not posted).
    pub(crate) fn read(entry: &Entry, vocabulary: &mut Vocabulary) -> Row {
        let bounds = if entry.third_party { score::THIRD_PARTY } else { score::OWN };
        let mut reader =
            Reader { vocabulary, bounds, places: HashMap::new(), counts: Vec::new(), surfaces: Vec::new() };
        let names = entry.arguments.iter().map(|(name, _)| name.as_str());
        let meanings = entry.arguments.iter().map(|(_, meaning)| meaning.as_str());
        reader.read(Field::Key, [entry.key.as_str()]);
        reader.read(Field::What, [entry.what.as_str()]);
        reader.read(Field::WhenToUse, [entry.when_to_use.as_str()]);
        reader.read(Field::Category, entry.category.as_deref());
        reader.read(Field::ArgumentName, names);
        reader.read(Field::ArgumentMeaning, meanings);
        reader.read(Field::Notes, [entry.notes.as_str()]);
        let (words, surfaces) = reader.finish();
        Row {
            key: entry.key.clone(),
            planner_rank: entry.planner_rank,
            category: entry.category.as_deref().map(Into::into),
            row_type: entry.row_type,
            effect: entry.effect,
            risk: entry.risk,
            norm: score::norm(words.iter().map(|word| word.weight())),
            words,
            surfaces,
            meanings: meanings_of(entry),
        }
    }

    /// Its meanings in short; one that has only one has it twice, one that has none is far from everything.
    pub(crate) fn sketches(&self) -> [Sketch; 2] {
        let sketch = |meaning: Option<&Meaning>| meaning.map(Meaning::sketch).unwrap_or_default();
        [sketch(self.meanings.first()), sketch(self.meanings.last())]
    }

    /// The cosine of the question and the nearer meaning of the row; 0 where either has none.
    pub(crate) fn nearness(&self, question: Option<&Meaning>) -> f32 {
        let Some(question) = question else { return 0.0 };
        self.meanings.iter().map(|meaning| meaning.cosine(question)).fold(0.0, f32::max)
    }

    /// Whether the row passes the filters.
    pub(crate) fn passes(&self, filters: &Filters) -> bool {
        let Filters { category, row_type, effect, risk, namespace } = filters;
        category.as_deref().is_none_or(|c| self.category.as_deref() == Some(c))
            && row_type.is_none_or(|t| self.row_type == t)
            && effect.is_none_or(|e| self.effect == e)
            && risk.is_none_or(|r| self.risk == r)
            && namespace.as_deref().is_none_or(|n| self.key.is_under(n))
    }
}

/// What the row's WHAT means, its key said in words with it, and what its WHEN_TO_USE means.
fn meanings_of(entry: &Entry) -> Box<[Meaning]> {
    let mut key = String::with_capacity(2 * entry.key.as_str().len());
    split(entry.key.as_str(), |word, _| {
        key.push_str(word);
        key.push(' ');
    });
    let what = Meaning::of([(key.as_str(), 1.0), (&entry.what, 1.0)], entry.third_party);
    let when_to_use = Meaning::of([(entry.when_to_use.as_str(), 1.0)], entry.third_party);
    what.into_iter().chain(when_to_use).collect()
}

struct Reader<'v> {
    vocabulary: &'v mut Vocabulary,
    bounds: Bounds,
    places: HashMap<u32, usize>,
    counts: Vec<(u32, Counts)>,
    surfaces: Vec<u32>,
}

impl Reader<'_> {
    fn read<'t>(&mut self, field: Field, texts: impl IntoIterator<Item = &'t str>) {
        let mut left = self.bounds.words;
        for text in texts {
            let mut before: Option<usize> = None;
            split(text, |word, gap| {
                let last = before.take();
                if left == 0 || is_function_word(word) {
                    return;
                }
                left -= 1;
                let Some(place) = self.count(field, word) else { return };
                let same_phrase = field.has_phrases() && (gap != Gap::Stop || field == Field::Key);
                if let Some(last) = last.filter(|_| same_phrase && !word.starts_with(|c: char| c.is_numeric())) {
                    self.counts[last].1[field as usize] -= score::HEAD - score::MODIFIER;
                }
                before = Some(place);
            });
        }
    }

    /// Counts a word as the last of its phrase; nothing where the vocabulary is full.
    fn count(&mut self, field: Field, word: &str) -> Option<usize> {
        let (surface, term) = self.vocabulary.learn(word)?;
        self.surfaces.push(surface);
        let place = *self.places.entry(term).or_insert_with(|| {
            self.counts.push((term, Counts::default()));
            self.counts.len() - 1
        });
        self.counts[place].1[field as usize] += score::HEAD;
        Some(place)
    }

    fn finish(mut self) -> (Box<[Held]>, Box<[u32]>) {
        self.surfaces.sort_unstable();
        let mut before = None;
        self.surfaces.retain(|surface| {
            let again = before.replace(*surface) == Some(*surface);
            if again {
                self.vocabulary.forget(*surface);
            }
            !again
        });
        let held = |(term, counts): &(u32, Counts)| {
            let fields = (0..counts.len()).filter(|f| counts[*f] > 0).fold(0, |bits, f| bits | 1 << f);
            Held::new(*term, score::word_weight(counts, &self.bounds), fields)
        };
        (self.counts.iter().map(held).collect(), self.surfaces.into_boxed_slice())
    }
}

/// Shared by every clone of the index that has the row unchanged.
pub(crate) type SharedRow = Arc<Row>;
