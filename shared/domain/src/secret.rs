//! Which secret may go where. Names and bindings alone: the values are the executors'.

use std::collections::BTreeMap;

use crate::key::Key;

/// Where one secret may be used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Binding {
    /// Origins that it may be sent to, as `scheme://host[:port]` in the URL standard's spelling.
    pub origins: Vec<String>,
    /// Key prefixes of the rows that may name it; none means every row.
    pub keys: Vec<String>,
}

/// Every configured secret by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bindings(pub BTreeMap<String, Binding>);

/// Whether a row may use a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may.
    Allowed,
    /// Nobody configured a secret of this name, so it is used nowhere.
    NotConfigured,
    /// It is not bound to this origin.
    WrongOrigin,
    /// It is not bound to this key.
    WrongKey,
}

impl Bindings {
    /// Whether the row of this key may send the secret to this origin.
    pub fn verdict(&self, name: &str, origin: &str, key: &Key) -> Verdict {
        let Some(binding) = self.0.get(name) else { return Verdict::NotConfigured };
        if !binding.origins.iter().any(|bound| same_origin(bound, origin)) {
            return Verdict::WrongOrigin;
        }
        let keyed = binding.keys.is_empty() || binding.keys.iter().any(|prefix| key.as_str().starts_with(prefix));
        if keyed { Verdict::Allowed } else { Verdict::WrongKey }
    }
}

/// Two spellings of one origin: `https://api.x.ai`, `https://API.x.ai:443/`.
fn same_origin(left: &str, right: &str) -> bool {
    match (url::Url::parse(left), url::Url::parse(right)) {
        (Ok(left), Ok(right)) => left.origin().is_tuple() && left.origin() == right.origin(),
        (Err(_), _) | (_, Err(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_goes_to_its_origins_for_its_keys_and_nowhere_else() {
        let binding = Binding { origins: vec!["https://api.x.ai".into()], keys: vec!["GROK_".into()] };
        let bindings = Bindings([("K".to_owned(), binding)].into());
        let (grok, other) = (Key::parse("GROK_MODELS").unwrap(), Key::parse("OTHER").unwrap());
        assert_eq!(bindings.verdict("K", "https://API.x.ai:443/", &grok), Verdict::Allowed);
        assert_eq!(bindings.verdict("K", "https://api.x.ai.evil.example", &grok), Verdict::WrongOrigin);
        assert_eq!(bindings.verdict("K", "http://api.x.ai", &grok), Verdict::WrongOrigin);
        assert_eq!(bindings.verdict("K", "https://api.x.ai", &other), Verdict::WrongKey);
        assert_eq!(bindings.verdict("L", "https://api.x.ai", &grok), Verdict::NotConfigured);
    }
}
