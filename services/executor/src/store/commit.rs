//! The commit point in SQL: one short transaction for a group of calls.

use std::collections::BTreeSet;
use std::sync::Arc;

use callbook_domain::caller::{Counter, Holder};
use callbook_domain::clock::Clock;
use callbook_domain::fault::Result;
use callbook_domain::invocation::InvocationId;
use callbook_store::fault::fault;
use callbook_store::lock;
use sqlx::{PgConnection, PgPool};
use time::OffsetDateTime;
use uuid::Uuid;

use super::uses;

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
    /// The holder of the token that it comes with: nothing of it may have been taken back, and its calls are counted.
    pub holder: Option<Arc<Holder>>,
    /// When its credential ends by itself, in seconds since the Unix epoch.
    pub credential_ends: Option<i64>,
    /// Whether it counts as a use of the token. A part of a call that is no call of a row does not.
    pub is_counted: bool,
    /// The approval that it was given, which is used up with it.
    pub approval: Option<Uuid>,
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

    /// What a revocation can name of it; nothing without a token.
    pub fn names(&self) -> &[String] {
        self.holder.as_ref().map_or(&[], |holder| &holder.names)
    }

    /// The counters under which it counts.
    pub fn counters(&self) -> &[Counter] {
        self.holder.as_ref().filter(|_| self.is_counted).map_or(&[], |holder| &holder.counters)
    }

    /// Whether its credential is over. An end is an end on our clock.
    pub fn is_over(&self, now: OffsetDateTime) -> bool {
        self.credential_ends.is_some_and(|end| end <= now.unix_timestamp())
    }

    /// The ids of its token's links, root first; none without a token.
    pub fn lineage_ids(&self) -> Option<Vec<String>> {
        self.holder.as_ref().map(|holder| lineage_ids(holder))
    }

    /// The same in one text: the line is no part of an id.
    pub(super) fn lineage(&self) -> String {
        self.lineage_ids().unwrap_or_default().join("\n")
    }

    /// The names of its token's links and of those that it was narrowed from.
    pub(super) fn links(&self) -> String {
        let links = self.names().iter().filter(|name| name.starts_with("link:"));
        links.map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}

/// The ids of a token's links, root first.
pub fn lineage_ids(holder: &Holder) -> Vec<String> {
    holder.chain.links().iter().map(|link| link.claims.jti.to_string()).collect()
}

macro_rules! column {
    ($rows:expr, $field:expr) => {
        &$rows.iter().map($field).collect::<Vec<_>>()[..]
    };
}

/// Commits those of the group that are still true, and says of each whether it passed. Repeats of an approved call have one
/// id, so it is not the id that says it. The group is sorted, so that two groups cannot wait for each other. Approvals are
/// locked before counters, and counters before invocations are written.
pub async fn commit(connection: &mut PgConnection, group: &[Candidate], clock: &Clock) -> sqlx::Result<Vec<bool>> {
    let mut transaction = lock::begin_shared(connection).await?;
    let now = clock.now();
    let standing: Vec<&Candidate> = group.iter().filter(|candidate| !candidate.is_over(now)).collect();
    let approved = approved(&mut transaction, standing, now).await?;
    let granted = uses::grant(&mut transaction, approved).await?;
    if granted.is_empty() {
        transaction.rollback().await?;
        return Ok(vec![false; group.len()]);
    }
    let admitted = insert(&mut transaction, &granted).await?;
    let passed: Vec<&Candidate> = granted.into_iter().filter(|candidate| admitted.contains(&candidate.id.0)).collect();
    use_up(&mut transaction, &passed).await?;
    uses::count(&mut transaction, &passed).await?;
    transaction.commit().await?;
    Ok(group.iter().map(|candidate| passed.iter().any(|passed| std::ptr::eq(*passed, candidate))).collect())
}

/// Takes out those whose approval does not stand, and locks it for the others. One approval lets one call through.
async fn approved<'a>(
    connection: &mut PgConnection,
    mut standing: Vec<&'a Candidate>,
    now: OffsetDateTime,
) -> sqlx::Result<Vec<&'a Candidate>> {
    let asked: Vec<Uuid> = standing.iter().filter_map(|candidate| candidate.approval).collect();
    if asked.is_empty() {
        return Ok(standing);
    }
    let mut free: BTreeSet<Uuid> = sqlx::query_scalar!(
        "select id from approval where id = any($1) and state = 'approved' and expires_at > $2 order by id for update",
        &asked,
        now
    )
    .fetch_all(connection)
    .await?
    .into_iter()
    .collect();
    standing.retain(|candidate| candidate.approval.is_none_or(|approval| free.remove(&approval)));
    Ok(standing)
}

async fn use_up(connection: &mut PgConnection, passed: &[&Candidate]) -> sqlx::Result<()> {
    let used: Vec<Uuid> = passed.iter().filter_map(|candidate| candidate.approval).collect();
    if !used.is_empty() {
        sqlx::query!("update approval set state = 'used' where id = any($1)", &used).execute(connection).await?;
    }
    Ok(())
}

/// What a revocation could name, each with the call that it would end.
fn names(group: &[&Candidate]) -> (Vec<Uuid>, Vec<String>) {
    group.iter().flat_map(|c| c.names().iter().map(|name| (c.id.0, name.clone()))).unzip()
}

async fn insert(connection: &mut PgConnection, group: &[&Candidate]) -> sqlx::Result<Vec<Uuid>> {
    let (named, names) = names(group);
    sqlx::query_scalar!(
        r#"with candidate as (
             select * from unnest(
                 $1::uuid[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::bytea[], $7::text[], $8::text[],
                 $9::bigint[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::uuid[],
                 $16::float8[], $17::uuid[], $18::uuid[], $19::text[], $20::timestamptz[], $21::text[], $22::bytea[],
                 $23::bytea[], $24::text[], $25::text[], $26::uuid[], $27::text[], $28::text[]
             ) as c (id, caller, principal, actor, idempotency_key, argument_hash, key, type, row_revision,
                     contract_hash, text_hash, effect, risk, runner, executor, lease_seconds, repairs, replay_of, trace,
                     started_at, warnings, nonce, input, event, pool, parent, lineage, links)
         ), admitted as (
             insert into invocation (
                 id, caller, actor, idempotency_key, argument_hash, key, type, row_revision, contract_hash, text_hash,
                 effect, risk, runner, pool, mode, state, executor, lease_until, parent, repairs, replay_of, trace,
                 started_at, warnings, lineage, links)
             select c.id, c.caller, c.actor, c.idempotency_key, c.argument_hash, c.key, c.type, c.row_revision,
                    c.contract_hash, c.text_hash, c.effect, c.risk, c.runner, c.pool, 'durable', 'running', c.executor,
                    clock_timestamp() + make_interval(secs => c.lease_seconds), c.parent, c.repairs, c.replay_of,
                    c.trace, c.started_at, string_to_array(c.warnings, E'\n'), string_to_array(c.lineage, E'\n'),
                    string_to_array(c.links, E'\n')
             from candidate c
             join directory d on d.key = c.key and d.revision = c.row_revision and d.enabled
             left join principal p on p.id = c.principal
             where (c.principal is null or (p.id is not null and p.revoked_at is null))
               and c.id <> all (select n.id from unnest($29::uuid[], $30::text[]) n (id, name) join revocation using (name))
             order by c.caller, c.idempotency_key, c.id
             on conflict on constraint invocation_idempotency do nothing
             returning id
         ), logged as (insert into event (at, kind, invocation, key, actor, body)
             select c.started_at, 'intent', c.id, c.key, c.actor, c.event from candidate c join admitted using (id)
         ), kept as (insert into payload (invocation, part, nonce, bytes, media_type)
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
        column!(group, |c| c.lineage()),
        column!(group, |c| c.links()),
        &named,
        &names,
    )
    .fetch_all(connection)
    .await
}

/// Whether the row stands at the revision that we hold and the credential was not taken back.
pub async fn still_true(pool: &PgPool, candidate: &Candidate) -> Result<bool> {
    sqlx::query_scalar!(
        r#"select exists (
             select 1 from directory where key = $1 and revision = $2 and enabled
         ) and ($3::uuid is null or exists (
             select 1 from principal where id = $3 and revoked_at is null
         )) and not exists (select 1 from revocation where name = any($4)) as "true!""#,
        candidate.key,
        candidate.row_revision,
        candidate.principal,
        candidate.names()
    )
    .fetch_one(pool)
    .await
    .map_err(fault)
}
