//! How a token stands: what the gate recorded of its root, and whether anything took it back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use callbook_domain::caller::{Counter, Holder};
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::token::{Chain, Digest};
use callbook_store::fault::{fault, is_outage};
use quick_cache::sync::Cache;
use sqlx::PgPool;
use uuid::Uuid;

/// How long a token is believed to stand as it was found. The commit point looks again.
const BELIEVED: Duration = Duration::from_secs(1);
/// How many tokens are remembered.
const REMEMBERED: usize = 4_096;

/// Tokens that were looked up lately, by the SHA-256 of their texts.
pub(super) struct Standings {
    pool: PgPool,
    found: Cache<Digest, Standing>,
}

#[derive(Clone)]
struct Standing {
    holder: Arc<Holder>,
    /// What took it back.
    revoked: Option<String>,
    at: Instant,
}

impl Standings {
    pub(super) fn new(pool: PgPool) -> Self {
        Standings { pool, found: Cache::new(REMEMBERED) }
    }

    /// The holder of this chain.
    ///
    /// # Errors
    /// `revoked:<what>`, also for a root that the gate has no record of; `database_unavailable`.
    pub(super) async fn of(&self, hash: Digest, chain: &Arc<Chain>) -> Result<Arc<Holder>> {
        let remembered = self.found.get(&hash);
        if let Some(standing) = &remembered
            && standing.at.elapsed() < BELIEVED
        {
            return standing.holder();
        }
        match (self.look_up(chain).await, remembered) {
            (Ok(Some(standing)), _) => {
                self.found.insert(hash, standing.clone());
                standing.holder()
            }
            (Ok(None), _) => Err(revoked(&format!("jti:{}", chain.root().claims.jti))),
            // without a database reads go on; nothing fires without one
            (Err(error), Some(standing)) if is_outage(&error) => standing.holder(),
            (Err(error), _) => Err(fault(error)),
        }
    }

    async fn look_up(&self, chain: &Arc<Chain>) -> sqlx::Result<Option<Standing>> {
        let at = Instant::now();
        let named = names(chain);
        let record = sqlx::query!(
            r#"select names, counters, limits, principal,
               (select min(r.name) from revocation r where r.name = any($2 || t.names)) as revoked
               from token t where jti = $1"#,
            chain.root().claims.jti,
            &named
        )
        .fetch_optional(&self.pool)
        .await?;
        Ok(record.map(|record| {
            let recorded = record.counters.into_iter().zip(record.limits);
            let holder = holder(chain, named, record.names, recorded, record.principal);
            Standing { holder: Arc::new(holder), revoked: record.revoked, at }
        }))
    }
}

impl Standing {
    fn holder(&self) -> Result<Arc<Holder>> {
        match &self.revoked {
            None => Ok(self.holder.clone()),
            Some(what) => Err(revoked(what)),
        }
    }
}

/// What the links and the record say together.
fn holder(
    chain: &Arc<Chain>,
    mut names: Vec<String>,
    recorded_names: Vec<String>,
    recorded: impl Iterator<Item = (String, i64)>,
    principal: Option<Uuid>,
) -> Holder {
    names.extend(recorded_names);
    names.sort_unstable();
    names.dedup();
    let limit = |uses: Option<u64>| uses.map(|uses| i64::try_from(uses).unwrap_or(i64::MAX));
    let own = chain.links().iter().filter_map(|link| Some((link.id.to_string(), limit(link.claims.cap.uses)?)));
    let counters: BTreeMap<String, i64> = own.chain(recorded).collect();
    let counters = counters.into_iter().map(|(link, limit)| Counter { link, limit }).collect();
    Holder { chain: chain.clone(), names, counters, principal }
}

/// What a revocation can name of the links. A holder chooses the `jti` of what it derives and could take somebody
/// else's, so every link has a name of its own beside it.
fn names(chain: &Chain) -> Vec<String> {
    let lineage = chain.lineage();
    let links = lineage.links.iter().flat_map(|link| {
        let holder = link.holder.as_ref().map(|holder| format!("holder:{holder}"));
        [format!("jti:{}", link.jti), format!("link:{}", link.id)].into_iter().chain(holder)
    });
    links.chain([format!("sub:{}", lineage.sub), format!("kid:{}", lineage.kid)]).collect()
}

fn revoked(what: &str) -> Fault {
    Fault::new(Reason::Revoked, "the token was taken back").detail(what).fix("ask for a new token")
}
