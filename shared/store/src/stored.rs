//! A row between SQL and domain.

use callbook_domain::key::Key;
use callbook_domain::row::{Definition, Effect, Provenance, Risk, Row, RowType};
use time::OffsetDateTime;

/// One record of `directory`, as `select *` gives it.
#[derive(Debug)]
pub(crate) struct Stored {
    pub key: String,
    pub r#type: String,
    pub target: String,
    pub auth: String,
    pub content: String,
    pub updated_at: OffsetDateTime,
    pub category: Option<String>,
    pub allowed_categories: Option<String>,
    pub seq: Option<i32>,
    pub enabled: bool,
    pub planner_visible: bool,
    pub planner_rank: i32,
    pub input_schema: Option<String>,
    pub examples: Option<String>,
    pub sensitive: bool,
    pub runner: Option<String>,
    pub includes: Option<String>,
    pub created_at: OffsetDateTime,
    pub revision: i64,
    pub version: i64,
    pub contract_hash: String,
    pub text_hash: String,
    pub output_schema: Option<String>,
    pub provenance: String,
    pub timeout_ms: Option<i32>,
    pub max_response_bytes: Option<i32>,
    pub effect: String,
    pub risk: String,
    #[expect(dead_code, reason = "`select *` gives it; only look-alike queries read it")]
    pub skeleton: String,
}

impl Stored {
    /// The row. A record that the constraints let through and this cannot read is a mistake of ours.
    pub(crate) fn into_row(self) -> sqlx::Result<Row> {
        let unreadable = |column: &str| sqlx::Error::Decode(format!("directory.{column} of {}", self.key).into());
        let examples = match self.examples.as_deref() {
            None => Vec::new(),
            Some(text) => serde_json::from_str(text).map_err(|_| unreadable("examples"))?,
        };
        let definition = Definition {
            key: Key::parse(&self.key).map_err(|_| unreadable("key"))?,
            row_type: RowType::parse(&self.r#type).ok_or_else(|| unreadable("type"))?,
            provenance: Provenance::parse(&self.provenance).ok_or_else(|| unreadable("provenance"))?,
            target: self.target,
            auth: self.auth,
            content: self.content,
            category: self.category,
            allowed_categories: words(self.allowed_categories.as_deref()),
            seq: self.seq,
            enabled: self.enabled,
            planner_visible: self.planner_visible,
            planner_rank: self.planner_rank,
            input_schema: self.input_schema,
            output_schema: self.output_schema,
            examples,
            sensitive: self.sensitive,
            runner: self.runner,
            includes: words(self.includes.as_deref()),
            timeout_ms: self.timeout_ms,
            max_response_bytes: self.max_response_bytes,
        };
        Ok(Row {
            revision: self.revision,
            version: self.version,
            contract_hash: self.contract_hash,
            text_hash: self.text_hash,
            effect: Effect::parse(&self.effect).unwrap_or(Effect::Destructive),
            risk: Risk::parse(&self.risk).unwrap_or(Risk::High),
            created_at: self.created_at,
            updated_at: self.updated_at,
            definition,
        })
    }
}

fn words(text: Option<&str>) -> Vec<String> {
    text.unwrap_or_default().split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// The comma-separated text of a list, or null for none.
pub(crate) fn joined(words: &[String]) -> Option<String> {
    (!words.is_empty()).then(|| words.join(","))
}

/// The JSON text of the examples, or null for none.
pub(crate) fn examples(definition: &Definition) -> Option<String> {
    let list = serde_json::Value::Array(definition.examples.clone());
    (!definition.examples.is_empty()).then(|| list.to_string())
}
