//! How text becomes words: split, lower-case, function words dropped, English endings cut.

use std::borrow::Cow;
use std::sync::LazyLock;

use frostem::{Algorithm, Stemmer};
use hashbrown::HashSet;

/// The longest text that is read, in bytes; what follows is ignored. A question, a docstring section and an
/// argument list are far shorter; the bound keeps one hostile row or question from costing everybody time.
pub(crate) const MAX_TEXT: usize = 16 * 1024;

/// The longest word, in characters; what follows in the same run is ignored.
const MAX_WORD: usize = 48;

/// English words that carry grammar and no meaning, sorted. Verbs such as get, find and show are not here: they tell
/// one capability from another.
const FUNCTION_WORDS: &[&str] = &[
    "a", "about", "all", "also", "am", "an", "and", "any", "are", "aren", "as", "at", "be", "because", "been", "being",
    "but", "by", "can", "could", "couldn", "d", "did", "didn", "do", "does", "doesn", "doing", "don", "each", "etc",
    "for", "from", "had", "has", "hasn", "have", "haven", "having", "he", "her", "here", "him", "his", "how", "i",
    "if", "in", "into", "is", "isn", "it", "its", "itself", "just", "ll", "m", "may", "me", "might", "mine", "must",
    "my", "myself", "of", "on", "onto", "or", "our", "ours", "please", "re", "s", "shall", "she", "should", "so",
    "some", "such", "t", "than", "that", "the", "their", "theirs", "them", "then", "there", "these", "they", "this",
    "those", "through", "to", "too", "upon", "us", "ve", "very", "via", "was", "wasn", "we", "were", "weren", "what",
    "when", "where", "which", "while", "who", "whom", "whose", "why", "will", "with", "won", "would", "wouldn", "you",
    "your", "yours",
];

static IS_FUNCTION_WORD: LazyLock<HashSet<&str>> = LazyLock::new(|| FUNCTION_WORDS.iter().copied().collect());

/// Whether a lower-case word carries grammar only.
pub(crate) fn is_function_word(word: &str) -> bool {
    IS_FUNCTION_WORD.contains(word)
}

/// The word without its English ending; words of other scripts as they are.
pub(crate) fn stem(word: &str) -> Cow<'_, str> {
    if word.len() < 3 || !word.bytes().all(|b| b.is_ascii_lowercase()) {
        return Cow::Borrowed(word);
    }
    Stemmer::new(Algorithm::English).stem(word)
}

/// What stands between a word and the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Gap {
    /// Nothing that ends a piece: `send_email`, `sendEmail`.
    Joined,
    /// A space.
    Space,
    /// A mark that ends a phrase, or the beginning of the text.
    Stop,
}

/// Gives every lower-case word of the text in order, function words too, with what stands before it. Words end at
/// whatever is neither letter nor digit, between a small and a capital letter and between letter and digit. Scripts
/// that are written without spaces give single characters and pairs.
pub(crate) fn split(text: &str, mut each: impl FnMut(&str, Gap)) {
    let text = &text[..text.floor_char_boundary(MAX_TEXT)];
    let mut word = Building { text: String::new(), length: 0, gap: Gap::Stop };
    let mut before = Class::Gap(Gap::Stop);
    let mut unspaced = None;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let class = Class::of(c);
        if begins_word(before, class, rest.as_str()) {
            word.give(&mut each);
        }
        match class {
            Class::Gap(gap) => word.gap = word.gap.max(gap),
            Class::Unspaced => pair(unspaced, c, &mut each),
            Class::Small | Class::Capital | Class::Digit => word.push(c),
        }
        unspaced = (class == Class::Unspaced).then_some(c);
        before = class;
    }
    word.give(&mut each);
}

/// A word that is not over yet.
struct Building {
    text: String,
    length: usize,
    gap: Gap,
}

impl Building {
    fn push(&mut self, c: char) {
        if self.length < MAX_WORD {
            self.text.extend(c.to_lowercase());
        }
        self.length += 1;
    }

    fn give(&mut self, each: &mut impl FnMut(&str, Gap)) {
        if !self.text.is_empty() {
            each(&self.text, self.gap);
            self.text.clear();
            self.length = 0;
            self.gap = Gap::Joined;
        }
    }
}

fn pair(before: Option<char>, c: char, each: &mut impl FnMut(&str, Gap)) {
    let mut text = String::with_capacity(8);
    text.push(c);
    each(&text, Gap::Stop);
    if let Some(before) = before {
        text.insert(0, before);
        each(&text, Gap::Stop);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Gap(Gap),
    Small,
    Capital,
    Digit,
    Unspaced,
}

impl Class {
    fn of(c: char) -> Class {
        match c {
            'a'..='z' => Class::Small,
            'A'..='Z' => Class::Capital,
            '0'..='9' => Class::Digit,
            '.' | ',' | ';' | ':' | '!' | '?' | '(' | ')' | '|' | '/' => Class::Gap(Gap::Stop),
            _ if c.is_whitespace() => Class::Gap(Gap::Space),
            _ if c.is_ascii() => Class::Gap(Gap::Joined),
            // Thai, Lao, Myanmar, Khmer, kana, Han, Hangul: no spaces, or particles grown onto the word.
            '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' => Class::Unspaced,
            '\u{3041}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' => Class::Unspaced,
            '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}' => Class::Unspaced,
            _ if c.is_uppercase() => Class::Capital,
            _ if c.is_numeric() => Class::Digit,
            _ if c.is_alphabetic() => Class::Small,
            _ => Class::Gap(Gap::Stop),
        }
    }
}

/// Whether a word ends before this character. `rest` is what follows it: `HTTPServer` is `HTTP` and `Server`, while
/// `URLs` is one word.
fn begins_word(before: Class, now: Class, rest: &str) -> bool {
    match (before, now) {
        (Class::Capital, Class::Small) => false,
        (Class::Capital, Class::Capital) => {
            let mut next = rest.chars();
            let small = next.next().filter(|c| Class::of(*c) == Class::Small);
            let plural = small == Some('s') && next.next().is_none_or(|c| Class::of(c) != Class::Small);
            small.is_some() && !plural
        }
        _ => before != now,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        split(text, |word, _| words.push(word.to_owned()));
        words
    }

    #[test]
    fn words_end_at_marks_case_and_digits() {
        assert_eq!(words("getUserName, base64_encode"), ["get", "user", "name", "base", "64", "encode"]);
        assert_eq!(words("HTTPServer URLs IDs2 iPhone"), ["http", "server", "urls", "ids", "2", "i", "phone"]);
        assert_eq!(words("don't; what's"), ["don", "t", "what", "s"]);
        assert_eq!(words("ÉCOLE Straße"), ["école", "straße"]);
        assert_eq!(words("\0 (:*&!'\\` "), [""; 0]);
    }

    #[test]
    fn unspaced_scripts_give_characters_and_pairs() {
        assert_eq!(words("天気API予報"), ["天", "気", "天気", "api", "予", "報", "予報"]);
    }

    #[test]
    fn a_word_knows_what_stands_before_it() {
        let mut gaps = Vec::new();
        split("send_email now, please", |_, gap| gaps.push(gap));
        assert_eq!(gaps, [Gap::Stop, Gap::Joined, Gap::Space, Gap::Stop]);
    }

    #[test]
    fn the_list_of_function_words_is_sorted_and_has_no_verb_that_tells_rows_apart() {
        assert!(FUNCTION_WORDS.is_sorted());
        assert!((100..=140).contains(&FUNCTION_WORDS.len()));
        assert!(!["get", "find", "show", "list", "now", "time"].iter().any(|verb| is_function_word(verb)));
        assert!(["is", "it", "what"].iter().all(|word| is_function_word(word)));
    }

    #[test]
    fn english_endings_are_cut_and_nothing_else() {
        assert_eq!([stem("issues"), stem("running"), stem("école"), stem("天気")], ["issu", "run", "école", "天気"]);
    }
}
