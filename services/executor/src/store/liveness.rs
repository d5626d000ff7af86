//! Who lives, and what becomes of the calls of those who do not.
//!
//! These times are the database's, so that executors with other clocks agree on who is dead.

use callbook_domain::event::{Body, EventKind};
use callbook_domain::invocation::InvocationId;
use callbook_domain::row::timestamp;
use sqlx::PgPool;
use time::OffsetDateTime;
use uuid::Uuid;

/// After how many seconds of silence an executor is dead.
pub const DEAD_AFTER_SECONDS: f64 = 20.0;

/// Says that this executor lives.
pub async fn beat(pool: &PgPool, id: Uuid, pools: &[String], address: &str) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into executor (id, pools, address, started_at, heartbeat_at)
         values ($1, $2, $3, clock_timestamp(), clock_timestamp())
         on conflict on constraint executor_id do update set heartbeat_at = clock_timestamp()",
        id,
        pools,
        address
    )
    .execute(pool)
    .await?;
    Ok(())
}

/// Takes this executor out, when it has no calls left.
pub async fn leave(pool: &PgPool, id: Uuid) -> sqlx::Result<()> {
    sqlx::query!("delete from executor where id = $1", id).execute(pool).await?;
    Ok(())
}

/// Turns running calls of dead executors, and calls past their lease, into unknown ones. Gives how many.
pub async fn resolve(pool: &PgPool, now: OffsetDateTime) -> sqlx::Result<usize> {
    let mut transaction = pool.begin().await?;
    let lost = sqlx::query!(
        "update invocation set state = 'unknown', finished_at = $2
         where id in (
             select id from invocation i
             where state = 'running' and (
                 lease_until < clock_timestamp()
                 or not exists (
                     select 1 from executor e
                     where e.id = i.executor and e.heartbeat_at > clock_timestamp() - make_interval(secs => $1)
                 )
             )
             order by id limit 500 for update skip locked
         )
         returning id, key, actor, lineage, parent, row_revision, contract_hash, text_hash, risk, effect",
        DEAD_AFTER_SECONDS,
        now
    )
    .fetch_all(&mut *transaction)
    .await?;
    let (mut ids, mut keys, mut actors, mut bodies) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for record in &lost {
        let body = Body::new(EventKind::Unknown)
            .set("inv", InvocationId(record.id).to_string())
            .set("key", record.key.as_str())
            .set("revision", record.row_revision)
            .set("contract", record.contract_hash.as_str())
            .set("text", record.text_hash.as_str())
            .set("actor", record.actor.as_str())
            .set("lineage", (!record.lineage.is_empty()).then(|| record.lineage.clone()))
            .set("parent", record.parent.map(|parent| InvocationId(parent).to_string()))
            .set("risk", record.risk.as_str())
            .set("effect", record.effect.as_str())
            .set("ts", timestamp(now));
        ids.push(record.id);
        keys.push(record.key.clone());
        actors.push(record.actor.clone());
        bodies.push(body.canonical());
    }
    sqlx::query!(
        "insert into event (at, kind, invocation, key, actor, body)
         select $1, 'unknown', * from unnest($2::uuid[], $3::text[], $4::text[], $5::text[])",
        now,
        &ids,
        &keys,
        &actors,
        &bodies
    )
    .execute(&mut *transaction)
    .await?;
    sqlx::query!(
        "delete from executor e where heartbeat_at < clock_timestamp() - interval '1 hour'
         and not exists (select 1 from invocation i where i.executor = e.id and i.state = 'running')"
    )
    .execute(&mut *transaction)
    .await?;
    transaction.commit().await?;
    Ok(lost.len())
}
