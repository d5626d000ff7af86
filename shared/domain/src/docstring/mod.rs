//! The leading `#` lines of a row's `content`: what people and models read before they call it.

mod args;

pub(crate) use args::each_once;
pub use args::{ArgDoc, ArgsDoc};

/// The longest docstring, in bytes.
pub const MAX_DOCSTRING: usize = 8 * 1024;

/// A docstring, read once. Values have their whitespace collapsed; an empty value is an absent one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Docstring {
    /// WHAT: what the row does.
    pub what: Option<String>,
    /// WHEN_TO_USE: in which situation to choose it.
    pub when_to_use: Option<String>,
    /// INPUT: what it takes, in prose.
    pub input: Option<String>,
    /// ARGS: its arguments, in order.
    pub args: ArgsDoc,
    /// OUTPUT: what it gives.
    pub output: Option<String>,
    /// PRECONDITIONS: what must hold before.
    pub preconditions: Option<String>,
    /// EFFECTS: what it changes.
    pub effects: Option<String>,
    /// POSTCONDITIONS: what holds after.
    pub postconditions: Option<String>,
    /// SAFE: whether it changes nothing; absent where the word is neither yes nor no.
    pub safe: Option<bool>,
    /// IDEMPOTENT: whether a second call changes nothing more.
    pub idempotent: Option<bool>,
    /// NOTES: what else to know about the capability.
    pub notes: Option<String>,
    /// INSTRUCTIONS: how to go about it.
    pub instructions: Option<String>,
    /// EX: an example body, as it stands; empty for a call without arguments.
    pub example: Option<String>,
    /// The lines before the first label and after EX.
    pub description: Vec<String>,
    /// The `#` lines as they were written.
    pub raw: String,
}

impl Docstring {
    /// Cuts `content` into its docstring and its template. Blank lines belong to the docstring only where more `#`
    /// lines follow; the template loses the blank lines around it and nothing else.
    pub fn split(content: &str) -> (Docstring, &str) {
        let content = content.strip_prefix('\u{feff}').unwrap_or(content);
        let mut end = 0;
        let mut at = 0;
        for line in content.split_inclusive('\n') {
            at += line.len();
            if line.starts_with('#') {
                end = at;
            } else if !line.trim().is_empty() {
                break;
            }
        }
        let (raw, rest) = content.split_at(end);
        (Docstring::read(raw), without_blank_lines(rest))
    }

    /// WHAT, or the first free line where no line says WHAT.
    pub fn summary(&self) -> Option<&str> {
        self.what.as_deref().or(self.description.first().map(String::as_str))
    }

    /// The free lines as one text.
    pub fn description_text(&self) -> Option<String> {
        (!self.description.is_empty()).then(|| self.description.join(" "))
    }

    /// The names of ARGS in order; none unless it is a list.
    pub fn argument_names(&self) -> Vec<String> {
        match &self.args {
            ArgsDoc::List(list) => list.iter().map(|arg| arg.name.clone()).collect(),
            ArgsDoc::Absent | ArgsDoc::None | ArgsDoc::SeeContent => Vec::new(),
        }
    }

    fn read(raw: &str) -> Docstring {
        let mut doc = Docstring { raw: raw.trim().to_owned(), ..Docstring::default() };
        let mut values: Vec<(Label, String)> = Vec::new();
        let mut in_value = false;
        for line in raw.lines().filter_map(|line| line.strip_prefix('#')) {
            match Label::of(line) {
                Some((label, text)) => {
                    values.push((label, text.to_owned()));
                    in_value = !matches!(label, Label::Ex);
                }
                None => match values.last_mut().filter(|_| in_value) {
                    Some((_, value)) => {
                        value.push(' ');
                        value.push_str(line);
                    }
                    None => doc.description.extend(collapsed(line)),
                },
            }
        }
        // The first line of a label wins, so the later ones are written first.
        for (label, value) in values.iter().rev() {
            doc.set(*label, value);
        }
        doc
    }

    fn set(&mut self, label: Label, text: &str) {
        let value = collapsed(text);
        match label {
            Label::What => self.what = value,
            Label::WhenToUse => self.when_to_use = value,
            Label::Input => self.input = value,
            Label::Args => self.args = value.as_deref().map_or(ArgsDoc::Absent, ArgsDoc::read),
            Label::Output => self.output = value,
            Label::Preconditions => self.preconditions = value,
            Label::Effects => self.effects = value,
            Label::Postconditions => self.postconditions = value,
            Label::Safe => self.safe = value.as_deref().and_then(yes_or_no),
            Label::Idempotent => self.idempotent = value.as_deref().and_then(yes_or_no),
            Label::Notes => self.notes = value,
            Label::Instructions => self.instructions = value,
            Label::Ex => self.example = Some(example(text)),
        }
    }
}

#[derive(Clone, Copy)]
enum Label {
    What,
    WhenToUse,
    Input,
    Args,
    Output,
    Preconditions,
    Effects,
    Postconditions,
    Safe,
    Idempotent,
    Notes,
    Instructions,
    Ex,
}

const LABELS: &[(&str, Label)] = &[
    ("WHAT", Label::What),
    ("WHEN_TO_USE", Label::WhenToUse),
    ("WHEN TO USE", Label::WhenToUse),
    ("INPUT", Label::Input),
    ("ARGS", Label::Args),
    ("OUTPUT", Label::Output),
    ("PRECONDITIONS", Label::Preconditions),
    ("EFFECTS", Label::Effects),
    ("POSTCONDITIONS", Label::Postconditions),
    ("SAFE", Label::Safe),
    ("IDEMPOTENT", Label::Idempotent),
    ("NOTES", Label::Notes),
    ("INSTRUCTIONS", Label::Instructions),
    ("EX", Label::Ex),
];

impl Label {
    /// The label that a line begins with, and what follows it. Whole words only: `EXPLAIN` is not `EX`.
    fn of(line: &str) -> Option<(Label, &str)> {
        let line = line.trim_start();
        LABELS.iter().find_map(|(word, label)| {
            let head = line.get(..word.len())?;
            let rest = &line[word.len()..];
            let whole = rest.is_empty() || rest.starts_with(|c: char| c == ':' || c.is_whitespace());
            if !whole || !head.eq_ignore_ascii_case(word) {
                return None;
            }
            let rest = rest.trim_start();
            Some((*label, rest.strip_prefix(':').unwrap_or(rest)))
        })
    }
}

/// The body of `[KEY]body[/KEY]`; other text as it stands.
fn example(text: &str) -> String {
    let text = text.trim();
    let tagged = || {
        let (key, rest) = text.strip_prefix('[')?.split_once(']')?;
        let key = crate::key::Key::parse(key).ok()?;
        rest.split_once(format!("[/{key}]").as_str()).map(|(body, _)| body)
    };
    tagged().unwrap_or(text).to_owned()
}

fn yes_or_no(value: &str) -> Option<bool> {
    let word = value.split(|c: char| !c.is_alphanumeric()).next()?.to_ascii_lowercase();
    match word.as_str() {
        "yes" | "true" | "y" | "1" => Some(true),
        "no" | "false" | "n" | "0" => Some(false),
        _ => None,
    }
}

fn collapsed(text: &str) -> Option<String> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    (!text.is_empty()).then_some(text)
}

fn without_blank_lines(text: &str) -> &str {
    let first = text.len() - text.trim_start().len();
    let start = text[..first].rfind('\n').map_or(0, |newline| newline + 1);
    let last = text.trim_end().len();
    let end = text[last..].find('\n').map_or(text.len(), |newline| last + newline);
    let kept = text.get(start..end).unwrap_or_default();
    kept.strip_suffix('\r').unwrap_or(kept)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_seeds_rows_are_read() {
        let now = "# Return the current time from the build clock.\n# WHEN_TO_USE: any object needs the time.\n\
                   # ARGS: none\n# EX: [NOW][/NOW]\n# OUTPUT: { now, today }";
        let (doc, template) = Docstring::split(now);
        assert_eq!(doc.summary(), Some("Return the current time from the build clock."));
        assert_eq!((doc.what.as_deref(), &doc.args, doc.example.as_deref()), (None, &ArgsDoc::None, Some("")));
        assert_eq!(doc.output.as_deref(), Some("{ now, today }"));
        assert_eq!(doc.raw, now);
        assert_eq!(template, "");

        let (doc, template) =
            Docstring::split("# ARGS: key | json_body\n# EX: [DIR_PATCH]ROUTER|{\"a\":\"b|c\"}[/DIR_PATCH]\n$2+");
        assert_eq!(doc.example.as_deref(), Some("ROUTER|{\"a\":\"b|c\"}"));
        assert_eq!(doc.argument_names(), ["key", "json_body"]);
        assert_eq!(template, "$2+");
    }

    #[test]
    fn labels_are_whole_words_at_the_start() {
        let (doc, _) = Docstring::split(
            "# EXPLAIN it\r\n#   wHaT   Find\r\n#  a   thing\r\n# what: again\r\n#When to use: often\r\n\
             # NOTES: see EX: below\r\n# SAFE: Yes, always\r\n# IDEMPOTENT no\r\n# EX: plain  text\r\n# after it\r\n#\r\n",
        );
        assert_eq!(doc.description, ["EXPLAIN it", "after it"]);
        assert_eq!(doc.what.as_deref(), Some("Find a thing"));
        assert_eq!(doc.when_to_use.as_deref(), Some("often"));
        assert_eq!(doc.notes.as_deref(), Some("see EX: below"));
        assert_eq!((doc.safe, doc.idempotent), (Some(true), Some(false)));
        assert_eq!(doc.example.as_deref(), Some("plain  text"));
    }

    #[test]
    fn the_first_of_two_labels_wins() {
        let (doc, _) = Docstring::split("# EX: [A]1[/A]\n# EX: [A]2[/A]\n# WHAT:\n# WHAT: late\n# SAFE: maybe");
        assert_eq!((doc.example.as_deref(), doc.what.as_deref(), doc.safe), (Some("1"), None, None));
    }

    #[test]
    fn the_template_is_what_is_left() {
        assert_eq!(Docstring::split("\n# WHAT: a\n\n# more\n\n  {\n# stays\n}  \r\n\n").1, "  {\n# stays\n}  ");
        assert_eq!(Docstring::split("You are kind.\n# not a docstring").1, "You are kind.\n# not a docstring");
        assert_eq!(Docstring::split("\u{feff}# WHAT: a\nb").1, "b");
        assert_eq!(Docstring::split(" \n \n"), (Docstring::default(), ""));
    }

    proptest! {
        #[test]
        fn any_content_is_split(content in "(#[^\\r\\n]{0,12}\n|[ \\t\\r]{0,2}\n|.{0,8}\n){0,8}") {
            let (doc, template) = Docstring::split(&content);
            prop_assert!(content.contains(template));
            prop_assert!(!template.starts_with('#'));
            prop_assert!(doc.raw.is_empty() || doc.raw.starts_with('#'));
        }
    }
}
