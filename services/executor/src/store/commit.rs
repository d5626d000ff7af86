//! The commit point in SQL: one short transaction for a group of calls.

use callbook_domain::fault::Result;
use callbook_domain::invocation::InvocationId;
use callbook_store::fault::fault;
use callbook_store::lock;
use sqlx::{PgConnection, PgPool};
use time::OffsetDateTime;
use uuid::Uuid;

/// One call that wants to pass the commit point. Everything about it is decided; only what may have changed since is
/// looked at again.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The invocation's id.
    pub id: InvocationId,
    /// The identity under which its idempotency key counts.
    pub caller: String,
    /// The principal that must still be alive; absent for the owner.
    pub principal: Option<Uuid>,
    /// The name in receipts.
    pub actor: String,
    /// Chosen by the caller.
    pub idempotency_key: Option<String>,
    /// SHA-256 over key and arguments.
    pub argument_hash: Vec<u8>,
    /// The row.
    pub key: String,
    /// The row's type.
    pub row_type: &'static str,
    /// The revision that we hold; another stored one does not pass.
    pub row_revision: i64,
    /// The row's contract hash.
    pub contract_hash: String,
    /// The row's text hash.
    pub text_hash: String,
    /// What the call may change.
    pub effect: &'static str,
    /// The row's risk.
    pub risk: &'static str,
    /// The runner that will run it.
    pub runner: &'static str,
    /// How durable its receipt is.
    pub mode: callbook_domain::invocation::Mode,
    /// The pool that it ran in.
    pub pool: String,
    /// The executor that holds it.
    pub executor: Uuid,
    /// After how many seconds from now anybody may call it unknown.
    pub lease_seconds: f64,
    /// The call that makes it.
    pub parent: Option<Uuid>,
    /// The call that this one mends.
    pub repairs: Option<Uuid>,
    /// The call that this one runs again.
    pub replay_of: Option<Uuid>,
    /// The trace that it belongs to.
    pub trace: String,
    /// When it was accepted.
    pub started_at: OffsetDateTime,
    /// What was odd about its arguments.
    pub warnings: Vec<String>,
    /// The canonical arguments with their salt.
    pub input: callbook_domain::event::Sealed,
    /// The body of its `intent` event.
    pub event: String,
}

impl Candidate {
    /// About how many bytes it adds to a transaction.
    pub fn bytes(&self) -> usize {
        self.input.bytes.len() + self.event.len()
    }
}

macro_rules! column {
    ($rows:expr, $field:expr) => {
        &$rows.iter().map($field).collect::<Vec<_>>()[..]
    };
}

/// Commits those of the group that are still true, and gives their ids. The group is sorted, so that two groups cannot
/// wait for each other.
pub async fn commit(pool: &PgPool, group: &[Candidate]) -> sqlx::Result<Vec<Uuid>> {
    let mut transaction = pool.begin().await?;
    lock::shared(&mut transaction).await?;
    let admitted = insert(&mut transaction, group).await?;
    transaction.commit().await?;
    Ok(admitted)
}

async fn insert(connection: &mut PgConnection, group: &[Candidate]) -> sqlx::Result<Vec<Uuid>> {
    sqlx::query_scalar!(
        r#"with candidate as (
             select * from unnest(
                 $1::uuid[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::bytea[], $7::text[], $8::text[],
                 $9::bigint[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::uuid[],
                 $16::float8[], $17::uuid[], $18::uuid[], $19::text[], $20::timestamptz[], $21::text[], $22::bytea[],
                 $23::bytea[], $24::text[], $25::text[], $26::uuid[]
             ) as c (id, caller, principal, actor, idempotency_key, argument_hash, key, type, row_revision,
                     contract_hash, text_hash, effect, risk, runner, executor, lease_seconds, repairs, replay_of, trace,
                     started_at, warnings, nonce, input, event, pool, parent)
         ), admitted as (
             insert into invocation (
                 id, caller, actor, idempotency_key, argument_hash, key, type, row_revision, contract_hash, text_hash,
                 effect, risk, runner, pool, mode, state, executor, lease_until, parent, repairs, replay_of, trace,
                 started_at, warnings)
             select c.id, c.caller, c.actor, c.idempotency_key, c.argument_hash, c.key, c.type, c.row_revision,
                    c.contract_hash, c.text_hash, c.effect, c.risk, c.runner, c.pool, 'durable', 'running', c.executor,
                    clock_timestamp() + make_interval(secs => c.lease_seconds), c.parent, c.repairs, c.replay_of,
                    c.trace, c.started_at, string_to_array(c.warnings, E'\n')
             from candidate c
             join directory d on d.key = c.key and d.revision = c.row_revision and d.enabled
             left join principal p on p.id = c.principal
             where c.principal is null or (p.id is not null and p.revoked_at is null)
             order by c.caller, c.idempotency_key, c.id
             on conflict on constraint invocation_idempotency do nothing
             returning id
         ), logged as (
             insert into event (at, kind, invocation, key, actor, body)
             select c.started_at, 'intent', c.id, c.key, c.actor, c.event from candidate c join admitted using (id)
         ), kept as (
             insert into payload (invocation, part, nonce, bytes, media_type)
             select c.id, 'input', c.nonce, c.input, 'application/json' from candidate c join admitted using (id)
         )
         select id as "id!" from admitted"#,
        column!(group, |c| c.id.0),
        column!(group, |c| c.caller.clone()),
        column!(group, |c| c.principal) as &[Option<Uuid>],
        column!(group, |c| c.actor.clone()),
        column!(group, |c| c.idempotency_key.clone()) as &[Option<String>],
        column!(group, |c| c.argument_hash.clone()),
        column!(group, |c| c.key.clone()),
        column!(group, |c| c.row_type.to_owned()),
        column!(group, |c| c.row_revision),
        column!(group, |c| c.contract_hash.clone()),
        column!(group, |c| c.text_hash.clone()),
        column!(group, |c| c.effect.to_owned()),
        column!(group, |c| c.risk.to_owned()),
        column!(group, |c| c.runner.to_owned()),
        column!(group, |c| c.executor),
        column!(group, |c| c.lease_seconds),
        column!(group, |c| c.repairs) as &[Option<Uuid>],
        column!(group, |c| c.replay_of) as &[Option<Uuid>],
        column!(group, |c| c.trace.clone()),
        column!(group, |c| c.started_at),
        column!(group, |c| c.warnings.join("\n")),
        column!(group, |c| c.input.nonce.clone()),
        column!(group, |c| c.input.bytes.clone()),
        column!(group, |c| c.event.clone()),
        column!(group, |c| c.pool.clone()),
        column!(group, |c| c.parent) as &[Option<Uuid>],
    )
    .fetch_all(connection)
    .await
}

/// Whether a call of read mode, which passes no commit point, may run all the same: its row stands at the revision that
/// we hold and its key was not taken back. Without a database nothing runs.
pub async fn still_true(pool: &PgPool, candidate: &Candidate) -> Result<bool> {
    sqlx::query_scalar!(
        r#"select exists (
             select 1 from directory where key = $1 and revision = $2 and enabled
         ) and ($3::uuid is null or exists (
             select 1 from principal where id = $3 and revoked_at is null
         )) as "true!""#,
        candidate.key,
        candidate.row_revision,
        candidate.principal
    )
    .fetch_one(pool)
    .await
    .map_err(fault)
}

/// Why a candidate did not pass.
#[derive(Clone, Debug)]
pub enum Held {
    /// An earlier call with the same idempotency key.
    Earlier(Box<Earlier>),
    /// The credential was taken back.
    Revoked,
    /// The row is not at the revision that we hold.
    Moved,
}

/// A call that was accepted before, as far as its repetition needs.
#[derive(Clone, Debug)]
pub struct Earlier {
    /// Its id.
    pub id: Uuid,
    /// SHA-256 over its key and arguments.
    pub argument_hash: Vec<u8>,
    /// How far it came.
    pub state: String,
    /// When it was accepted.
    pub started_at: OffsetDateTime,
}

/// The call that used an idempotency key before.
pub async fn earlier(pool: &PgPool, caller: &str, idempotency_key: &str) -> Result<Option<Earlier>> {
    sqlx::query_as!(
        Earlier,
        "select id, argument_hash, state, started_at from invocation where caller = $1 and idempotency_key = $2",
        caller,
        idempotency_key
    )
    .fetch_optional(pool)
    .await
    .map_err(fault)
}

/// Names the reason for which a candidate did not pass.
pub async fn why_held(pool: &PgPool, candidate: &Candidate) -> Result<Held> {
    if let Some(key) = &candidate.idempotency_key
        && let Some(earlier) = earlier(pool, &candidate.caller, key).await?
    {
        return Ok(Held::Earlier(Box::new(earlier)));
    }
    if let Some(principal) = candidate.principal {
        let alive = sqlx::query_scalar!(
            r#"select exists (select 1 from principal where id = $1 and revoked_at is null) as "alive!""#,
            principal
        )
        .fetch_one(pool)
        .await
        .map_err(fault)?;
        if !alive {
            return Ok(Held::Revoked);
        }
    }
    Ok(Held::Moved)
}

/// Lets an idempotency key go whose day is over, so that it can be used again.
pub async fn release_key(pool: &PgPool, id: Uuid) -> Result<()> {
    sqlx::query!("update invocation set idempotency_key = null where id = $1", id)
        .execute(pool)
        .await
        .map_err(fault)?;
    Ok(())
}
