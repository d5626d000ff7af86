//! What a caller sees of the book, in the words that bind a page token to it.

use callbook_domain::caller::Caller;

/// The same text for callers that see the same keys.
pub(crate) fn sight(caller: &Caller) -> String {
    caller.sight()
}

#[cfg(test)]
pub(crate) fn narrowed(prefix: &str) -> Caller {
    use callbook_domain::caller::{Grant, May, Principal};
    let grants = vec![Grant { may: May::Invoke, prefix: prefix.to_owned() }];
    Caller::Principal(Principal { id: uuid::Uuid::nil(), name: "team".to_owned(), grants, vouched_until: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_that_see_the_same_keys_have_the_same_sight() {
        assert_eq!(sight(&Caller::Owner), sight(&Caller::Anonymous));
        assert_eq!(sight(&narrowed("")), sight(&Caller::Owner));
        assert_ne!(sight(&narrowed("A")), sight(&narrowed("B")));
        assert_ne!(sight(&narrowed("A")), sight(&Caller::Owner));
    }
}
