//! How text becomes words: split, lower-case, function words dropped, English endings cut.

use std::borrow::Cow;

use frostem::{Algorithm, Stemmer};

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

/// Whether a lower-case word carries grammar only.
pub(crate) fn is_function_word(word: &str) -> bool {
    FUNCTION_WORDS.binary_search(&word).is_ok()
}

/// The word without its English ending; words of other scripts as they are.
pub(crate) fn stem(word: &str) -> Cow<'_, str> {
    if word.len() < 3 || !word.bytes().all(|b| b.is_ascii_lowercase()) {
        return Cow::Borrowed(word);
    }
    Stemmer::new(Algorithm::English).stem(word)
}

/// Gives every lower-case word of the text in order, function words too. Words end at whatever is neither letter nor
/// digit, between a small and a capital letter and between letter and digit. Scripts that are written without spaces
/// give single characters and pairs.
pub(crate) fn split(text: &str, mut each: impl FnMut(&str)) {
    let text = &text[..text.floor_char_boundary(MAX_TEXT)];
    let mut word = String::new();
    let mut length = 0;
    let mut before = Class::Gap;
    let mut unspaced = None;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let class = Class::of(c);
        if class != Class::Unspaced {
            unspaced = None;
        }
        if begins_word(before, class, rest.as_str()) {
            flush(&mut word, &mut each);
            length = 0;
        }
        match class {
            Class::Gap => {}
            Class::Unspaced => pair(unspaced.replace(c), c, &mut each),
            Class::Small | Class::Capital | Class::Digit => {
                if length < MAX_WORD {
                    word.extend(c.to_lowercase());
                }
                length += 1;
            }
        }
        before = class;
    }
    flush(&mut word, &mut each);
}

fn flush(word: &mut String, each: &mut impl FnMut(&str)) {
    if !word.is_empty() {
        each(word);
        word.clear();
    }
}

fn pair(before: Option<char>, c: char, each: &mut impl FnMut(&str)) {
    let mut text = String::with_capacity(8);
    text.push(c);
    each(&text);
    if let Some(before) = before {
        text.insert(0, before);
        each(&text);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Gap,
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
            _ if c.is_ascii() => Class::Gap,
            // Thai, Lao, Myanmar, Khmer, kana, Han, Hangul: no spaces, or particles grown onto the word.
            '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' => Class::Unspaced,
            '\u{3041}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' => Class::Unspaced,
            '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}' => Class::Unspaced,
            _ if c.is_uppercase() => Class::Capital,
            _ if c.is_numeric() => Class::Digit,
            _ if c.is_alphabetic() => Class::Small,
            _ => Class::Gap,
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
