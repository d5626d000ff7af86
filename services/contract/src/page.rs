//! Pages: how large one is, and the token that says where the next begins.

use callbook_domain::fault::{Fault, Reason, Result};
use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use sha2::{Digest, Sha256};

/// The mark of our tokens and of their form.
const FORM: &str = "c1";

/// How many entries a page has: what was asked for, `default` for 0, never more than `most`.
pub(crate) fn size(asked: u32, default: usize, most: usize) -> usize {
    match asked {
        0 => default,
        asked => usize::try_from(asked).unwrap_or(most).min(most),
    }
}

/// Where a listing stands. It belongs to one listing and one filter.
pub(crate) struct Cursor {
    filter: String,
}

impl Cursor {
    /// The cursor of a listing under a filter.
    pub(crate) fn new(listing: &str, filter: &[&str]) -> Self {
        let text = serde_json::json!([listing, filter]).to_string();
        let digest = Sha256::digest(text.as_bytes());
        Cursor { filter: HEXLOWER.encode(&digest[..8]) }
    }

    /// The token of a place.
    pub(crate) fn token(&self, place: &[&str]) -> String {
        BASE64URL_NOPAD.encode(serde_json::json!([FORM, self.filter, place]).to_string().as_bytes())
    }

    /// The place that a token names; nothing for the empty token, which is the beginning.
    ///
    /// # Errors
    /// `cursor_invalid` for what is no token of ours, `cursor_stale` for one of another listing or filter.
    pub(crate) fn place<const N: usize>(&self, token: &str) -> Result<Option<[String; N]>> {
        if token.is_empty() {
            return Ok(None);
        }
        let bytes = BASE64URL_NOPAD.decode(token.as_bytes()).map_err(|_| invalid())?;
        let (form, filter, place): (String, String, Vec<String>) =
            serde_json::from_slice(&bytes).map_err(|_| invalid())?;
        if form != FORM {
            return Err(invalid());
        }
        if filter != self.filter {
            return Err(Fault::new(Reason::CursorStale, "the cursor belongs to another filter")
                .fix("begin again without a cursor"));
        }
        place.try_into().map(Some).map_err(|_| invalid())
    }
}

/// The refusal of a token that we did not give.
pub(crate) fn invalid() -> Fault {
    Fault::new(Reason::CursorInvalid, "the cursor is not one of ours").fix("send `next_page_token` as it was given")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_leads_back_to_its_place_under_its_own_filter_alone() {
        let cursor = Cursor::new("rows", &["http", "tools"]);
        let token = cursor.token(&["7", "KEY"]);
        assert_eq!(cursor.place(&token).unwrap(), Some(["7".to_owned(), "KEY".to_owned()]));
        assert_eq!(cursor.place::<2>("").unwrap(), None);
        let other = Cursor::new("rows", &["http", ""]).place::<2>(&token).unwrap_err();
        assert_eq!(other.reason(), Reason::CursorStale);
        for strange in ["x", "!!", &BASE64URL_NOPAD.encode(b"[1]"), &BASE64URL_NOPAD.encode(b"{}"), &token[1..]] {
            assert_eq!(cursor.place::<2>(strange).unwrap_err().reason(), Reason::CursorInvalid, "{strange}");
        }
        assert_eq!(cursor.place::<1>(&token).unwrap_err().reason(), Reason::CursorInvalid);
    }

    #[test]
    fn a_page_has_its_bounds() {
        assert_eq!((size(0, 100, 500), size(1, 100, 500), size(9_999, 100, 500)), (100, 1, 500));
    }
}
