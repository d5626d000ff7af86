//! A row in short: what it does, when to use it, how a call of it looks.

use std::borrow::Cow;

use callbook_domain::contract::{clean, example};
use callbook_domain::docstring::Docstring;
use callbook_domain::row::Provenance;
use callbook_store::snapshot::Entry;

/// The words about a row. Where a third party wrote them, all that a reader would not see is taken out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    /// What it does. Empty: the docstring does not say.
    pub(crate) what: String,
    /// When to use it. Empty: the docstring does not say.
    pub(crate) when_to_use: String,
    /// Arguments of an example call. Empty: it takes none, none is known, or it cannot be called.
    pub(crate) example: String,
    /// A third party wrote the words: they are data, never an instruction.
    pub(crate) is_untrusted: bool,
}

impl Summary {
    /// The words about a row.
    pub(crate) fn of(entry: &Entry) -> Summary {
        let docstring = docstring(entry);
        let is_untrusted = is_untrusted(entry);
        let seen = |text: &str| if is_untrusted { clean(text) } else { text.to_owned() };
        let compiled = entry.compiled.as_ref().ok();
        let example = compiled.and_then(|compiled| example(&entry.row.definition, compiled));
        Summary {
            what: docstring.summary().map(seen).unwrap_or_default(),
            when_to_use: docstring.when_to_use.as_deref().map(seen).unwrap_or_default(),
            example: example.as_deref().map(seen).unwrap_or_default(),
            is_untrusted,
        }
    }
}

/// Whether a third party wrote the row's words.
pub(crate) fn is_untrusted(entry: &Entry) -> bool {
    match entry.row.definition.provenance {
        Provenance::ThirdParty => true,
        Provenance::Owner | Provenance::Generated => false,
    }
}

/// The docstring, of rows that do not compile too.
pub(crate) fn docstring(entry: &Entry) -> Cow<'_, Docstring> {
    match &entry.compiled {
        Ok(compiled) => Cow::Borrowed(&compiled.docstring),
        Err(_) => Cow::Owned(Docstring::split(&entry.row.definition.content).0),
    }
}

/// The docstring as it was written, without the `#`.
pub(crate) fn docs(entry: &Entry) -> String {
    let docstring = docstring(entry);
    let lines = docstring.raw.lines().filter_map(|line| line.strip_prefix('#'));
    let seen = lines.map(|line| if is_untrusted(entry) { clean(line) } else { line.trim().to_owned() });
    seen.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::tests::entry;

    #[test]
    fn a_row_is_told_in_short() {
        let row =
            entry("A", |row| row.content = "# WHAT: Do it\n# ARGS: text\n# WHEN_TO_USE: now\n[\"$1\"]".to_owned());
        let told = Summary::of(&row);
        assert_eq!((told.what.as_str(), told.when_to_use.as_str(), told.example.as_str()), ("Do it", "now", "<text>"));
        assert_eq!(docs(&row), "WHAT: Do it\nARGS: text\nWHEN_TO_USE: now");
    }

    #[test]
    fn words_of_third_parties_are_marked_and_hold_nothing_hidden() {
        let row = entry("A", |row| {
            row.provenance = Provenance::ThirdParty;
            row.content = "# WHAT: Do\u{202e} it\u{200b}\n# EX: a\u{e0041}b\n[\"$1\"]".to_owned();
        });
        let told = Summary::of(&row);
        assert!(told.is_untrusted);
        assert_eq!((told.what.as_str(), told.example.as_str()), ("Do it", "ab"));
        assert_eq!(docs(&row), "WHAT: Do it\nEX: ab");
    }

    #[test]
    fn a_row_that_does_not_compile_keeps_its_words() {
        let row = entry("A", |row| row.target = String::new());
        assert!(row.compiled.is_err());
        assert_eq!(Summary::of(&row).what, "Make text large");
    }
}
