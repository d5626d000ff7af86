//! A database for one test.

use std::str::FromStr as _;
use std::sync::OnceLock;

use callbook::cluster::Cluster;
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _};

/// The server: `DATABASE_URL` where it is set, else a throw-away one for this process.
fn server() -> &'static str {
    static SERVER: OnceLock<(String, Option<Cluster>)> = OnceLock::new();
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

/// A connection as the role that owns everything, to look behind the product's back.
pub async fn owner(url: &str) -> sqlx::PgConnection {
    PgConnectOptions::from_str(url).unwrap().connect().await.unwrap()
}
