//! Read mode in SQL: calls that ran already, with intent and result in one batch.

use callbook_domain::event::Sealed;
use sqlx::PgConnection;
use uuid::Uuid;

use super::commit::Candidate;
use super::finish::{Finished, output_bytes};

macro_rules! column {
    ($rows:expr, $field:expr) => {
        &$rows.iter().map($field).collect::<Vec<_>>()[..]
    };
}

/// Writes the invocations, both events of each, and what is kept of them: one statement, which is its own transaction.
pub async fn write(connection: &mut PgConnection, group: &[(Candidate, Finished)]) -> sqlx::Result<()> {
    let kept = kept(group);
    sqlx::query_file!(
        "src/store/read.sql",
        column!(group, |(c, _)| c.id.0),
        column!(group, |(c, _)| c.caller.clone()),
        column!(group, |(c, _)| c.actor.clone()),
        column!(group, |(c, _)| c.argument_hash.clone()),
        column!(group, |(c, _)| c.key.clone()),
        column!(group, |(c, _)| c.row_type.to_owned()),
        column!(group, |(c, _)| c.row_revision),
        column!(group, |(c, _)| c.contract_hash.clone()),
        column!(group, |(c, _)| c.text_hash.clone()),
        column!(group, |(c, _)| c.effect.to_owned()),
        column!(group, |(c, _)| c.risk.to_owned()),
        column!(group, |(c, _)| c.runner.to_owned()),
        column!(group, |(c, _)| c.pool.clone()),
        column!(group, |(c, _)| c.executor),
        column!(group, |(c, _)| c.trace.clone()),
        column!(group, |(c, _)| c.started_at),
        column!(group, |(c, _)| c.warnings.join("\n")),
        column!(group, |(c, _)| c.event.clone()),
        column!(group, |(_, f)| f.at),
        column!(group, |(_, f)| f.ok),
        column!(group, |(_, f)| f.material),
        column!(group, |(_, f)| f.code.clone()) as &[Option<String>],
        column!(group, |(_, f)| f.message.clone()) as &[Option<String>],
        column!(group, |(_, f)| f.retryable) as &[Option<bool>],
        column!(group, |(_, f)| f.failed_at.clone()) as &[Option<String>],
        column!(group, |(_, f)| f.upstream_status) as &[Option<i32>],
        column!(group, |(_, f)| output_bytes(f)),
        column!(group, |(_, f)| f.truncated),
        column!(group, |(_, f)| f.event.clone()),
        column!(group, |(c, _)| c.lineage()),
        column!(group, |(c, _)| c.links()),
        column!(group, |(_, f)| f.own_cost_usd),
        column!(group, |(_, f)| f.cost_usd),
        column!(kept, |(id, ..)| *id),
        column!(kept, |(_, name, ..)| (*name).to_owned()),
        column!(kept, |(_, _, sealed, _)| sealed.nonce.clone()),
        column!(kept, |(_, _, sealed, _)| sealed.bytes.clone()),
        column!(kept, |(.., media_type)| (*media_type).to_owned()),
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// What went in with what came out: invocation, part, bytes, media type.
fn kept(group: &[(Candidate, Finished)]) -> Vec<(Uuid, &'static str, &Sealed, &str)> {
    let mut kept = Vec::new();
    for (candidate, finished) in group {
        kept.push((finished.id, "input", &candidate.input, "application/json"));
        kept.extend(finished.parts.iter().map(|part| (finished.id, part.name, &part.sealed, part.media_type.as_str())));
    }
    kept
}
