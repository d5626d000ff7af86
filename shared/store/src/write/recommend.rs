//! The operator's standing answers.

use callbook_domain::caller::May;
use callbook_domain::event::{Body, EventKind};
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::key::Key;
use callbook_domain::row::timestamp;
use sqlx::PgConnection;

use super::turn::Turn;
use super::{Deleted, Writer};
use crate::fault::fault;
use crate::snapshot::Recommended;
use crate::stage::notify;

/// The longest pattern, in bytes.
const MAX_PATTERN: usize = 400;

/// Says that `key` is (or with `demote` is not) the answer to questions that hold the pattern's words.
///
/// # Errors
/// `unknown_key` where no row has the key, `invalid_request` for an empty or overlong pattern.
pub async fn recommend(writer: &Writer, pattern: &str, key: &Key, demote: bool, reason: &str) -> Result<i64> {
    writer.caller.require(May::Edit, Some(key))?;
    let pattern = pattern.trim();
    if pattern.is_empty()
        || pattern.len() > MAX_PATTERN
        || pattern.contains('\0')
        || reason.len() > 1000
        || reason.contains('\0')
    {
        return Err(Fault::new(Reason::InvalidRequest, "a pattern is 1 to 400 bytes of text, a reason at most 1000")
            .with("field", "pattern"));
    }
    let (mut turn, revision) = Turn::begin(writer).await?;
    if writer.directory.snapshot().get(key.as_str()).is_none()
        && super::batch::load(&mut turn, key.as_str()).await.map_err(fault)?.is_none()
    {
        return Err(Fault::new(Reason::UnknownKey, "no row of this key").with("attempted", key.as_str()));
    }
    let now = writer.clock.now();
    sqlx::query!(
        "insert into recommended (pattern, key, demote, reason, actor, created_at) values ($1, $2, $3, $4, $5, $6)
         on conflict on constraint recommended_pattern
         do update set demote = excluded.demote, reason = excluded.reason, actor = excluded.actor,
                       created_at = excluded.created_at",
        pattern,
        key.as_str(),
        demote,
        reason,
        writer.caller.actor(),
        now
    )
    .execute(&mut *turn)
    .await
    .map_err(fault)?;
    record(writer, &mut turn, revision, key, if demote { "demote" } else { "recommend" }).await?;
    turn.commit().await?;
    let _ = writer.directory.at_least(revision).await;
    Ok(revision)
}

/// Takes a standing answer back.
pub async fn unrecommend(writer: &Writer, pattern: &str, key: &Key) -> Result<Deleted> {
    writer.caller.require(May::Edit, Some(key))?;
    if pattern.contains('\0') {
        return Ok(Deleted { deleted: false, revision: None }); // no stored pattern holds one
    }
    let (mut turn, revision) = Turn::begin(writer).await?;
    let removed = sqlx::query!("delete from recommended where pattern = $1 and key = $2", pattern.trim(), key.as_str())
        .execute(&mut *turn)
        .await
        .map_err(fault)?
        .rows_affected();
    if removed == 0 {
        return Ok(Deleted { deleted: false, revision: None });
    }
    record(writer, &mut turn, revision, key, "unrecommend").await?;
    turn.commit().await?;
    let _ = writer.directory.at_least(revision).await;
    Ok(Deleted { deleted: true, revision: Some(revision) })
}

/// Every standing answer of keys that the caller sees.
pub fn list_recommended(writer: &Writer) -> Vec<Recommended> {
    let snapshot = writer.directory.snapshot();
    snapshot.recommended.iter().filter(|each| writer.caller.sees(&each.key)).cloned().collect()
}

async fn record(writer: &Writer, connection: &mut PgConnection, revision: i64, key: &Key, action: &str) -> Result<()> {
    let (now, actor) = (writer.clock.now(), writer.caller.actor());
    let body = Body::new(EventKind::Mutate)
        .set("key", key.as_str())
        .set("action", action)
        .set("actor", actor.clone())
        .set("revision", revision)
        .set("ts", timestamp(now))
        .canonical();
    sqlx::query!(
        "insert into directory_history (revision, key, version, action, actor, at)
         select $1, $2, coalesce(max(version), 0), 'recommend', $3, $4 from directory where key = $2",
        revision,
        key.as_str(),
        actor,
        now
    )
    .execute(&mut *connection)
    .await
    .map_err(fault)?;
    sqlx::query!(
        "insert into event (at, kind, key, actor, body) values ($1, 'mutate', $2, $3, $4)",
        now,
        key.as_str(),
        actor,
        body
    )
    .execute(&mut *connection)
    .await
    .map_err(fault)?;
    notify(connection).await.map_err(fault)
}
