//! Results in SQL: state, event and payload of a group of calls, committed before any of them is answered.

use callbook_domain::event::Sealed;
use sqlx::PgConnection;
use time::OffsetDateTime;
use uuid::Uuid;

/// What one run gave, ready to be written.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The invocation.
    pub id: Uuid,
    /// The row, for the log.
    pub key: String,
    /// The name in the log.
    pub actor: String,
    /// When it ended.
    pub at: OffsetDateTime,
    /// It succeeded.
    pub ok: bool,
    /// It succeeded and gave or changed something.
    pub material: bool,
    /// A failure's code.
    pub code: Option<String>,
    /// A failure's sentence.
    pub message: Option<String>,
    /// The same call may succeed later.
    pub retryable: Option<bool>,
    /// Where in the row it failed.
    pub failed_at: Option<String>,
    /// The upstream's status.
    pub upstream_status: Option<i32>,
    /// The output was cut at the row's bound.
    pub truncated: bool,
    /// What it cost by itself, in US dollars.
    pub own_cost_usd: f64,
    /// What it cost with all calls that it made.
    pub cost_usd: f64,
    /// Parts to keep: `request`, `response`, `output`.
    pub parts: Vec<Part>,
    /// The body of its `result` event.
    pub event: String,
}

impl Finished {
    /// About how many bytes it adds to a transaction.
    pub fn bytes(&self) -> usize {
        self.event.len() + self.parts.iter().map(|part| part.sealed.bytes.len()).sum::<usize>()
    }
}

/// Bytes to keep under their commitment.
#[derive(Clone, Debug)]
pub struct Part {
    /// `input`, `request`, `response` or `output`.
    pub name: &'static str,
    /// The bytes with their salt.
    pub sealed: Sealed,
    /// What the bytes are.
    pub media_type: String,
}

macro_rules! column {
    ($rows:expr, $field:expr) => {
        &$rows.iter().map($field).collect::<Vec<_>>()[..]
    };
}

/// Writes a group of results and gives the ids of those that were still running. One that another executor has already
/// called unknown keeps that.
pub async fn finish(connection: &mut PgConnection, group: &[Finished]) -> sqlx::Result<Vec<Uuid>> {
    let mut stored = write(connection, group).await?;
    if stored.len() < group.len() {
        stored.extend(done_before(connection, group).await?);
    }
    Ok(stored)
}

/// Those whose result is there already: we wrote it, and the answer to that commit was lost.
async fn done_before(connection: &mut PgConnection, group: &[Finished]) -> sqlx::Result<Vec<Uuid>> {
    let ids: Vec<Uuid> = group.iter().map(|finished| finished.id).collect();
    sqlx::query_scalar!("select id from invocation where id = any($1) and state = 'done'", &ids)
        .fetch_all(connection)
        .await
}

/// One statement, which is its own transaction.
async fn write(connection: &mut PgConnection, group: &[Finished]) -> sqlx::Result<Vec<Uuid>> {
    let kept = kept(group);
    sqlx::query_scalar!(
        r#"with done as (
             select * from unnest(
                 $1::uuid[], $2::text[], $3::text[], $4::timestamptz[], $5::bool[], $6::bool[], $7::text[], $8::text[],
                 $9::bool[], $10::text[], $11::int[], $12::bigint[], $13::bool[], $14::text[], $15::float8[],
                 $16::float8[]
             ) as d (id, key, actor, at, ok, material, code, message, retryable, failed_at, upstream_status,
                     output_bytes, truncated, event, own_cost_usd, cost_usd)
         ), stored as (
             update invocation i set state = 'done', finished_at = d.at, ok = d.ok, material = d.material,
                    code = d.code, message = d.message, retryable = d.retryable, failed_at = d.failed_at,
                    upstream_status = d.upstream_status, output_bytes = d.output_bytes, truncated = d.truncated,
                    own_cost_usd = d.own_cost_usd, cost_usd = d.cost_usd
             from done d where i.id = d.id and i.state = 'running'
             returning i.id
         ), logged as (
             insert into event (at, kind, invocation, key, actor, body)
             select d.at, 'result', d.id, d.key, d.actor, d.event from done d join stored using (id)
         ), kept as (
             insert into payload (invocation, part, nonce, bytes, media_type)
             select k.* from unnest($17::uuid[], $18::text[], $19::bytea[], $20::bytea[], $21::text[])
                 as k (id, part, nonce, bytes, media_type) join stored using (id)
             on conflict on constraint payload_part_of do nothing
         )
         select id as "id!" from stored"#,
        column!(group, |f| f.id),
        column!(group, |f| f.key.clone()),
        column!(group, |f| f.actor.clone()),
        column!(group, |f| f.at),
        column!(group, |f| f.ok),
        column!(group, |f| f.material),
        column!(group, |f| f.code.clone()) as &[Option<String>],
        column!(group, |f| f.message.clone()) as &[Option<String>],
        column!(group, |f| f.retryable) as &[Option<bool>],
        column!(group, |f| f.failed_at.clone()) as &[Option<String>],
        column!(group, |f| f.upstream_status) as &[Option<i32>],
        column!(group, output_bytes),
        column!(group, |f| f.truncated),
        column!(group, |f| f.event.clone()),
        column!(group, |f| f.own_cost_usd),
        column!(group, |f| f.cost_usd),
        column!(kept, |(id, _)| *id),
        column!(kept, |(_, part)| part.name.to_owned()),
        column!(kept, |(_, part)| part.sealed.nonce.clone()),
        column!(kept, |(_, part)| part.sealed.bytes.clone()),
        column!(kept, |(_, part)| part.media_type.clone()),
    )
    .fetch_all(connection)
    .await
}

pub fn output_bytes(finished: &Finished) -> i64 {
    let output = finished.parts.iter().find(|part| part.name == "output");
    output.map_or(0, |part| i64::try_from(part.sealed.bytes.len()).unwrap_or(i64::MAX))
}

/// Every part with its invocation.
fn kept(group: &[Finished]) -> Vec<(Uuid, &Part)> {
    group.iter().flat_map(|finished| finished.parts.iter().map(|part| (finished.id, part))).collect()
}
