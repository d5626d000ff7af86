//! A database for one test.

use std::str::FromStr as _;
use std::sync::OnceLock;

use callbook::cluster::Cluster;
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _};

static SERVER: OnceLock<(String, Option<Cluster>)> = OnceLock::new();

/// Measures on a server that writes to its disk as a deployment's does. To be called before anything asks for one.
pub fn durable(data: &std::path::Path) {
    let cluster = Cluster::start(data, None).unwrap();
    let url = cluster.url("postgres");
    assert!(SERVER.set((url, Some(cluster))).is_ok(), "a server is in use already");
}

/// The server: `DATABASE_URL` where it is set, else a throw-away one for this process.
fn server() -> &'static str {
    let (url, _) = SERVER.get_or_init(|| match std::env::var("DATABASE_URL") {
        Ok(url) if !url.is_empty() => (url, None),
        _ => {
            let cluster = Cluster::throwaway(None).unwrap();
            (cluster.url("postgres"), Some(cluster))
        }
    });
    url
}

/// Makes an empty database and gives its address.
pub async fn fresh() -> String {
    let name = format!("t_{}", uuid::Uuid::new_v4().simple());
    let mut connection = PgConnectOptions::from_str(server()).unwrap().connect().await.unwrap();
    connection.execute(AssertSqlSafe(format!("create database {name}"))).await.unwrap();
    connection.close().await.unwrap();
    let (base, _) = server().rsplit_once('/').unwrap();
    format!("{base}/{name}")
}

/// A pool as the services have it.
pub fn services(url: &str) -> sqlx::PgPool {
    callbook_store::pool::connect(&PgConnectOptions::from_str(url).unwrap(), 32)
}

/// A connection as the role that owns everything, to look behind the product's back.
pub async fn owner(url: &str) -> sqlx::PgConnection {
    PgConnectOptions::from_str(url).unwrap().connect().await.unwrap()
}
