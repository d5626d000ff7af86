//! Receipts in SQL.

use sqlx::PgPool;
use time::OffsetDateTime;
use uuid::Uuid;

/// One invocation as stored.
#[derive(Clone, Debug)]
pub struct Record {
    pub id: Uuid,
    pub caller: String,
    pub actor: String,
    pub key: String,
    pub r#type: String,
    pub row_revision: i64,
    pub contract_hash: String,
    pub text_hash: String,
    pub effect: String,
    pub risk: String,
    pub runner: String,
    pub pool: String,
    pub mode: String,
    pub state: String,
    pub parent: Option<Uuid>,
    pub repairs: Option<Uuid>,
    pub replay_of: Option<Uuid>,
    pub trace: String,
    pub started_at: OffsetDateTime,
    pub warnings: Vec<String>,
    pub finished_at: Option<OffsetDateTime>,
    pub ok: Option<bool>,
    pub material: Option<bool>,
    pub code: Option<String>,
    pub message: Option<String>,
    pub retryable: Option<bool>,
    pub failed_at: Option<String>,
    pub upstream_status: Option<i32>,
    pub truncated: bool,
    pub cost_usd: f64,
    pub lineage: Vec<String>,
    pub links: Vec<String>,
}

/// A kept part with its salt.
#[derive(Clone, Debug)]
pub struct Payload {
    pub part: String,
    pub nonce: Vec<u8>,
    pub bytes: Vec<u8>,
    pub media_type: String,
}

/// One entry of the log.
#[derive(Clone, Debug)]
pub struct Logged {
    pub kind: String,
    pub at: OffsetDateTime,
    pub body: String,
}

/// The invocation of this id.
pub async fn load(pool: &PgPool, id: Uuid) -> sqlx::Result<Option<Record>> {
    sqlx::query_as!(
        Record,
        "select id, caller, actor, key, type, row_revision, contract_hash, text_hash, effect, risk, runner, pool, mode, state, parent, repairs,
         replay_of, trace, started_at, warnings, finished_at, ok, material, code, message, retryable, failed_at,
         upstream_status, truncated, cost_usd, lineage, links
         from invocation where id = $1",
        id
    )
    .fetch_optional(pool)
    .await
}

/// What is kept of it; nothing once it was erased.
pub async fn payload(pool: &PgPool, id: Uuid) -> sqlx::Result<Vec<Payload>> {
    sqlx::query_as!(Payload, "select part, nonce, bytes, media_type from payload where invocation = $1", id)
        .fetch_all(pool)
        .await
}

/// Its entries in the log, oldest first.
pub async fn events(pool: &PgPool, id: Uuid) -> sqlx::Result<Vec<Logged>> {
    sqlx::query_as!(Logged, "select kind, at, body from event where invocation = $1 order by id", id)
        .fetch_all(pool)
        .await
}

/// A call that another one made.
#[derive(Clone, Debug)]
pub struct Child {
    pub id: Uuid,
    pub key: String,
}

/// Calls that it made, oldest first.
pub async fn children(pool: &PgPool, id: Uuid) -> sqlx::Result<Vec<Child>> {
    sqlx::query_as!(Child, "select id, key from invocation where parent = $1 order by id limit 500", id)
        .fetch_all(pool)
        .await
}

/// Calls that mend this one.
pub async fn repaired_by(pool: &PgPool, id: Uuid) -> sqlx::Result<Vec<Uuid>> {
    sqlx::query_scalar!("select id from invocation where repairs = $1 order by id limit 500", id).fetch_all(pool).await
}

/// What a listing is narrowed to.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// The identity whose calls are listed; absent is everybody's.
    pub caller: Option<String>,
    /// The name of its token: also calls of what was derived from it.
    pub link: Option<String>,
    /// Of these calls, those that another call made are listed where the row has one of these keys,
    pub seen_keys: Vec<String>,
    /// or a key that begins with one of these.
    pub seen_prefixes: Vec<String>,
    /// Also calls of rows whose key begins with one of these, whoever made them.
    pub prefixes: Vec<String>,
    /// The row's key.
    pub key: Option<String>,
    /// The name in receipts.
    pub actor: Option<String>,
    /// The stored state, and for done calls whether they were material.
    pub state: Option<String>,
    /// See `state`.
    pub material: Option<bool>,
    /// Begun at or after.
    pub since: Option<OffsetDateTime>,
    /// Begun before.
    pub until: Option<OffsetDateTime>,
    /// Made by this invocation.
    pub parent: Option<Uuid>,
}

/// A page of invocations, newest first, older than `before`.
pub async fn list(pool: &PgPool, filter: &Filter, before: Option<Uuid>, limit: i64) -> sqlx::Result<Vec<Record>> {
    sqlx::query_as!(
        Record,
        "select id, caller, actor, key, type, row_revision, contract_hash, text_hash, effect, risk, runner, pool, mode, state, parent, repairs,
         replay_of, trace, started_at, warnings, finished_at, ok, material, code, message, retryable, failed_at,
         upstream_status, truncated, cost_usd, lineage, links
         from invocation
         where ($1::text is null or exists (select 1 from unnest($2::text[]) p where starts_with(key, p))
                or (caller = $1 or (links <> '{}' and links @> array[$12::text]))
                   and (parent is null or key = any($13::text[])
                        or exists (select 1 from unnest($14::text[]) p where starts_with(key, p))))
           and ($3::text is null or key = $3)
           and ($4::text is null or actor = $4)
           and ($5::text is null or state = $5)
           and ($6::bool is null or material = $6)
           and ($7::timestamptz is null or started_at >= $7)
           and ($8::timestamptz is null or started_at < $8)
           and ($9::uuid is null or parent = $9)
           and ($10::uuid is null or id < $10)
         order by id desc limit $11",
        filter.caller.as_deref(),
        &filter.prefixes,
        filter.key.as_deref(),
        filter.actor.as_deref(),
        filter.state.as_deref(),
        filter.material,
        filter.since,
        filter.until,
        filter.parent,
        before,
        limit,
        filter.link.as_deref(),
        &filter.seen_keys,
        &filter.seen_prefixes
    )
    .fetch_all(pool)
    .await
}

/// Figures over many invocations.
#[derive(Clone, Debug)]
pub struct Figures {
    pub key: Option<String>,
    pub count: i64,
    pub failures: i64,
    pub p50_ms: Option<f64>,
    pub p95_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    pub cost_usd: f64,
}

/// Figures over the calls that the filter lets through: the sum first, then the thousand keys with the most calls.
pub async fn stats(pool: &PgPool, filter: &Filter) -> sqlx::Result<Vec<Figures>> {
    sqlx::query_as!(
        Figures,
        r#"with call as (
             select key, state, ok, own_cost_usd, runner = type as is_call,
                    extract(epoch from finished_at - started_at)::float8 * 1000 as ms
             from invocation
             where ($1::text is null or exists (select 1 from unnest($2::text[]) p where starts_with(key, p))
                    or (caller = $1 or (links <> '{}' and links @> array[$7::text]))
                       and (parent is null or key = any($8::text[])
                            or exists (select 1 from unnest($9::text[]) p where starts_with(key, p))))
               and ($3::text is null or key = $3)
               and ($4::text is null or actor = $4)
               and ($5::timestamptz is null or started_at >= $5)
               and ($6::timestamptz is null or started_at < $6)
         )
         select key as "key?", count(*) filter (where is_call) as "count!",
                count(*) filter (where is_call and state = 'done' and not ok) as "failures!",
                percentile_cont(0.5) within group (order by ms) filter (where is_call and state = 'done') as p50_ms,
                percentile_cont(0.95) within group (order by ms) filter (where is_call and state = 'done') as p95_ms,
                percentile_cont(0.99) within group (order by ms) filter (where is_call and state = 'done') as p99_ms,
                coalesce(sum(own_cost_usd), 0) as "cost_usd!"
         from call group by grouping sets ((), (key))
         order by grouping(key) desc, count(*) filter (where is_call) desc, key limit 1001"#,
        filter.caller.as_deref(),
        &filter.prefixes,
        filter.key.as_deref(),
        filter.actor.as_deref(),
        filter.since,
        filter.until,
        filter.link.as_deref(),
        &filter.seen_keys,
        &filter.seen_prefixes
    )
    .fetch_all(pool)
    .await
}

/// How many parts [`erase`] takes away at once.
pub const ERASED_AT_ONCE: u64 = 1_000;

/// Erases what is kept of calls that began before this moment, oldest first: ids sort by time, so no older call is looked
/// at twice. Gives how many parts went.
pub async fn erase(pool: &PgPool, before: OffsetDateTime) -> sqlx::Result<u64> {
    let newest = floor(before);
    let gone = sqlx::query!(
        "delete from payload where (invocation, part) in (
             select p.invocation, p.part from payload p join invocation i on i.id = p.invocation
             where p.invocation < $1 and i.state <> 'running' order by p.invocation limit 1000
         )",
        newest
    )
    .execute(pool)
    .await?;
    Ok(gone.rows_affected())
}

/// The smallest id of this moment.
fn floor(at: OffsetDateTime) -> Uuid {
    let millis = u64::try_from(at.unix_timestamp_nanos() / 1_000_000).unwrap_or(0);
    uuid::Builder::from_unix_timestamp_millis(millis, &[0; 10]).into_uuid()
}
