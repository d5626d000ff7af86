//! Words that somebody else wrote: one line, and nothing in it that a reader would not see.

use crate::describe::is_hidden;

/// The text on one line, without controls, directional marks, zero-width and tag characters and other invisible
/// fillers. Emptied text is empty.
pub fn clean(text: &str) -> String {
    let seen: String =
        text.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).filter(|c| !is_hidden(*c)).collect();
    seen.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_reader_would_not_see_is_taken_out() {
        assert_eq!(clean("a\u{202e}b\u{200b}c\u{e0041}\u{e007f}d\0\u{1b}[31m\u{feff}"), "abcd[31m");
        assert_eq!(clean("one\r\n\n## two\u{2029}three\t four"), "one ## two three four");
        assert_eq!(clean("naïve 東京 🌧"), "naïve 東京 🌧");
    }
}
