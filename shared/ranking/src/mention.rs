//! Keys that a question names, in whatever way it writes them.

use callbook_domain::key::{Key, MAX_KEY};

use crate::sharing::Lookup;
use crate::words::{is_function_word, split};

/// Every key by its letters and digits alone, so that case, spaces, dots, dashes and underscores make no difference.
#[derive(Clone)]
pub(crate) struct Mentions {
    by_letters: Lookup,
    /// How many keys have so many letters and digits; spares looking for what cannot be there.
    lengths: Vec<u32>,
}

/// A word of the question, function words too.
#[derive(Debug)]
pub(crate) struct Token {
    pub(crate) word: String,
    /// Whether no space stands between this word and the one before.
    pub(crate) joined: bool,
}

/// How a question writes a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// As one piece (`email-send`) or letter by letter in its own case: nothing else can be meant.
    Written,
    /// As all the words that the question has.
    Whole,
    /// As so many words of a sentence, which may mean something else.
    Words(usize),
}

/// A key that a question names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mention {
    pub(crate) slot: u32,
    pub(crate) spelling: Spelling,
}

impl Mentions {
    pub(crate) fn new() -> Self {
        Mentions { by_letters: Lookup::new(), lengths: vec![0; MAX_KEY + 1] }
    }

    pub(crate) fn insert(&mut self, key: &Key, slot: u32) {
        let letters = letters(key);
        self.lengths[letters.len()] += 1;
        self.by_letters.insert(letters.as_bytes(), slot);
    }

    pub(crate) fn remove(&mut self, key: &Key, slot: u32) {
        let letters = letters(key);
        self.lengths[letters.len()] -= 1;
        self.by_letters.remove(letters.as_bytes(), slot);
    }

    /// The keys that the question names, in its order; of overlapping ones the longest. `key` gives the key of a slot,
    /// `accept` whether it may be named so.
    pub(crate) fn find<'k>(
        &self,
        text: &str,
        tokens: &[Token],
        key: impl Fn(u32) -> Option<&'k Key>,
        accept: impl Fn(Mention) -> bool,
    ) -> Vec<Mention> {
        let mut mentions = Vec::new();
        let mut from = 0;
        while from < tokens.len() {
            let mut next = from + 1;
            let mut letters = String::new();
            let mut longest = Vec::new();
            for to in from..tokens.len() {
                letters.push_str(&tokens[to].word);
                match self.lengths.get(letters.len()) {
                    None => break,
                    Some(0) => continue,
                    Some(_) => {}
                }
                let found = self.spelt(text, &letters, spelling(tokens, from, to), &key, &accept);
                if !found.is_empty() {
                    (longest, next) = (found, to + 1);
                }
            }
            mentions.append(&mut longest);
            from = next;
        }
        mentions
    }

    /// The keys of these letters; first those that stand in the text in their own case.
    fn spelt<'k>(
        &self,
        text: &str,
        letters: &str,
        spelling: Spelling,
        key: &impl Fn(u32) -> Option<&'k Key>,
        accept: &impl Fn(Mention) -> bool,
    ) -> Vec<Mention> {
        let mut found = Vec::new();
        for slot in self.by_letters.find(letters.as_bytes()) {
            let Some(key) = key(slot).filter(|key| self::letters(key) == letters) else { continue };
            let verbatim = is_verbatim(text, key.as_str());
            if spelling == Spelling::Words(1) && !verbatim && is_function_word(letters) {
                continue;
            }
            let mention = Mention { slot, spelling: if verbatim { Spelling::Written } else { spelling } };
            if accept(mention) {
                found.push((!verbatim, key, mention));
            }
        }
        found.sort_unstable_by_key(|(later, key, _)| (*later, *key));
        found.into_iter().map(|(_, _, mention)| mention).collect()
    }
}

/// Whether the key stands in the text in its own case, and looks like no word that begins a sentence.
fn is_verbatim(text: &str, key: &str) -> bool {
    key.bytes().skip(1).any(|b| !b.is_ascii_lowercase())
        && text.contains(key)
        && text.split_whitespace().any(|piece| piece.trim_matches(|c: char| !c.is_alphanumeric() && c != '_') == key)
}

fn spelling(tokens: &[Token], from: usize, to: usize) -> Spelling {
    let words = to - from + 1;
    let one_piece = words > 1 && tokens[from + 1..=to].iter().all(|t| t.joined);
    match one_piece {
        true => Spelling::Written,
        false if words == tokens.len() => Spelling::Whole,
        false => Spelling::Words(words),
    }
}

fn letters(key: &Key) -> String {
    let mut letters = String::with_capacity(key.as_str().len());
    split(key.as_str(), |word, _| letters.push_str(word));
    letters
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [&str; 6] = ["EMAIL_SEND", "EMAIL", "NOW", "github.issues.create", "IT", "getUserName"];

    fn named(text: &str) -> Vec<&'static str> {
        let keys = KEYS.map(|k| Key::parse(k).unwrap());
        let mut mentions = Mentions::new();
        for (slot, key) in (0..).zip(&keys) {
            mentions.insert(key, slot);
        }
        let mut tokens = Vec::new();
        for piece in text.split_whitespace() {
            let mut joined = false;
            split(piece, |word, _| {
                tokens.push(Token { word: word.to_owned(), joined });
                joined = true;
            });
        }
        let mentions = mentions.find(text, &tokens, |slot| keys.get(slot as usize), |_| true);
        mentions.into_iter().map(|mention| KEYS[mention.slot as usize]).collect()
    }

    #[test]
    fn a_key_is_named_in_any_case_and_with_any_separator() {
        for text in ["EMAIL_SEND", "use email_send!", "email send", "the Email-Send row", "`email.send`"] {
            assert_eq!(named(text), ["EMAIL_SEND"], "{text}");
        }
        assert_eq!(named("call github.issues.create"), ["github.issues.create"]);
        assert_eq!(named("getusername or get_user_name"), ["getUserName", "getUserName"]);
        assert_eq!(named("emailer, snow"), [""; 0]);
    }

    #[test]
    fn keys_come_in_the_order_of_the_question_and_the_longest_wins() {
        assert_eq!(named("first now, then email send, then email"), ["NOW", "EMAIL_SEND", "EMAIL"]);
    }

    #[test]
    fn a_function_word_names_no_key_unless_it_is_all_there_is() {
        assert_eq!(named("what time is it"), [""; 0]);
        assert_eq!(named("it"), ["IT"]);
        assert_eq!(named("run IT please"), ["IT"]);
    }
}
