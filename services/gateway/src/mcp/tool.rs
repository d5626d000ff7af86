//! Names of tools: keys, and stable shorter names for keys that hosts refuse.

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

/// The longest name that every host takes.
const LONGEST: usize = 64;
/// Hex digits of the digest at the end of a shortened name.
const DIGITS: usize = 8;

/// The name under which a row of this key is listed.
pub(super) fn name(key: &str) -> String {
    if key.len() <= LONGEST { key.to_owned() } else { shortened(key) }
}

/// How the keys begin that a shortened name may stand for. Nothing where the name is none.
pub(super) fn beginning(name: &str) -> Option<&str> {
    let (beginning, digest) = name.rsplit_once('_')?;
    let is_digest = digest.len() == DIGITS && digest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (name.len() == LONGEST && is_digest).then_some(beginning)
}

/// The text with a digest of the whole in the place of what is too much.
pub(super) fn shortened(text: &str) -> String {
    let keep = LONGEST - DIGITS - 1;
    let plain: String = text.chars().map(|c| if is_plain(c) { c } else { '_' }).take(keep).collect();
    format!("{plain}_{}", &HEXLOWER.encode(&Sha256::digest(text))[..DIGITS])
}

/// Whether hosts take the text as the name of a tool or of a property.
pub(super) fn is_taken(text: &str) -> bool {
    !text.is_empty() && text.len() <= LONGEST && text.chars().all(is_plain)
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_fits_is_its_own_name() {
        assert_eq!(name("github.issues.create"), "github.issues.create");
        let key = "k".repeat(64);
        assert_eq!(name(&key), key);
        assert_eq!(beginning("github.issues.create_12345678"), None, "shorter than a shortened one");
    }

    #[test]
    fn a_long_key_has_a_short_name_of_its_own() {
        let (one, other) = ("k".repeat(100) + "a", "k".repeat(100) + "b");
        assert_ne!(name(&one), name(&other));
        assert_eq!(name(&one), name(&one));
        assert_eq!(name(&one).len(), 64);
        assert_eq!(beginning(&name(&one)), Some("k".repeat(55).as_str()));
    }

    #[test]
    fn names_of_properties_hold_what_hosts_take() {
        assert!(is_taken("a-b.c_d") && !is_taken("filter[name]") && !is_taken("") && !is_taken("é"));
        assert!(is_taken(&shortened("filter[name]")) && shortened("filter[name]").starts_with("filter_name__"));
        assert_ne!(shortened("filter[name]"), shortened("filter(name)"));
    }
}
