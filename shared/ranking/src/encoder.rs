//! What a text means, as a direction in a space of 256 dimensions: texts that mean the same point the same way, whatever
//! their words.
//!
//! The encoder is static: a text's vector is a weighted sum of the vectors of its pieces, so it costs microseconds and
//! needs nothing but its table, which is in the binary (`model/README.md`). The crate `tokenizers` cuts words into the
//! same pieces, with some forty dependencies for a loop of a dozen lines over one fixed list.

use std::sync::LazyLock;

use hashbrown::HashMap;

use crate::sharing::Lookup;
use crate::typo;
use crate::words::MAX_TEXT;

/// Dimensions of the space.
const DIMENSIONS: usize = 256;
/// Distinct pieces of a text that count, the first ones. Longer texts mean nothing clearer by the rest.
const MAX_PIECES: usize = 256;
/// The longest word that is cut into pieces, in bytes; the list holds no piece of a longer one.
const MAX_WORD: usize = 48;

static TABLE: &[u8] = include_bytes!("../model/static-encoder-256-int8.bin");
static PIECES: &str = include_str!("../model/vocab.txt");
static ARCH: LazyLock<pulp::Arch> = LazyLock::new(pulp::Arch::new);
static MODEL: LazyLock<Model> = LazyLock::new(Model::read);

/// A direction: the unit vector in steps of one scale.
#[derive(Clone, Debug)]
pub(crate) struct Meaning {
    steps: [i8; DIMENSIONS],
    /// The length of one step.
    scale: f32,
}

/// On which side of zero each dimension of a meaning is: enough to find likely rows by, at an eighth of its size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sketch([u64; DIMENSIONS / 64]);

impl Meaning {
    /// The meaning of the texts together, each with its weight; nothing where none has a piece that is known. A piece that
    /// comes again counts by the square root of how often, or, where `each_once`, not at all.
    pub(crate) fn of<'t>(texts: impl IntoIterator<Item = (&'t str, f32)>, each_once: bool) -> Option<Meaning> {
        let mut counted: Vec<Counted> = Vec::new();
        for (text, weight) in texts {
            MODEL.pieces(text, |piece| match counted.iter().position(|before| before.piece == piece) {
                Some(place) => {
                    let before = &mut counted[place];
                    before.count += if each_once { 0.0 } else { 1.0 };
                    before.weight = before.weight.max(weight);
                }
                None if counted.len() == MAX_PIECES => {}
                None => counted.push(Counted { piece, count: 1.0, weight }),
            });
        }
        MODEL.sum(&counted)
    }

    /// The cosine between two meanings, -1 to 1.
    pub(crate) fn cosine(&self, other: &Meaning) -> f32 {
        let sum = ARCH.dispatch(|| {
            let products = self.steps.iter().zip(&other.steps).map(|(a, b)| i32::from(i16::from(*a) * i16::from(*b)));
            products.sum::<i32>()
        });
        #[expect(clippy::cast_precision_loss, reason = "at most 2^22, which f32 holds exactly")]
        let sum = sum as f32;
        sum * self.scale * other.scale
    }

    pub(crate) fn sketch(&self) -> Sketch {
        let mut sketch = Sketch::default();
        for (at, step) in self.steps.iter().enumerate() {
            sketch.0[at / 64] |= u64::from(*step > 0) << (at % 64);
        }
        sketch
    }

    fn from_sum(sum: &[f32; DIMENSIONS]) -> Option<Meaning> {
        let length = sum.iter().map(|x| x * x).sum::<f32>().sqrt();
        let most = sum.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
        if most == 0.0 {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, reason = "within -127 and 127 by the division")]
        let steps = sum.map(|x| (127.0 * x / most).round() as i8);
        Some(Meaning { steps, scale: most / (127.0 * length) })
    }
}

/// The word that was meant, for a word that is no piece by itself: the one of those that are one typing error away which
/// is used most.
pub(crate) fn correct(word: &str) -> Option<&'static str> {
    if !typo::is_corrected(word) || MODEL.beginnings.contains_key(word) {
        return None;
    }
    let mut best: Option<u32> = None;
    typo::misspellings(word, |text| {
        let close =
            MODEL.by_misspelling.find(text).filter(|piece| typo::is_one_off(word, MODEL.words[*piece as usize]));
        // the list of pieces begins with those that are used most
        best = close.chain(best).min();
    });
    best.map(|piece| MODEL.words[piece as usize])
}

impl Sketch {
    /// In how many dimensions two meanings lie on different sides, 0 to 256: about 128 for texts without relation.
    #[inline(always)]
    fn distance(self, other: Sketch) -> u16 {
        let differing: u32 = self.0.iter().zip(other.0).map(|(a, b)| (a ^ b).count_ones()).sum();
        u16::try_from(differing).unwrap_or(u16::MAX)
    }

    /// The distance to the nearer of each pair, in place of what `distances` held.
    pub(crate) fn distances(self, pairs: &[[Sketch; 2]], distances: &mut Vec<u16>) {
        distances.resize(pairs.len(), 0);
        // Counting bits takes a fifth of the time with instructions that the oldest processors do not have. Only what is
        // inlined here gets them, so this is a loop and no call.
        ARCH.dispatch(|| {
            for (distance, [one, other]) in distances.iter_mut().zip(pairs) {
                *distance = self.distance(*one).min(self.distance(*other));
            }
        });
    }
}

/// A piece of a text.
struct Counted {
    piece: u16,
    count: f32,
    weight: f32,
}

/// The list of pieces by their letters: those that begin a word, and those that go on with one.
struct Model {
    beginnings: HashMap<&'static str, u16>,
    continuations: HashMap<&'static str, u16>,
    /// All pieces, by number.
    words: Vec<&'static str>,
    /// Pieces that are words, under each of their misspellings.
    by_misspelling: Lookup,
}

impl Model {
    fn read() -> Model {
        let (mut beginnings, mut continuations) = (HashMap::new(), HashMap::new());
        let mut by_misspelling = Lookup::new();
        for (number, piece) in (0..).zip(PIECES.lines()) {
            match piece.strip_prefix("##") {
                Some(rest) => continuations.insert(rest, number),
                None => beginnings.insert(piece, number),
            };
            if typo::is_spelt(piece) {
                typo::misspellings(piece, |text| by_misspelling.insert(text, number.into()));
            }
        }
        Model { beginnings, continuations, words: PIECES.lines().collect(), by_misspelling }
    }

    /// Gives the number of every piece of the text. A word with letters that no piece has is left out.
    fn pieces(&self, text: &str, mut each: impl FnMut(u16)) {
        let text = text[..text.floor_char_boundary(MAX_TEXT)].to_lowercase();
        let mut cut = Vec::new();
        for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| (1..=MAX_WORD).contains(&word.len())) {
            cut.clear();
            if self.cut(word, &mut cut) {
                cut.iter().for_each(|piece| each(*piece));
            }
        }
    }

    /// Cuts a word into the longest pieces that there are, from its beginning. Says whether that came out even.
    fn cut(&self, word: &str, cut: &mut Vec<u16>) -> bool {
        let mut rest = word;
        while !rest.is_empty() {
            let pieces = if cut.is_empty() { &self.beginnings } else { &self.continuations };
            let ends = rest.char_indices().rev().map(|(at, c)| at + c.len_utf8());
            let Some((end, piece)) = ends.filter_map(|end| Some((end, *pieces.get(&rest[..end])?))).next() else {
                return false;
            };
            cut.push(piece);
            rest = &rest[end..];
        }
        true
    }

    fn sum(&self, counted: &[Counted]) -> Option<Meaning> {
        let (scales, rows) = TABLE.split_at(4 * self.len());
        let mut sum = [0.0_f32; DIMENSIONS];
        for Counted { piece, count, weight } in counted {
            let at = usize::from(*piece);
            let Some(scale) = scales[4 * at..].first_chunk().map(|bytes| f32::from_le_bytes(*bytes)) else { continue };
            let weight = weight * count.sqrt() * scale;
            let row = &rows[DIMENSIONS * at..DIMENSIONS * (at + 1)];
            sum.iter_mut().zip(row).for_each(|(sum, step)| *sum += weight * f32::from(step.cast_signed()));
        }
        Meaning::from_sum(&sum)
    }

    fn len(&self) -> usize {
        self.beginnings.len() + self.continuations.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meaning(text: &str, each_once: bool) -> Meaning {
        Meaning::of([(text, 1.0)], each_once).unwrap()
    }

    fn cosine(a: &str, b: &str) -> f32 {
        meaning(a, false).cosine(&meaning(b, false))
    }

    fn pieces(text: &str) -> Vec<&'static str> {
        let mut found = Vec::new();
        MODEL.pieces(text, |piece| found.extend(PIECES.lines().nth(usize::from(piece))));
        found
    }

    #[test]
    fn table_and_list_are_of_one_size() {
        assert_eq!(TABLE.len(), MODEL.len() * (4 + DIMENSIONS));
        assert_eq!(MODEL.len(), PIECES.lines().count());
    }

    #[test]
    fn words_are_cut_into_the_longest_pieces() {
        assert_eq!(pieces("Unaffable, time-zones!"), ["una", "##ffa", "##ble", "time", "zones"]);
        assert_eq!(pieces("\u{1f642} \0 (:*&!'\\`"), [""; 0]);
    }

    #[test]
    fn a_misspelt_word_is_taken_for_the_usual_one() {
        assert_eq!(
            (correct("tomorow"), correct("traslate"), correct("calender")),
            (Some("tomorrow"), Some("translate"), Some("calendar"))
        );
        for known in ["tomorrow", "colour", "abc", "zzzzzz", "天気天気天", "GitHub"] {
            assert_eq!(correct(known), None, "{known}");
        }
    }

    #[test]
    fn texts_that_mean_the_same_point_the_same_way() {
        assert!(cosine("delete a file", "remove a document") > cosine("delete a file", "weather forecast of a city"));
        assert!((cosine("send an email", "send an email") - 1.0).abs() < 0.01);
        assert!(cosine("send an email", "Send an EMAIL") > 0.99);
        assert!(Meaning::of([("", 1.0), ("\u{2028}", 1.0)], false).is_none());
    }

    #[test]
    fn repetition_counts_by_its_root_or_not_at_all() {
        let (often, once) = (meaning("time time time time zone", true), meaning("time zone", true));
        assert_eq!(often.steps, once.steps);
        assert!(meaning("time time time time zone", false).cosine(&once) < 0.99);
    }

    #[test]
    fn a_sketch_is_nearer_to_what_means_the_same() {
        let sketch = |text| meaning(text, false).sketch();
        let asked = sketch("delete a file");
        assert!(asked.distance(sketch("remove a document")) < asked.distance(sketch("weather forecast of a city")));
        assert_eq!(asked.distance(asked), 0);
    }
}
