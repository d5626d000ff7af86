//! The watcher's rules: what each asks of a call, and what all of them say to it.

use callbook_domain::fault::{Fault, Reason, Result};
use regex::{Regex, RegexBuilder};

/// The longest pattern, in bytes.
const MAX_PATTERN: usize = 512;
/// The longest reason, in characters.
const MAX_REASON: usize = 256;
/// The longest name, in bytes.
const MAX_NAME: usize = 64;
/// The most bytes that a compiled pattern may take.
const MAX_PROGRAM: usize = 256 * 1024;
/// The most bytes that a pattern may use for what it remembers while it matches.
const MAX_MEMORY: usize = 1024 * 1024;

/// What a rule does with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The call goes on.
    Allow,
    /// The call is refused.
    Deny,
    /// The call waits for a person.
    Hold,
}

impl Action {
    /// The word in SQL and answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Action::Allow => "allow",
            Action::Deny => "deny",
            Action::Hold => "hold",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Action> {
        [Action::Allow, Action::Deny, Action::Hold].into_iter().find(|action| action.as_str() == word)
    }
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Unique, 1 to 64 characters of `A-Za-z0-9_.-`.
    pub name: String,
    /// Rules are asked by position, then by name.
    pub position: i32,
    /// Must match the whole key; the empty one matches any.
    pub pattern_key: String,
    /// Must match somewhere in the arguments; the empty one matches any.
    pub pattern_body: String,
    /// What is done.
    pub action: Action,
    /// Why, at most 256 characters. May be empty.
    pub reason: String,
}

impl Rule {
    /// Refuses what could not be a rule.
    ///
    /// # Errors
    /// `invalid_request` with the field.
    pub fn check(&self) -> Result<()> {
        if !is_name(&self.name) {
            return Err(invalid("name", "a rule's name is 1 to 64 characters of `A-Za-z0-9_.-`"));
        }
        check_reason(&self.reason)?;
        pattern(&self.pattern_key, Where::Whole).map_err(|why| invalid("pattern_key", why))?;
        pattern(&self.pattern_body, Where::Anywhere).map_err(|why| invalid("pattern_body", why))?;
        Ok(())
    }

    /// What a caller is told: the reason, or the name of a rule that gives none.
    fn reason(&self) -> String {
        if self.reason.is_empty() { self.name.clone() } else { self.reason.clone() }
    }
}

/// Whether a rule could have this name.
pub fn is_name(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    (1..=MAX_NAME).contains(&text.len()) && text.bytes().all(fits)
}

/// Refuses a reason that is too long for people, or that could break a line of a log.
///
/// # Errors
/// `invalid_request`.
pub fn check_reason(reason: &str) -> Result<()> {
    if reason.chars().count() > MAX_REASON || reason.chars().any(char::is_control) {
        return Err(invalid("reason", "a reason has at most 256 characters, none of them a control character"));
    }
    Ok(())
}

fn invalid(field: &'static str, why: impl Into<String>) -> Fault {
    Fault::new(Reason::InvalidRequest, why).with("field", field)
}

/// Where a pattern must match.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Where {
    Whole,
    Anywhere,
}

/// The compiled pattern; none for the empty one.
fn pattern(text: &str, place: Where) -> Result<Option<Regex>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    if text.len() > MAX_PATTERN {
        return Err(format!("a pattern has at most {MAX_PATTERN} bytes"));
    }
    if text.chars().any(char::is_control) {
        return Err(r"a pattern has no control characters; write them as `\n` or `\x07`".to_owned());
    }
    let compile = |text: &str| RegexBuilder::new(text).size_limit(MAX_PROGRAM).dfa_size_limit(MAX_MEMORY).build();
    // by itself first: `a)|(b` is no pattern, though it would be one between parentheses
    let alone = compile(text).map_err(|error| sentence(&error))?;
    match place {
        Where::Anywhere => Ok(Some(alone)),
        Where::Whole => compile(&format!(r"\A(?:{text})\z")).map(Some).map_err(|error| sentence(&error)),
    }
}

/// What is wrong with a pattern, in one line.
fn sentence(error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(_) => "the pattern compiles to more than 256 KiB".to_owned(),
        error => {
            let text = error.to_string();
            let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
            format!("the pattern does not compile: {}", last.trim_start_matches("error: "))
        }
    }
}

/// What the rules say to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on.
    Allow,
    /// It is refused.
    Deny(String),
    /// It waits for a person.
    Hold(String),
}

/// Rules that all compile, in the order in which they are asked.
#[derive(Debug)]
pub struct Rules(Vec<Compiled>);

#[derive(Debug)]
struct Compiled {
    rule: Rule,
    key: Option<Regex>,
    body: Option<Regex>,
}

impl Rules {
    /// Compiles all of them. One that does not compile spoils all: nobody knows what it was to keep out.
    ///
    /// # Errors
    /// The name of the rule and what is wrong with it.
    pub fn compile(rules: Vec<Rule>) -> Result<Rules, String> {
        let compiled = rules.into_iter().map(|rule| {
            let of = |text: &str, place| pattern(text, place).map_err(|why| format!("rule `{}`: {why}", rule.name));
            let (key, body) = (of(&rule.pattern_key, Where::Whole)?, of(&rule.pattern_body, Where::Anywhere)?);
            Ok(Compiled { rule, key, body })
        });
        compiled.collect::<Result<Vec<_>, String>>().map(Rules)
    }

    /// What the first rule says whose patterns both match. `forms` are the ways in which the arguments can be written: a
    /// rule that allows must match all of them, one that refuses or holds any, so that no way of writing slips by.
    pub fn verdict(&self, key: &str, forms: &[String]) -> Verdict {
        let found = self.0.iter().find(|compiled| compiled.matches(key, forms));
        match found.map(|compiled| (compiled.rule.action, compiled.rule.reason())) {
            None => Verdict::Hold("sensitive".to_owned()),
            Some((Action::Allow, _)) => Verdict::Allow,
            Some((Action::Deny, reason)) => Verdict::Deny(reason),
            Some((Action::Hold, reason)) => Verdict::Hold(reason),
        }
    }
}

impl Compiled {
    fn matches(&self, key: &str, forms: &[String]) -> bool {
        let body = |pattern: &Regex| match self.rule.action {
            Action::Allow => forms.iter().all(|form| pattern.is_match(form)),
            Action::Deny | Action::Hold => forms.iter().any(|form| pattern.is_match(form)),
        };
        self.key.as_ref().is_none_or(|pattern| pattern.is_match(key)) && self.body.as_ref().is_none_or(body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(name: &str, pattern_key: &str, pattern_body: &str, action: Action) -> Rule {
        Rule {
            name: name.into(),
            position: 0,
            pattern_key: pattern_key.into(),
            pattern_body: pattern_body.into(),
            action,
            reason: String::new(),
        }
    }

    fn verdict(rules: Vec<Rule>, key: &str, forms: &[&str]) -> Verdict {
        let forms: Vec<String> = forms.iter().map(|form| (*form).to_owned()).collect();
        Rules::compile(rules).unwrap().verdict(key, &forms)
    }

    #[test]
    fn without_a_rule_a_call_is_held() {
        assert_eq!(verdict(vec![], "PAY", &["{}"]), Verdict::Hold("sensitive".into()));
    }

    #[test]
    fn the_first_rule_whose_patterns_both_match_decides() {
        let rules = || {
            vec![
                rule("other-key", "REFUND", "", Action::Deny),
                rule("other-body", "PAY", "never", Action::Deny),
                rule("first", "PAY|REFUND", "amount", Action::Allow),
                rule("second", "PAY", "amount", Action::Deny),
            ]
        };
        assert_eq!(verdict(rules(), "PAY", &["amount 5"]), Verdict::Allow);
        assert_eq!(verdict(rules(), "PAY", &["never an amount"]), Verdict::Deny("other-body".into()));
        assert_eq!(verdict(rules(), "PAY", &["nothing"]), Verdict::Hold("sensitive".into()));
    }

    #[test]
    fn a_key_is_matched_whole_whatever_the_pattern_prefers() {
        for (pattern, key, matches) in
            [("PAY", "PAY", true), ("PAY", "PAY_ALL", false), ("PAY", "XPAY", false), ("PAY|PAY_ALL", "PAY_ALL", true)]
        {
            let found = verdict(vec![rule("r", pattern, "", Action::Allow)], key, &[""]);
            assert_eq!(found == Verdict::Allow, matches, "{pattern} {key}");
        }
    }

    #[test]
    fn an_escape_slips_past_no_rule() {
        let forms = [r#"{"op":"\u0064elete"}"#, r#"{"op":"delete"}"#];
        assert_eq!(verdict(vec![rule("r", "", "delete", Action::Deny)], "K", &forms), Verdict::Deny("r".into()));
        let doubled = [r#"{"n":1,"n":9000}"#, r#"{"n":9000}"#];
        let small = rule("r", "", r#""n":[0-9],"#, Action::Allow);
        assert_eq!(verdict(vec![small], "K", &doubled), Verdict::Hold("sensitive".into()));
    }

    #[test]
    fn what_is_no_pattern_is_refused_with_its_field() {
        let field = |rule: Rule| rule.check().unwrap_err().metadata().to_vec();
        for bad in ["(", "a)|(b", "(?x)a # b", "[", r"\p{Nothing}", "a\nb", &"x".repeat(513), r"(\w{200}){200}"] {
            assert_eq!(field(rule("r", bad, "", Action::Deny)), vec![("field", "pattern_key".to_owned())], "{bad}");
        }
        assert_eq!(field(rule("r", "", "(", Action::Deny)), vec![("field", "pattern_body".to_owned())]);
        assert_eq!(field(rule("no name", "", "", Action::Deny)), vec![("field", "name".to_owned())]);
        let said = Rule { reason: "a\nb".into(), ..rule("r", "", "", Action::Deny) };
        assert_eq!(field(said), vec![("field", "reason".to_owned())]);
    }

    #[test]
    fn one_broken_rule_spoils_all() {
        let rules = vec![rule("good", "", "", Action::Allow), rule("bad", "", "(", Action::Deny)];
        assert!(Rules::compile(rules).unwrap_err().starts_with("rule `bad`: "));
    }

    proptest::proptest! {
        #[test]
        fn what_passes_the_check_compiles(key in "\\PC{0,12}", body in "\\PC{0,12}") {
            let rule = rule("r", &key, &body, Action::Hold);
            proptest::prop_assert_eq!(rule.check().is_ok(), Rules::compile(vec![rule]).is_ok());
        }
    }
}
