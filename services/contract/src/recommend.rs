//! Set, list and take back standing answers.

use callbook_domain::caller::Caller;
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::key::Key;
use callbook_store::snapshot::Recommended;
use callbook_store::write;

use crate::App;
use crate::page::Cursor;

/// What is to stand.
pub(crate) struct Standing<'a> {
    /// Words that the question must hold.
    pub(crate) pattern: &'a str,
    /// The answer.
    pub(crate) key: &'a Key,
    /// The row comes last instead of first.
    pub(crate) demote: bool,
    /// Why.
    pub(crate) reason: &'a str,
}

/// Sets a standing answer; gives it as it is stored.
///
/// # Errors
/// As `callbook_store::write::recommend`.
pub(crate) async fn recommend(app: &App, caller: &Caller, standing: Standing<'_>) -> Result<Recommended> {
    let Standing { pattern, key, demote, reason } = standing;
    let revision = write::recommend(&app.writer(caller), pattern, key, demote, reason).await?;
    let snapshot = app.directory.at_least(revision).await?;
    let stored = snapshot.recommended.iter().find(|each| each.pattern == pattern.trim() && each.key == *key);
    stored.cloned().ok_or_else(|| Fault::new(Reason::RowMoved, "somebody took the standing answer back meanwhile"))
}

/// A page of at most `size` standing answers, by pattern and then key, and the token of the next.
///
/// # Errors
/// `unauthorized`, `cursor_invalid`, `cursor_stale`.
pub(crate) async fn list(
    app: &App,
    caller: &Caller,
    key: Option<&str>,
    size: usize,
    token: &str,
) -> Result<(Vec<Recommended>, String)> {
    caller.require_credential()?;
    let cursor = Cursor::new("recommended", &[key.unwrap_or_default()]);
    let after = cursor.place::<2>(token)?;
    app.look().await?;
    let place = |each: &Recommended| [each.pattern.clone(), each.key.to_string()];
    let mut found = write::list_recommended(&app.writer(caller));
    found.retain(|each| key.is_none_or(|key| each.key.as_str() == key));
    found.sort_by_key(place);
    found.retain(|each| after.as_ref().is_none_or(|after| place(each) > *after));
    let more = found.len() > size;
    found.truncate(size);
    let next = match found.last() {
        Some(last) if more => cursor.token(&[&last.pattern, last.key.as_str()]),
        Some(_) | None => String::new(),
    };
    Ok((found, next))
}
