//! List the versions of a row, newest first.

use callbook_domain::caller::{Caller, May};
use callbook_domain::fault::Result;
use callbook_domain::key::Key;
use callbook_store::fault::fault;
use callbook_store::history::{self, Version};

use crate::App;
use crate::error::not_found;
use crate::page::{self, Cursor};
use crate::sight::Sight;

/// A page of versions, and where the next begins.
pub(crate) struct Page {
    /// The versions.
    pub(crate) versions: Vec<Version>,
    /// Empty at the end.
    pub(crate) next: String,
}

/// A page of at most `size` versions. Who may not edit the row is shown what it is shown of the row itself, without
/// names of writers, and nothing of a row that is gone.
///
/// # Errors
/// `not found`, `cursor_invalid`, `cursor_stale`.
pub(crate) async fn versions(app: &App, caller: &Caller, key: &str, size: usize, token: &str) -> Result<Page> {
    app.callers.require_catalogue(caller)?;
    let cursor = Cursor::new("versions", &[key]);
    let before = match cursor.place::<1>(token)? {
        None => i64::MAX,
        Some([revision]) => revision.parse().map_err(|_| page::invalid())?,
    };
    let key = Key::parse(key).map_err(|_| not_found())?;
    let sight = match app.look().await?.snapshot.get(key.as_str()) {
        Some(entry) => Sight::of(caller, entry),
        None => (caller.sees(&key) && caller.may(May::Edit, Some(&key))).then_some(Sight::Whole),
    };
    let sight = sight.ok_or_else(not_found)?;
    let mut connection = app.directory.pool().acquire().await.map_err(fault)?;
    let limit = i64::try_from(size).unwrap_or(i64::MAX - 1) + 1;
    let mut versions = history::versions(&mut connection, &key, before, limit).await?;
    if versions.is_empty() && before == i64::MAX {
        return Err(not_found());
    }
    let more = versions.len() > size;
    versions.truncate(size);
    if sight == Sight::Public {
        versions = versions.into_iter().map(Version::veiled).collect();
    }
    let next = match versions.last() {
        Some(last) if more => cursor.token(&[&last.revision.to_string()]),
        Some(_) | None => String::new(),
    };
    Ok(Page { versions, next })
}
