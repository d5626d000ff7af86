//! Why a command did not end well, and what a person reads of it.

use callbook_domain::contract::clean;

use super::problem::Refusal;

/// Why there is no answer to show.
#[derive(Debug)]
pub enum Trouble {
    /// What was typed, or what stands in a file that it names, cannot be asked.
    Usage(String),
    /// The server refused.
    Refused(Box<Refusal>),
    /// Nobody answers, or somebody else does.
    Unreachable {
        /// What happened.
        what: String,
        /// What to do about it.
        fix: String,
    },
    /// The answer broke off or cannot be shown.
    Broken(String),
    /// Whoever read our output has what it wanted.
    Closed,
}

impl Trouble {
    /// What was typed cannot be asked.
    pub fn usage(sentence: impl Into<String>) -> Self {
        Trouble::Usage(sentence.into())
    }

    /// Somebody answers, but not as a gateway does.
    pub fn foreign(what: impl Into<String>) -> Self {
        Trouble::Unreachable {
            what: what.into(),
            fix: "name the gateway of Callbook with --url or CALLBOOK_URL".into(),
        }
    }

    /// The exit code.
    pub fn code(&self) -> u8 {
        match self {
            Trouble::Closed => 0,
            Trouble::Refused(_) | Trouble::Broken(_) => 1,
            Trouble::Usage(_) => 2,
            Trouble::Unreachable { .. } => 3,
        }
    }

    /// One line, and a second where something can be done about it.
    pub fn lines(&self) -> Vec<String> {
        match self {
            Trouble::Closed => Vec::new(),
            Trouble::Usage(sentence) | Trouble::Broken(sentence) => vec![format!("callbook: {}", clean(sentence))],
            Trouble::Unreachable { what, fix } => {
                vec![format!("callbook: {}", clean(what)), format!("  fix: {}", clean(fix))]
            }
            Trouble::Refused(refusal) => refusal.lines(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_trouble_has_its_exit_code_and_at_most_two_lines() {
        let unreachable = Trouble::foreign("http://h answers 502 and not as a gateway does");
        assert_eq!((unreachable.code(), unreachable.lines().len()), (3, 2));
        assert_eq!((Trouble::usage("x").code(), Trouble::Closed.code()), (2, 0));
        assert!(Trouble::Closed.lines().is_empty());
    }

    #[test]
    fn what_others_say_cannot_write_on_the_terminal() {
        assert_eq!(Trouble::Broken("a\u{1b}[2Jb\nc".into()).lines(), ["callbook: a[2Jb c"]);
    }
}
