//! How far a call and the calls below it came, in SQL.

use sqlx::PgPool;
use uuid::Uuid;

/// A call below another one that ended.
#[derive(Clone, Debug)]
pub struct Ended {
    pub id: Uuid,
    pub key: String,
    pub state: String,
    pub material: Option<bool>,
}

/// The state of a call; nothing where no such call is on record.
pub async fn state(pool: &PgPool, id: Uuid) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar!("select state from invocation where id = $1", id).fetch_optional(pool).await
}

/// The calls below this one, at any depth, that ended, in the order in which they did; those `known` are left out.
pub async fn ended_below(pool: &PgPool, id: Uuid, known: &[Uuid]) -> sqlx::Result<Vec<Ended>> {
    sqlx::query_as!(
        Ended,
        r#"with recursive below (id) as (
               select id from invocation where parent = $1
               union
               select child.id from invocation child join below on child.parent = below.id
           )
           select i.id as "id!", i.key as "key!", i.state as "state!", i.material
           from invocation i join below using (id)
           where i.state <> 'running' and i.id <> all($2)
           order by i.finished_at, i.id
           limit 1000"#,
        id,
        known
    )
    .fetch_all(pool)
    .await
}
