//! Issued tokens and revocations in SQL.

use std::collections::HashMap;

use callbook_domain::caller::Counter;
use callbook_domain::event::EventKind;
use sqlx::PgConnection;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::token::Issued;

/// Which tokens a page has.
pub(crate) struct Filter {
    /// Only those that it minted, or that were narrowed from those.
    pub(crate) principal: Option<Uuid>,
    /// Only those of this subject.
    pub(crate) subject: Option<String>,
    /// Only those that are good at this moment.
    pub(crate) living_at: Option<OffsetDateTime>,
    /// The last one of the page before.
    pub(crate) after: Option<(OffsetDateTime, Uuid)>,
    /// The most.
    pub(crate) limit: i64,
}

/// Keeps a token that was signed.
pub(crate) async fn insert(connection: &mut PgConnection, issued: &Issued) -> sqlx::Result<()> {
    let (counters, limits): (Vec<String>, Vec<i64>) =
        issued.counters.iter().map(|counter| (counter.link.clone(), counter.limit)).unzip();
    sqlx::query!(
        "insert into token (jti, kid, sub, holder, purpose, claims, minted_by, principal, source, link, names, counters,
         limits, issued_at, expires_at) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)",
        issued.jti,
        issued.kid,
        issued.sub,
        issued.holder,
        issued.purpose,
        issued.claims,
        issued.minted_by,
        issued.principal,
        issued.source,
        issued.link,
        &issued.names,
        &counters,
        &limits,
        issued.issued_at,
        issued.expires_at
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// The first of these names that is taken back.
pub(crate) async fn revoked(connection: &mut PgConnection, names: &[String]) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar!("select min(name) from revocation where name = any($1)", names).fetch_one(connection).await
}

/// Takes a name back; whether this is new.
pub(crate) async fn revoke(
    connection: &mut PgConnection,
    name: &str,
    actor: &str,
    reason: &str,
    at: OffsetDateTime,
) -> sqlx::Result<bool> {
    let done = sqlx::query!(
        "insert into revocation (name, at, actor, reason) values ($1, $2, $3, $4) on conflict (name) do nothing",
        name,
        at,
        actor,
        reason
    )
    .execute(connection)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// The principal of an issued token; nothing where none of this id was issued.
pub(crate) async fn principal(connection: &mut PgConnection, jti: Uuid) -> sqlx::Result<Option<Option<Uuid>>> {
    sqlx::query_scalar!("select principal from token where jti = $1", jti).fetch_optional(connection).await
}

/// Calls that were counted, by link.
pub(crate) async fn used(connection: &mut PgConnection, links: &[String]) -> sqlx::Result<HashMap<String, i64>> {
    let found = sqlx::query!("select link, used from token_use where link = any($1)", links);
    Ok(found.fetch_all(connection).await?.into_iter().map(|counted| (counted.link, counted.used)).collect())
}

/// Tokens, newest first.
pub(crate) async fn page(connection: &mut PgConnection, filter: &Filter) -> sqlx::Result<Vec<Issued>> {
    let (after, after_jti) = filter.after.unzip();
    let found = sqlx::query!(
        r#"select jti, kid, sub, holder, purpose, claims, minted_by, principal, source, link, names, counters, limits,
           issued_at, expires_at, (select min(r.name) from revocation r where r.name = any(t.names)) as revoked,
           coalesce((select used from token_use u where u.link = t.link), 0) as "used!"
           from token t
           where ($1::uuid is null or principal = $1) and ($2::text is null or sub = $2)
           and ($3::timestamptz is null or (expires_at > $3
           and not exists (select from revocation r where r.name = any(t.names))))
           and ($4::timestamptz is null or (issued_at, jti) < ($4, $5))
           order by issued_at desc, jti desc limit $6"#,
        filter.principal,
        filter.subject,
        filter.living_at,
        after,
        after_jti,
        filter.limit
    )
    .fetch_all(connection)
    .await?;
    let issued = found.into_iter().map(|token| {
        let counters = token.counters.into_iter().zip(token.limits).map(|(link, limit)| Counter { link, limit });
        let counters: Vec<Counter> = counters.collect();
        let is_counted = counters.iter().any(|counter| counter.link == token.link);
        Issued {
            jti: token.jti,
            kid: token.kid,
            sub: token.sub,
            holder: token.holder,
            purpose: token.purpose,
            claims: token.claims,
            minted_by: token.minted_by,
            principal: token.principal,
            source: token.source,
            link: token.link,
            names: token.names,
            counters,
            issued_at: token.issued_at,
            expires_at: token.expires_at,
            revoked: token.revoked,
            used: is_counted.then_some(token.used),
        }
    });
    Ok(issued.collect())
}

/// Writes into the log.
pub(crate) async fn log(
    connection: &mut PgConnection,
    kind: EventKind,
    actor: &str,
    body: &str,
    at: OffsetDateTime,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into event (at, kind, key, actor, body) values ($1, $2, '', $3, $4)",
        at,
        kind.as_str(),
        actor,
        body
    )
    .execute(connection)
    .await?;
    Ok(())
}
