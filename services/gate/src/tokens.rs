//! List issued tokens, newest first, without their text.

use callbook_domain::caller::Caller;
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_store::fault::fault;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::store::token::{self as store, Filter};
use crate::token::Issued;
use crate::{App, page};

/// The mark of our tokens of pages and of their form.
const FORM: &str = "t1";

/// What is asked.
pub(crate) struct Asked {
    /// Also those that ended or were taken back.
    pub(crate) include_ended: bool,
    /// Only those of this subject; empty: of anybody.
    pub(crate) subject: String,
    /// The most of a page.
    pub(crate) size: usize,
    /// The page's token.
    pub(crate) page_token: String,
}

/// A page, and the token of the next; empty at the end.
///
/// # Errors
/// `unauthorized`, `forbidden` for the holder of a token, `cursor_invalid`, `cursor_stale`.
pub(crate) async fn list(app: &App, caller: &Caller, asked: &Asked) -> Result<(Vec<Issued>, String)> {
    caller.require_credential()?;
    let principal = match caller {
        Caller::Owner => None,
        Caller::Principal(principal) => Some(principal.id),
        Caller::Holder(_) | Caller::Anonymous => {
            return Err(Fault::new(Reason::Forbidden, "a token lists no others").with("needs", "owner"));
        }
    };
    let mark = (asked.include_ended, asked.subject.clone());
    let after = page::place::<_, (i64, Uuid)>(FORM, &mark, &asked.page_token)?;
    let after = after.map(|(second, jti)| Ok((moment(second).ok_or_else(page::invalid)?, jti))).transpose()?;
    let filter = Filter {
        principal,
        subject: Some(asked.subject.replace('\0', "\u{fffd}")).filter(|subject| !subject.is_empty()),
        living_at: (!asked.include_ended).then(|| app.clock.now()),
        after,
        limit: i64::try_from(asked.size).unwrap_or(i64::MAX - 1) + 1,
    };
    let mut connection = app.pool.acquire().await.map_err(fault)?;
    let mut found = store::page(&mut connection, &filter).await.map_err(fault)?;
    let more = found.len() > asked.size;
    found.truncate(asked.size);
    let next = match found.last() {
        Some(last) if more => page::token(FORM, &mark, &(last.issued_at.unix_timestamp(), last.jti)),
        Some(_) | None => String::new(),
    };
    Ok((found, next))
}

/// Tokens are issued at whole seconds.
fn moment(second: i64) -> Option<OffsetDateTime> {
    OffsetDateTime::from_unix_timestamp(second).ok()
}
