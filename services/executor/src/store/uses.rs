//! Calls that a token counts, in SQL. A call counts under every counter of its token, or not at all.
//!
//! The counters are locked in the order of their names before anything is decided, so that of many calls on the last
//! use one passes, on whichever executor. Groups without counters ask nothing here.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use sqlx::PgConnection;

use super::commit::Candidate;

/// Takes out those whose token was used as often as it may be, and those whose idempotency key was used before: these
/// consume nothing.
pub async fn grant<'a>(
    connection: &mut PgConnection,
    mut standing: Vec<&'a Candidate>,
) -> sqlx::Result<Vec<&'a Candidate>> {
    let counters = standing.iter().flat_map(|candidate| candidate.counters());
    let links: BTreeSet<&str> = counters.map(|counter| counter.link.as_str()).collect();
    if links.is_empty() {
        return Ok(standing);
    }
    let links: Vec<String> = links.into_iter().map(str::to_owned).collect();
    let mut used = lock(connection, &links).await?;
    let mut taken = taken(connection, &standing).await?;
    standing.retain(|candidate| {
        let counters = candidate.counters();
        if counters.is_empty() {
            return true;
        }
        let is_new =
            candidate.idempotency_key.as_ref().is_none_or(|key| taken.insert((candidate.caller.clone(), key.clone())));
        let is_left = |used: &BTreeMap<String, i64>| {
            counters.iter().all(|counter| used.get(&counter.link).is_some_and(|used| *used < counter.limit))
        };
        let passes = is_new && is_left(&used);
        if passes {
            for counter in counters {
                *used.entry(counter.link.clone()).or_default() += 1;
            }
        }
        passes
    });
    Ok(standing)
}

/// Locks the counters in the order of their names and gives how often each was used.
async fn lock(connection: &mut PgConnection, links: &[String]) -> sqlx::Result<BTreeMap<String, i64>> {
    sqlx::query!(
        r#"insert into token_use (link, used)
           select link collate "C", 0::bigint from unnest($1::text[]) as link order by 1
           on conflict on constraint token_use_link do nothing"#,
        links
    )
    .execute(&mut *connection)
    .await?;
    let counters =
        sqlx::query!("select link, used from token_use where link = any($1) order by link for update", links)
            .fetch_all(connection)
            .await?;
    Ok(counters.into_iter().map(|counter| (counter.link, counter.used)).collect())
}

/// Callers and idempotency keys of counted calls that were used before.
async fn taken(connection: &mut PgConnection, standing: &[&Candidate]) -> sqlx::Result<HashSet<(String, String)>> {
    let counted = standing.iter().filter(|candidate| !candidate.counters().is_empty());
    let (callers, keys): (Vec<String>, Vec<String>) =
        counted.filter_map(|candidate| Some((candidate.caller.clone(), candidate.idempotency_key.clone()?))).unzip();
    if keys.is_empty() {
        return Ok(HashSet::new());
    }
    let found = sqlx::query!(
        r#"select i.caller, i.idempotency_key as "idempotency_key!"
           from unnest($1::text[], $2::text[]) as c (caller, key)
           join invocation i on i.caller = c.caller and i.idempotency_key = c.key"#,
        &callers,
        &keys
    )
    .fetch_all(connection)
    .await?;
    Ok(found.into_iter().map(|found| (found.caller, found.idempotency_key)).collect())
}

/// Counts those that passed.
pub async fn count(connection: &mut PgConnection, passed: &[&Candidate]) -> sqlx::Result<()> {
    let mut calls: BTreeMap<&str, i64> = BTreeMap::new();
    for counter in passed.iter().flat_map(|candidate| candidate.counters()) {
        *calls.entry(&counter.link).or_default() += 1;
    }
    if calls.is_empty() {
        return Ok(());
    }
    let (links, calls): (Vec<String>, Vec<i64>) =
        calls.into_iter().map(|(link, calls)| (link.to_owned(), calls)).unzip();
    sqlx::query!(
        "update token_use t set used = t.used + c.calls
         from unnest($1::text[], $2::bigint[]) as c (link, calls) where t.link = c.link",
        &links,
        &calls
    )
    .execute(connection)
    .await?;
    Ok(())
}
