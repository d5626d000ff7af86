//! Which keys somebody may have meant.

use crate::key::Key;

/// At most this many are named.
const MOST: usize = 6;
/// At most this many edits apart.
const EDITS: usize = 3;

/// Keys that contain the attempt or are contained in it, then keys within three edits, nearest first; at most six.
pub fn nearest<'a>(attempted: &str, keys: impl Iterator<Item = &'a Key>) -> Vec<Key> {
    let attempt = attempted.to_ascii_uppercase();
    if attempt.is_empty() || attempt.len() > crate::key::MAX_KEY {
        return Vec::new();
    }
    let mut found: Vec<(usize, usize, &Key)> = keys
        .filter_map(|key| {
            let text = key.as_str().to_ascii_uppercase();
            let apart = text.len().abs_diff(attempt.len());
            if text.contains(&attempt) || attempt.contains(&text) {
                return Some((0, apart, key));
            }
            let edits = if apart <= EDITS { strsim::levenshtein(&text, &attempt) } else { usize::MAX };
            (edits <= EDITS).then_some((1, edits, key))
        })
        .collect();
    found.sort();
    found.into_iter().take(MOST).map(|(_, _, key)| key.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containment_comes_before_edits_and_far_keys_do_not_come() {
        let keys: Vec<Key> = ["ZZ_TEST_TEMPERATURE", "NOW", "NOW_LOCAL", "NO", "GITHUB"]
            .iter()
            .map(|k| Key::parse(k).unwrap())
            .collect();
        let near = |text: &str| nearest(text, keys.iter()).iter().map(Key::to_string).collect::<Vec<_>>();
        assert_eq!(near("ZZ_TEST_TEMPERATUR"), ["ZZ_TEST_TEMPERATURE"]);
        assert_eq!(near("now"), ["NOW", "NO", "NOW_LOCAL"]);
        assert_eq!(near("GITHBU"), ["GITHUB"]);
        assert!(near("").is_empty() && near(&"x".repeat(10_000)).is_empty());
    }
}
