//! The watcher's rules in SQL.

use sqlx::PgPool;
use time::OffsetDateTime;

/// One rule as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub name: String,
    pub position: i32,
    pub pattern_key: String,
    pub pattern_body: String,
    pub action: String,
    pub reason: String,
}

/// Who writes rules, and when.
#[derive(Clone, Debug)]
pub struct Written {
    /// The name in receipts.
    pub actor: String,
    /// When.
    pub at: OffsetDateTime,
    /// The body of the `mutate` event.
    pub event: String,
}

/// All rules in the order in which they are asked.
pub async fn rules(pool: &PgPool) -> sqlx::Result<Vec<Record>> {
    sqlx::query_as!(
        Record,
        "select name, position, pattern_key, pattern_body, action, reason from watch_rule order by position, name"
    )
    .fetch_all(pool)
    .await
}

/// What became of a rule that was put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// It is new.
    Created,
    /// It took the place of the one of its name.
    Replaced,
    /// It is new, and there are as many rules as there may be.
    Full,
}

/// Puts a rule with its entry in the log.
pub async fn put(pool: &PgPool, rule: &Record, most: i64, written: &Written) -> sqlx::Result<Put> {
    let mut transaction = pool.begin().await?;
    // rules are written one after the other, so that they can be counted
    sqlx::query!("lock table watch_rule in share row exclusive mode").execute(&mut *transaction).await?;
    let others = sqlx::query_scalar!(r#"select count(*) as "count!" from watch_rule where name <> $1"#, rule.name)
        .fetch_one(&mut *transaction)
        .await?;
    let created = sqlx::query_scalar!(
        r#"insert into watch_rule (name, position, pattern_key, pattern_body, action, reason, actor, updated_at)
           values ($1, $2, $3, $4, $5, $6, $7, $8)
           on conflict (name) do update set position = excluded.position, pattern_key = excluded.pattern_key,
               pattern_body = excluded.pattern_body, action = excluded.action, reason = excluded.reason,
               actor = excluded.actor, updated_at = excluded.updated_at
           returning (xmax = 0) as "created!""#,
        rule.name,
        rule.position,
        rule.pattern_key,
        rule.pattern_body,
        rule.action,
        rule.reason,
        written.actor,
        written.at
    )
    .fetch_one(&mut *transaction)
    .await?;
    if created && others >= most {
        return Ok(Put::Full); // the transaction is dropped and changes nothing
    }
    sqlx::query!(
        "insert into event (at, kind, key, actor, body) values ($1, 'mutate', '', $2, $3)",
        written.at,
        written.actor,
        written.event
    )
    .execute(&mut *transaction)
    .await?;
    transaction.commit().await?;
    Ok(if created { Put::Created } else { Put::Replaced })
}

/// Takes a rule away with its entry in the log. False where there was none.
pub async fn delete(pool: &PgPool, name: &str, written: &Written) -> sqlx::Result<bool> {
    let logged = sqlx::query!(
        "with gone as (delete from watch_rule where name = $1 returning name)
         insert into event (at, kind, key, actor, body) select $2, 'mutate', '', $3, $4 from gone",
        name,
        written.at,
        written.actor,
        written.event
    )
    .execute(pool)
    .await?;
    Ok(logged.rows_affected() == 1)
}
