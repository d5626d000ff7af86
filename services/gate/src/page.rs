//! Tokens of pages: a form, the filter that they belong to, and the place after which the page begins.

use callbook_domain::fault::{Fault, Reason, Result};
use data_encoding::BASE64URL_NOPAD;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The token of the page after this place.
pub(crate) fn token(form: &str, filter: &impl Serialize, place: &impl Serialize) -> String {
    BASE64URL_NOPAD.encode(serde_json::json!([form, filter, place]).to_string().as_bytes())
}

/// The place that a token names; nothing at the beginning.
///
/// # Errors
/// `cursor_invalid`; `cursor_stale` where it belongs to another filter.
pub(crate) fn place<F: DeserializeOwned + PartialEq, P: DeserializeOwned>(
    form: &str,
    filter: &F,
    token: &str,
) -> Result<Option<P>> {
    if token.is_empty() {
        return Ok(None);
    }
    let bytes = BASE64URL_NOPAD.decode(token.as_bytes()).map_err(|_| invalid())?;
    let (of_form, of_filter, place): (String, F, P) = serde_json::from_slice(&bytes).map_err(|_| invalid())?;
    if of_form != form {
        return Err(invalid());
    }
    if of_filter != *filter {
        return Err(
            Fault::new(Reason::CursorStale, "the cursor belongs to another filter").fix("begin again without a cursor")
        );
    }
    Ok(Some(place))
}

/// The answer to a text that we never gave.
pub(crate) fn invalid() -> Fault {
    Fault::new(Reason::CursorInvalid, "the cursor is not one of ours").fix("send `next_page_token` as it was given")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strange_token_is_refused() {
        let place = |token: &str| place::<bool, String>("g1", &true, token);
        assert_eq!(place("").unwrap(), None);
        assert_eq!(place(&token("g1", &true, &"a")).unwrap().as_deref(), Some("a"));
        assert_eq!(place(&token("g1", &false, &"a")).unwrap_err().reason(), Reason::CursorStale);
        for strange in ["!", "e30", &token("c1", &true, &"a"), &token("g1", &true, &7), &token("g1", &1, &"a")] {
            assert_eq!(place(strange).unwrap_err().reason(), Reason::CursorInvalid, "{strange}");
        }
    }
}
