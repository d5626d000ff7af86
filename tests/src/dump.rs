//! Everything that a database holds, as bytes to look through.

use sqlx::{AssertSqlSafe, Row as _};

use crate::database;

/// Every row of every table as text, and every `bytea` once more as the bytes that it stands for.
pub async fn dump(url: &str) -> Vec<u8> {
    let mut owner = database::owner(url).await;
    let columns = "select table_name::text, column_name::text, data_type::text from information_schema.columns
        where table_schema = 'public'";
    let columns: Vec<(String, String, String)> = sqlx::query_as(columns).fetch_all(&mut owner).await.unwrap();
    let mut tables: Vec<&str> = columns.iter().map(|(table, ..)| table.as_str()).collect();
    tables.sort_unstable();
    tables.dedup();
    assert!(tables.len() > 8, "{tables:?}");
    let mut all = Vec::new();
    for table in tables {
        let rows =
            sqlx::query(AssertSqlSafe(format!("select t::text from {table} t"))).fetch_all(&mut owner).await.unwrap();
        for row in rows {
            all.extend_from_slice(row.get::<String, _>(0).as_bytes());
            all.push(b'\n');
        }
        let bytes = columns.iter().filter(|(of, _, kind)| of == table && kind == "bytea");
        for (_, column, _) in bytes {
            let query = AssertSqlSafe(format!("select {column} from {table} where {column} is not null"));
            for row in sqlx::query(query).fetch_all(&mut owner).await.unwrap() {
                all.extend_from_slice(row.get::<&[u8], _>(0));
                all.push(b'\n');
            }
        }
    }
    all
}
