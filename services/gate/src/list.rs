//! List principals by name.

use callbook_domain::caller::Caller;
use callbook_domain::fault::Result;
use callbook_store::fault::fault;

use crate::principal::Kept;
use crate::store::principal as store;
use crate::{App, page};

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
    let after: String = page::place(FORM, &include_revoked, token)?.unwrap_or_default();
    if after.contains('\0') {
        return Err(page::invalid());
    }
    let mut connection = app.pool.acquire().await.map_err(fault)?;
    let limit = i64::try_from(size).unwrap_or(i64::MAX - 1) + 1;
    let mut found = store::page(&mut connection, &after, include_revoked, limit).await.map_err(fault)?;
    let more = found.len() > size;
    found.truncate(size);
    let next = match found.last() {
        Some(last) if more => page::token(FORM, &include_revoked, &last.name),
        Some(_) | None => String::new(),
    };
    Ok((found, next))
}
