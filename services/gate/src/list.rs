//! List principals by name.

use callbook_domain::caller::Caller;
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_store::fault::fault;
use data_encoding::BASE64URL_NOPAD;

use crate::principal::Kept;
use crate::{App, store};

/// The mark of our tokens and of their form.
const FORM: &str = "g1";

/// A page of at most `size` principals, and the token of the next; empty at the end.
///
/// # Errors
/// `unauthorized`, `forbidden`, `cursor_invalid`, `cursor_stale`.
pub(crate) async fn list(
    app: &App,
    caller: &Caller,
    include_revoked: bool,
    size: usize,
    token: &str,
) -> Result<(Vec<Kept>, String)> {
    caller.require_owner()?;
    let after = place(include_revoked, token)?;
    let mut connection = app.pool.acquire().await.map_err(fault)?;
    let limit = i64::try_from(size).unwrap_or(i64::MAX - 1) + 1;
    let mut found = store::page(&mut connection, &after, include_revoked, limit).await.map_err(fault)?;
    let more = found.len() > size;
    found.truncate(size);
    let next = match found.last() {
        Some(last) if more => {
            BASE64URL_NOPAD.encode(serde_json::json!([FORM, include_revoked, last.name]).to_string().as_bytes())
        }
        Some(_) | None => String::new(),
    };
    Ok((found, next))
}

/// The name after which the page begins.
fn place(include_revoked: bool, token: &str) -> Result<String> {
    if token.is_empty() {
        return Ok(String::new());
    }
    let bytes = BASE64URL_NOPAD.decode(token.as_bytes()).map_err(|_| invalid())?;
    let (form, filter, name): (String, bool, String) = serde_json::from_slice(&bytes).map_err(|_| invalid())?;
    if form != FORM || name.contains('\0') {
        return Err(invalid());
    }
    if filter != include_revoked {
        return Err(
            Fault::new(Reason::CursorStale, "the cursor belongs to another filter").fix("begin again without a cursor")
        );
    }
    Ok(name)
}

fn invalid() -> Fault {
    Fault::new(Reason::CursorInvalid, "the cursor is not one of ours").fix("send `next_page_token` as it was given")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strange_token_is_refused() {
        let token = |text: &str| BASE64URL_NOPAD.encode(text.as_bytes());
        assert_eq!(place(true, "").unwrap(), "");
        assert_eq!(place(true, &token(r#"["g1",true,"a"]"#)).unwrap(), "a");
        assert_eq!(place(false, &token(r#"["g1",true,"a"]"#)).unwrap_err().reason(), Reason::CursorStale);
        for strange in ["!", "e30", &token(r#"["c1",true,"a"]"#), &token("[]")] {
            assert_eq!(place(true, strange).unwrap_err().reason(), Reason::CursorInvalid, "{strange}");
        }
    }
}
