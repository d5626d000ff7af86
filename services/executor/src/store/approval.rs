//! Held calls in SQL.

use callbook_domain::caller::Caller;
use callbook_domain::fault::Result;
use callbook_store::fault::fault;
use callbook_store::lock;
use callbook_store::principal::check_alive;
use sqlx::{PgConnection, PgPool};
use time::OffsetDateTime;
use uuid::Uuid;

/// One held call as stored.
#[derive(Clone, Debug)]
pub struct Record {
    pub id: Uuid,
    pub invocation: Uuid,
    pub state: String,
    pub caller: String,
    pub actor: String,
    pub principal: Option<Uuid>,
    pub key: String,
    pub contract_hash: String,
    pub text_hash: String,
    pub reason: String,
    pub created_at: OffsetDateTime,
    pub expires_at: OffsetDateTime,
    pub decided_by: Option<String>,
    pub decided_at: Option<OffsetDateTime>,
    pub decision_reason: String,
}

/// What makes two calls the same call.
#[derive(Clone, Debug)]
pub struct Same {
    /// The identity of the caller.
    pub caller: String,
    /// The row.
    pub key: String,
    /// What the row was when the call was held.
    pub contract_hash: String,
    /// SHA-256 over key and arguments.
    pub argument_hash: Vec<u8>,
}

/// A call that is to be held.
#[derive(Clone, Debug)]
pub struct New {
    /// The approval's id.
    pub id: Uuid,
    /// The id that the call will have.
    pub invocation: Uuid,
    /// What it is bound to.
    pub same: Same,
    /// The name in receipts.
    pub actor: String,
    /// The principal that calls, or that minted the token of the call.
    pub principal: Option<Uuid>,
    /// The row's text hash.
    pub text_hash: String,
    /// Chosen by the caller.
    pub idempotency_key: Option<String>,
    /// What the caller sent, with its salt.
    pub input: callbook_domain::event::Sealed,
    /// Why it is held.
    pub reason: String,
    /// When it is held.
    pub at: OffsetDateTime,
    /// Until when it may be decided and fired.
    pub expires_at: OffsetDateTime,
    /// The body of its `hold` event.
    pub event: String,
}

/// The last approval of this call whose time is not over and that was not used.
pub async fn standing(pool: &PgPool, same: &Same, now: OffsetDateTime) -> sqlx::Result<Option<Record>> {
    sqlx::query_as!(
        Record,
        "select id, invocation, state, caller, actor, principal, key, contract_hash, text_hash, reason, created_at,
         expires_at, decided_by, decided_at, decision_reason
         from approval
         where caller = $1 and key = $2 and contract_hash = $3 and argument_hash = $4
           and state in ('held', 'approved', 'refused') and expires_at > $5
         order by id desc limit 1",
        same.caller,
        same.key,
        same.contract_hash,
        same.argument_hash,
        now
    )
    .fetch_optional(pool)
    .await
}

/// The call with other arguments that this idempotency key is held for.
pub async fn other_under(
    pool: &PgPool,
    caller: &str,
    idempotency_key: &str,
    argument_hash: &[u8],
    now: OffsetDateTime,
) -> sqlx::Result<Option<Uuid>> {
    sqlx::query_scalar!(
        "select invocation from approval
         where caller = $1 and idempotency_key = $2 and argument_hash <> $3 and state in ('held', 'approved')
           and expires_at > $4
         limit 1",
        caller,
        idempotency_key,
        argument_hash,
        now
    )
    .fetch_optional(pool)
    .await
}

/// The most calls of one caller that wait for a person at once.
const MAX_OPEN: i64 = 100;

/// What became of a call that was to be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// It is held from now on.
    Now,
    /// The same call is held already: one approval for one call.
    Already,
    /// Its caller has as many waiting calls as it may.
    Full,
}

/// Holds a call with its entry in the log.
pub async fn hold(pool: &PgPool, new: &New) -> sqlx::Result<Held> {
    let mut transaction = pool.begin().await?;
    // a statement of its own: the next one must see the place in the index free
    sqlx::query!(
        "update approval set state = 'expired'
         where caller = $1 and key = $2 and contract_hash = $3 and argument_hash = $4 and state in ('held', 'approved')
           and expires_at <= $5",
        new.same.caller,
        new.same.key,
        new.same.contract_hash,
        new.same.argument_hash,
        new.at
    )
    .execute(&mut *transaction)
    .await?;
    let open = sqlx::query_scalar!(
        r#"select count(*) as "open!" from approval
           where caller = $1 and state in ('held', 'approved') and expires_at > $2"#,
        new.same.caller,
        new.at
    );
    if open.fetch_one(&mut *transaction).await? >= MAX_OPEN {
        return Ok(Held::Full);
    }
    let held = insert(&mut transaction, new).await?;
    transaction.commit().await?;
    Ok(if held { Held::Now } else { Held::Already })
}

async fn insert(connection: &mut PgConnection, new: &New) -> sqlx::Result<bool> {
    let logged = sqlx::query!(
        "with held as (
             insert into approval (
                 id, invocation, state, caller, actor, principal, key, contract_hash, text_hash, argument_hash,
                 idempotency_key, nonce, input, reason, created_at, expires_at)
             values ($1, $2, 'held', $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
             on conflict (caller, key, contract_hash, argument_hash) where state in ('held', 'approved') do nothing
             returning invocation
         )
         insert into event (at, kind, invocation, key, actor, body)
         select $14, 'hold', invocation, $6, $4, $16 from held",
        new.id,
        new.invocation,
        new.same.caller,
        new.actor,
        new.principal,
        new.same.key,
        new.same.contract_hash,
        new.text_hash,
        new.same.argument_hash,
        new.idempotency_key,
        new.input.nonce,
        new.input.bytes,
        new.reason,
        new.at,
        new.expires_at,
        new.event
    )
    .execute(connection)
    .await?;
    Ok(logged.rows_affected() == 1)
}

/// The approval of this id.
pub async fn load(pool: &PgPool, id: Uuid) -> sqlx::Result<Option<Record>> {
    sqlx::query_as!(
        Record,
        "select id, invocation, state, caller, actor, principal, key, contract_hash, text_hash, reason, created_at,
         expires_at, decided_by, decided_at, decision_reason
         from approval where id = $1",
        id
    )
    .fetch_optional(pool)
    .await
}

/// The approval of the call that has, or will have, this id.
pub async fn of_invocation(pool: &PgPool, invocation: Uuid) -> sqlx::Result<Option<Record>> {
    sqlx::query_as!(
        Record,
        "select id, invocation, state, caller, actor, principal, key, contract_hash, text_hash, reason, created_at,
         expires_at, decided_by, decided_at, decision_reason
         from approval where invocation = $1",
        invocation
    )
    .fetch_optional(pool)
    .await
}

/// What the caller sent; nothing once it was erased.
pub async fn input(pool: &PgPool, id: Uuid) -> sqlx::Result<Option<Vec<u8>>> {
    let found = sqlx::query_scalar!("select input from approval where id = $1", id).fetch_optional(pool).await?;
    Ok(found.flatten())
}

/// What a listing is narrowed to.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// The identity whose calls are listed; absent is everybody's.
    pub caller: Option<String>,
    /// Also calls of rows whose key begins with one of these, whoever made them.
    pub prefixes: Vec<String>,
    /// How far they came.
    pub state: Option<&'static str>,
}

/// A page of approvals, newest first, older than `before`.
pub async fn list(
    pool: &PgPool,
    filter: &Filter,
    before: Option<Uuid>,
    limit: i64,
    now: OffsetDateTime,
) -> sqlx::Result<Vec<Record>> {
    sqlx::query_as!(
        Record,
        "select id, invocation, state, caller, actor, principal, key, contract_hash, text_hash, reason, created_at,
         expires_at, decided_by, decided_at, decision_reason
         from approval
         where ($1::text is null or caller = $1 or exists (select 1 from unnest($2::text[]) p where starts_with(key, p)))
           and ($3::text is null
                or $3 = case when state in ('held', 'approved') and expires_at <= $4 then 'expired' else state end)
           and ($5::uuid is null or id < $5)
         order by id desc limit $6",
        filter.caller.as_deref(),
        &filter.prefixes,
        filter.state,
        now,
        before,
        limit
    )
    .fetch_all(pool)
    .await
}

/// A decision on a held call.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The approval.
    pub id: Uuid,
    /// `approved` or `refused`.
    pub state: &'static str,
    /// Who decided, as receipts name it.
    pub by: String,
    /// What it said.
    pub reason: String,
    /// When.
    pub at: OffsetDateTime,
    /// The body of the `approve` event.
    pub event: String,
}

/// Decides a held call with its entry in the log. False where it is not held any more: of two deciders one wins. A
/// decision of a principal that was ended is none: both meet on the lock.
///
/// # Errors
/// `unauthorized`, `database_unavailable`.
pub async fn decide(pool: &PgPool, caller: &Caller, decision: &Decision) -> Result<bool> {
    let mut transaction = pool.begin().await.map_err(fault)?;
    lock::shared(&mut transaction).await.map_err(fault)?;
    check_alive(&mut transaction, caller).await?;
    let logged = sqlx::query!(
        "with decided as (
             update approval set state = $2, decided_by = $3, decided_at = $4, decision_reason = $5
             where id = $1 and state = 'held' and expires_at > $4
             returning invocation, key
         )
         insert into event (at, kind, invocation, key, actor, body)
         select $4, 'approve', invocation, key, $3, $6 from decided",
        decision.id,
        decision.state,
        decision.by,
        decision.at,
        decision.reason,
        decision.event
    )
    .execute(&mut *transaction)
    .await
    .map_err(fault)?;
    transaction.commit().await.map_err(fault)?;
    Ok(logged.rows_affected() == 1)
}

/// Erases what was sent with calls that were held before this moment. Gives how many.
pub async fn erase(pool: &PgPool, before: OffsetDateTime) -> sqlx::Result<u64> {
    let gone = sqlx::query!(
        "update approval set input = null, nonce = null
         where id in (
             select id from approval where created_at < $1 and input is not null order by created_at limit 1000
         )",
        before
    )
    .execute(pool)
    .await?;
    Ok(gone.rows_affected())
}
