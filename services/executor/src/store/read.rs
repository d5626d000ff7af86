//! Read mode in SQL: calls that ran already, with intent and result in one batch.

use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::commit::Candidate;
use super::finish::{Finished, Part, output_bytes, parts};

macro_rules! column {
    ($rows:expr, $field:expr) => {
        &$rows.iter().map($field).collect::<Vec<_>>()[..]
    };
}

/// Writes the invocations, both events of each, and what is kept of them.
pub async fn write(pool: &PgPool, group: &[(Candidate, Finished)]) -> sqlx::Result<()> {
    let mut transaction = pool.begin().await?;
    insert(&mut transaction, group).await?;
    keep(&mut transaction, group).await?;
    transaction.commit().await
}

async fn insert(connection: &mut PgConnection, group: &[(Candidate, Finished)]) -> sqlx::Result<()> {
    sqlx::query!(
        "with call as (
             select * from unnest(
                 $1::uuid[], $2::text[], $3::text[], $4::bytea[], $5::text[], $6::text[], $7::bigint[], $8::text[],
                 $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::uuid[], $15::text[],
                 $16::timestamptz[], $17::text[], $18::text[], $19::timestamptz[], $20::bool[], $21::bool[],
                 $22::text[], $23::text[], $24::bool[], $25::text[], $26::int[], $27::bigint[], $28::bool[],
                 $29::text[], $30::text[], $31::text[], $32::float8[], $33::float8[]
             ) as c (id, caller, actor, argument_hash, key, type, row_revision, contract_hash, text_hash, effect, risk,
                     runner, pool, executor, trace, started_at, warnings, intent, finished_at, ok,
                     material, code, message, retryable, failed_at, upstream_status, output_bytes, truncated, result,
                     lineage, links, own_cost_usd, cost_usd)
         ), written as (
             insert into invocation (
                 id, caller, actor, argument_hash, key, type, row_revision, contract_hash, text_hash, effect, risk,
                 runner, pool, mode, state, executor, lease_until, trace, started_at, warnings, finished_at, ok,
                 material, code, message, retryable, failed_at, upstream_status, output_bytes, truncated, lineage,
                 links, own_cost_usd, cost_usd)
             select id, caller, actor, argument_hash, key, type, row_revision, contract_hash, text_hash, effect, risk,
                    runner, pool, 'read', 'done', executor, finished_at, trace, started_at,
                    string_to_array(warnings, E'\\n'), finished_at, ok, material, code, message, retryable, failed_at,
                    upstream_status, output_bytes, truncated, string_to_array(lineage, E'\\n'),
                    string_to_array(links, E'\\n'), own_cost_usd, cost_usd
             from call
             on conflict on constraint invocation_id do nothing
             returning id
         )
         insert into event (at, kind, invocation, key, actor, body)
         select started_at, 'intent', id, key, actor, intent from call join written using (id)
         union all
         select finished_at, 'result', id, key, actor, result from call join written using (id)",
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
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Keeps what went in with what came out.
async fn keep(connection: &mut PgConnection, group: &[(Candidate, Finished)]) -> sqlx::Result<()> {
    let with_input = group.iter().map(|(candidate, finished)| {
        let (sealed, media_type) = (candidate.input.clone(), "application/json".to_owned());
        let mut finished = finished.clone();
        finished.parts.push(Part { name: "input", sealed, media_type });
        finished
    });
    let finished: Vec<Finished> = with_input.collect();
    let ids: Vec<Uuid> = finished.iter().map(|finished| finished.id).collect();
    parts(connection, &finished, &ids).await
}
