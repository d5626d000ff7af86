//! The SQL of a write: prepared rows go to the staging table, and from there into the book in one merge.

use callbook_domain::row::Row;
use sqlx::PgConnection;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::stored::{examples, joined};

/// How many rows go to the staging table in one statement.
const CHUNK: usize = 1_000;

/// One row of a write, ready to be merged.
pub(crate) struct Staged {
    /// The row as it will be; for a tombstone as it was.
    pub row: Row,
    pub skeleton: String,
    pub action: &'static str,
    /// The writable columns before and after, as JSON text.
    pub before: Option<String>,
    pub after: Option<String>,
    /// The body of the log entry; absent where only hashes changed.
    pub event: Option<String>,
    pub reaches: Vec<String>,
    pub kinds: Vec<String>,
}

macro_rules! column {
    ($rows:expr, $field:expr) => {
        &$rows.iter().map($field).collect::<Vec<_>>()[..]
    };
}

/// Puts prepared rows beside the book.
pub(crate) async fn stage(
    connection: &mut PgConnection,
    batch: Uuid,
    actor: &str,
    staged: &[Staged],
) -> sqlx::Result<()> {
    for rows in staged.chunks(CHUNK) {
        insert(connection, batch, actor, rows).await?;
    }
    Ok(())
}

async fn insert(connection: &mut PgConnection, batch: Uuid, actor: &str, rows: &[Staged]) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into directory_stage (
             batch, actor, key, type, target, auth, content, updated_at, category, allowed_categories, seq, enabled,
             planner_visible, planner_rank, input_schema, examples, sensitive, runner, includes, created_at, revision,
             version, contract_hash, text_hash, output_schema, provenance, timeout_ms, max_response_bytes, effect, risk,
             skeleton, action, before, after, event, reaches, kinds)
         select $1, $2, s.*, '{}', '{}' from unnest(
             $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::timestamptz[], $9::text[], $10::text[],
             $11::int[], $12::bool[], $13::bool[], $14::int[], $15::text[], $16::text[], $17::bool[], $18::text[],
             $19::text[], $20::timestamptz[], $21::bigint[], $22::bigint[], $23::text[], $24::text[], $25::text[],
             $26::text[], $27::int[], $28::int[], $29::text[], $30::text[], $31::text[], $32::text[], $33::text[],
             $34::text[], $35::text[]) as s",
        batch,
        actor,
        column!(rows, |s| s.row.definition.key.to_string()),
        column!(rows, |s| s.row.definition.row_type.as_str().to_owned()),
        column!(rows, |s| s.row.definition.target.clone()),
        column!(rows, |s| s.row.definition.auth.clone()),
        column!(rows, |s| s.row.definition.content.clone()),
        column!(rows, |s| s.row.updated_at),
        column!(rows, |s| s.row.definition.category.clone()) as &[Option<String>],
        column!(rows, |s| joined(&s.row.definition.allowed_categories)) as &[Option<String>],
        column!(rows, |s| s.row.definition.seq) as &[Option<i32>],
        column!(rows, |s| s.row.definition.enabled),
        column!(rows, |s| s.row.definition.planner_visible),
        column!(rows, |s| s.row.definition.planner_rank),
        column!(rows, |s| s.row.definition.input_schema.clone()) as &[Option<String>],
        column!(rows, |s| examples(&s.row.definition)) as &[Option<String>],
        column!(rows, |s| s.row.definition.sensitive),
        column!(rows, |s| s.row.definition.runner.clone()) as &[Option<String>],
        column!(rows, |s| joined(&s.row.definition.includes)) as &[Option<String>],
        column!(rows, |s| s.row.created_at),
        column!(rows, |s| s.row.revision),
        column!(rows, |s| s.row.version),
        column!(rows, |s| s.row.contract_hash.clone()),
        column!(rows, |s| s.row.text_hash.clone()),
        column!(rows, |s| s.row.definition.output_schema.clone()) as &[Option<String>],
        column!(rows, |s| s.row.definition.provenance.as_str().to_owned()),
        column!(rows, |s| s.row.definition.timeout_ms) as &[Option<i32>],
        column!(rows, |s| s.row.definition.max_response_bytes) as &[Option<i32>],
        column!(rows, |s| s.row.effect.as_str().to_owned()),
        column!(rows, |s| s.row.risk.as_str().to_owned()),
        column!(rows, |s| s.skeleton.clone()),
        column!(rows, |s| s.action.to_owned()),
        column!(rows, |s| s.before.clone()) as &[Option<String>],
        column!(rows, |s| s.after.clone()) as &[Option<String>],
        column!(rows, |s| s.event.clone()) as &[Option<String>],
    )
    .execute(&mut *connection)
    .await?;
    reaches(connection, batch, rows).await
}

/// Postgres has no arrays of unequal arrays, so what rows reach comes flat and is gathered by key.
async fn reaches(connection: &mut PgConnection, batch: Uuid, rows: &[Staged]) -> sqlx::Result<()> {
    let (mut keys, mut reaches, mut kinds, mut ordinals) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for row in rows {
        for (at, (reached, kind)) in row.reaches.iter().zip(&row.kinds).enumerate() {
            keys.push(row.row.definition.key.to_string());
            reaches.push(reached.clone());
            kinds.push(kind.clone());
            ordinals.push(i32::try_from(at).unwrap_or(i32::MAX));
        }
    }
    if keys.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "update directory_stage set reaches = flat.reaches, kinds = flat.kinds
         from (
             select key, array_agg(reached order by ordinal) as reaches, array_agg(kind order by ordinal) as kinds
             from unnest($2::text[], $3::text[], $4::text[], $5::int[]) as each (key, reached, kind, ordinal)
             group by key
         ) as flat
         where batch = $1 and directory_stage.key = flat.key",
        batch,
        &keys,
        &reaches,
        &kinds,
        &ordinals,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Brings a staged batch into the book, its history and the log, and gives how many rows it found. The caller holds the
/// exclusive lock, and compares: the staging table is emptied when the server crashes.
pub(crate) async fn merge(
    connection: &mut PgConnection,
    batch: Uuid,
    revision: i64,
    at: OffsetDateTime,
) -> sqlx::Result<u64> {
    sqlx::query!("delete from dependency using directory_stage s where s.batch = $1 and dependency.key = s.key", batch)
        .execute(&mut *connection)
        .await?;
    sqlx::query!(
        "delete from directory using directory_stage s
         where s.batch = $1 and s.action = 'delete' and directory.key = s.key",
        batch
    )
    .execute(&mut *connection)
    .await?;
    upsert(connection, batch).await?;
    sqlx::query!(
        "insert into dependency (key, ordinal, reaches, kind)
         select s.key, each.ordinal::int, each.reached, each.kind
         from directory_stage s,
              unnest(s.reaches, s.kinds) with ordinality as each (reached, kind, ordinal)
         where s.batch = $1 and s.action <> 'delete'",
        batch
    )
    .execute(&mut *connection)
    .await?;
    let written = sqlx::query!(
        "insert into directory_history (revision, key, version, action, actor, at, before, after)
         select $2, key, version, action, actor, $3, before, after from directory_stage where batch = $1",
        batch,
        revision,
        at
    )
    .execute(&mut *connection)
    .await?
    .rows_affected();
    sqlx::query!(
        "insert into event (at, kind, key, actor, body)
         select $2, 'mutate', key, actor, event from directory_stage
         where batch = $1 and event is not null order by key",
        batch,
        at
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!("delete from directory_stage where batch = $1", batch).execute(&mut *connection).await?;
    notify(connection).await?;
    Ok(written)
}

async fn upsert(connection: &mut PgConnection, batch: Uuid) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into directory (
             key, type, target, auth, content, updated_at, category, allowed_categories, seq, enabled, planner_visible,
             planner_rank, input_schema, examples, sensitive, runner, includes, created_at, revision, version,
             contract_hash, text_hash, output_schema, provenance, timeout_ms, max_response_bytes, effect, risk, skeleton)
         select
             key, type, target, auth, content, updated_at, category, allowed_categories, seq, enabled, planner_visible,
             planner_rank, input_schema, examples, sensitive, runner, includes, created_at, revision, version,
             contract_hash, text_hash, output_schema, provenance, timeout_ms, max_response_bytes, effect, risk, skeleton
         from directory_stage where batch = $1 and action <> 'delete'
         on conflict on constraint directory_key do update set
             type = excluded.type, target = excluded.target, auth = excluded.auth, content = excluded.content,
             updated_at = excluded.updated_at, category = excluded.category,
             allowed_categories = excluded.allowed_categories, seq = excluded.seq, enabled = excluded.enabled,
             planner_visible = excluded.planner_visible, planner_rank = excluded.planner_rank,
             input_schema = excluded.input_schema, examples = excluded.examples, sensitive = excluded.sensitive,
             runner = excluded.runner, includes = excluded.includes, revision = excluded.revision,
             version = excluded.version, contract_hash = excluded.contract_hash, text_hash = excluded.text_hash,
             output_schema = excluded.output_schema, provenance = excluded.provenance,
             timeout_ms = excluded.timeout_ms, max_response_bytes = excluded.max_response_bytes,
             effect = excluded.effect, risk = excluded.risk",
        batch
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Wakes the replicas. The notice says nothing: they read the history.
pub(crate) async fn notify(connection: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query!("select pg_notify($1, '')", crate::directory::CHANNEL).execute(connection).await?;
    Ok(())
}

/// Takes away what processes left that died between staging and merge: batches begun before this id.
pub(crate) async fn sweep(connection: &mut PgConnection, before: Uuid) -> sqlx::Result<()> {
    sqlx::query!("delete from directory_stage where batch < $1", before).execute(connection).await?;
    Ok(())
}

/// Takes away what an import left that did not reach its merge.
pub(crate) async fn discard(connection: &mut PgConnection, batch: Uuid) -> sqlx::Result<()> {
    sqlx::query!("delete from directory_stage where batch = $1", batch).execute(connection).await?;
    Ok(())
}
