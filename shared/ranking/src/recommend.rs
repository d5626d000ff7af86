//! The operator's standing answers.

use std::collections::HashSet;

use callbook_domain::key::Key;

use crate::entry::Recommendation;
use crate::words::{is_function_word, split, stem};

/// A recommendation, its pattern read.
#[derive(Debug)]
pub(crate) struct Standing {
    pub(crate) key: Key,
    pub(crate) demote: bool,
    words: Vec<String>,
}

impl Standing {
    pub(crate) fn read(recommendation: Recommendation) -> Self {
        let (mut telling, mut all) = (Vec::new(), Vec::new());
        split(&recommendation.pattern, |word, _| {
            if !is_function_word(word) {
                telling.push(stem(word).into_owned());
            }
            all.push(word.to_owned());
        });
        let words = if telling.is_empty() { all } else { telling };
        Standing { key: recommendation.key, demote: recommendation.demote, words }
    }

    /// Whether the question is of this kind. `stems` are its words without endings, function words as they are.
    pub(crate) fn applies(&self, stems: &HashSet<&str>) -> bool {
        !self.words.is_empty() && self.words.iter().all(|word| stems.contains(word.as_str()))
    }

    /// How exactly the pattern says what it is for.
    pub(crate) fn exactness(&self) -> usize {
        self.words.len()
    }
}
