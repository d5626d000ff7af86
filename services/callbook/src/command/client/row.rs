//! `callbook put`, `patch`, `delete` and `restore`: writing one row.

use clap::Args;
use reqwest::header::IF_MATCH;
use reqwest::{Method, RequestBuilder};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::gateway::{Answer, Gateway};
use super::screen::{Form, Screen};
use super::text::{BOLD, visible};
use super::trouble::Trouble;
use super::{Ended, Verdict, input};

/// Columns whose value is JSON; the others are text.
const JSON_COLUMNS: &[&str] = &[
    "seq",
    "enabled",
    "planner_visible",
    "planner_rank",
    "input_schema",
    "output_schema",
    "examples",
    "sensitive",
    "timeout_ms",
    "max_response_bytes",
];

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  callbook put row.json
  callbook put row.json --if-version 3
  echo '{\"key\":\"SAY\",\"type\":\"fn\",\"target\":\"echo\",\"content\":\"# EX: hello\"}' | callbook put -")]
pub struct Put {
    /// File with the row as one JSON object; - is standard input
    file: String,
    /// Accept a key that reads like another key
    #[arg(long)]
    allow_lookalike: bool,
    /// Only if the stored row has this version
    #[arg(long, value_name = "N")]
    if_version: Option<u64>,
}

#[derive(Debug, Args)]
#[command(after_help = "field=value takes text, or JSON for the columns that hold JSON. field:=JSON is always JSON;
field:=null brings the default back. field=@file and field:=@file read a file, @- standard input.

Examples:
  callbook patch NOW enabled=false planner_rank=10
  callbook patch NOW content=@now.txt category:=null
  callbook patch NOW --json '{\"examples\":[\"\"]}'")]
pub struct Patch {
    /// Key of the row
    key: String,
    /// Columns to change
    #[arg(value_name = "FIELD=VALUE", required_unless_present = "json", conflicts_with = "json")]
    fields: Vec<String>,
    /// The columns as one JSON object; - reads standard input
    #[arg(long, value_name = "JSON")]
    json: Option<String>,
    /// Only if the stored row has this version
    #[arg(long, value_name = "N")]
    if_version: Option<u64>,
}

#[derive(Debug, Args)]
pub struct Delete {
    /// Key of the row; its history and its receipts stay
    key: String,
    /// Only if the stored row has this version
    #[arg(long, value_name = "N")]
    if_version: Option<u64>,
}

#[derive(Debug, Args)]
#[command(disable_version_flag = true, after_help = "`callbook history KEY` lists the versions.")]
pub struct Restore {
    /// Key of the row, which may be deleted
    key: String,
    /// The version to write again
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    version: u32,
    /// Only if the stored row has this version
    #[arg(long, value_name = "N")]
    if_version: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct Written {
    key: String,
    revision: i64,
    version: i64,
    #[serde(default)]
    warnings: Vec<String>,
    #[serde(default)]
    ignored_fields: Vec<String>,
    #[serde(default)]
    fields: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Deleted {
    key: String,
    deleted: u32,
}

impl Put {
    pub async fn run(self, gateway: &Gateway, screen: &Screen) -> Ended {
        let row = input::text(&self.file)?;
        let key = key_of(&row)?;
        let lookalike = [("allow_lookalike", "true")];
        let lookalike = if self.allow_lookalike { &lookalike[..] } else { &[] };
        if self.if_version.is_none() {
            let create = gateway.json(Method::POST, &["api", "directory"], row.clone())?.query(lookalike);
            match gateway.send(create).await {
                Ok(answer) => return written(&answer, screen, "created"),
                Err(Trouble::Refused(refusal)) if refusal.problem.is("already_exists") => {}
                Err(trouble) => return Err(trouble),
            }
        }
        let replace = gateway.json(Method::PUT, &["api", "directory", &key], row)?.query(lookalike);
        written(&gateway.send(only_if(replace, self.if_version)).await?, screen, "replaced")
    }
}

impl Patch {
    pub async fn run(self, gateway: &Gateway, screen: &Screen) -> Ended {
        let body = match self.json {
            Some(json) => object(&input::argument(json)?)?.0,
            None => Value::Object(self.fields.iter().map(|field| parsed(field)).collect::<Result<_, _>>()?).to_string(),
        };
        let request = gateway.json(Method::PATCH, &["api", "directory", &self.key], body)?;
        written(&gateway.send(only_if(request, self.if_version)).await?, screen, "changed")
    }
}

impl Delete {
    pub async fn run(self, gateway: &Gateway, screen: &Screen) -> Ended {
        let request = gateway.request(Method::DELETE, &["api", "directory", &self.key])?;
        let answer = gateway.send(only_if(request, self.if_version)).await?;
        if screen.form != Form::Text {
            return screen.json(&answer.body).map(|()| Verdict::Done);
        }
        let Deleted { key, deleted } = answer.read()?;
        let said = if deleted > 0 { format!("deleted {key}\n") } else { format!("there is no row {key}\n") };
        screen.text(&visible(&said)).map(|()| Verdict::Done)
    }
}

impl Restore {
    pub async fn run(self, gateway: &Gateway, screen: &Screen) -> Ended {
        let request = gateway.request(Method::POST, &["api", "directory", &self.key, "restore"])?;
        let request = request.query(&[("version", self.version)]);
        written(&gateway.send(only_if(request, self.if_version)).await?, screen, "restored")
    }
}

fn only_if(request: RequestBuilder, version: Option<u64>) -> RequestBuilder {
    match version {
        Some(version) => request.header(IF_MATCH, format!("\"v{version}\"")),
        None => request,
    }
}

fn written(answer: &Answer, screen: &Screen, did: &str) -> Ended {
    if screen.form != Form::Text {
        return screen.json(&answer.body).map(|()| Verdict::Done);
    }
    let written: Written = answer.read()?;
    let (key, version, revision) = (visible(&written.key), written.version, written.revision);
    let fields =
        if written.fields.is_empty() { String::new() } else { format!(" · {}", visible(&written.fields.join(", "))) };
    screen.text(&format!(
        "{did} {} · version {version} · revision {revision}{fields}\n",
        screen.paint.with(BOLD, &key)
    ))?;
    for warning in &written.warnings {
        screen.note(&visible(&format!("warning: {warning}")));
    }
    if !written.ignored_fields.is_empty() {
        screen.note(&visible(&format!("ignored, not writable: {}", written.ignored_fields.join(", "))));
    }
    Ok(Verdict::Done)
}

/// The text of one JSON object without what is around it, and the object.
fn object(text: &str) -> Result<(String, Map<String, Value>), Trouble> {
    let text = text.trim_start_matches('\u{feff}').trim();
    let object =
        serde_json::from_str(text).map_err(|error| Trouble::usage(format!("not one JSON object ({error})")))?;
    Ok((text.to_owned(), object))
}

fn key_of(row: &str) -> Result<String, Trouble> {
    let key = object(row)?.1.get("key").and_then(Value::as_str).map(str::to_owned);
    key.filter(|key| !key.is_empty()).ok_or_else(|| Trouble::usage("the row has no `key`"))
}

/// One `field=value` or `field:=JSON`.
fn parsed(field: &str) -> Result<(String, Value), Trouble> {
    let (name, value) = field
        .split_once('=')
        .ok_or_else(|| Trouble::usage(format!("`{field}` is not field=value, as in enabled=false")))?;
    let (name, is_json) = match name.strip_suffix(':') {
        Some(name) => (name, true),
        None => (name, JSON_COLUMNS.contains(&name)),
    };
    if name.is_empty() {
        return Err(Trouble::usage(format!("`{field}` names no column")));
    }
    let text = match value.strip_prefix('@') {
        Some(file) => input::text(file)?,
        None => value.to_owned(),
    };
    let value = match is_json {
        true => {
            serde_json::from_str(&text).map_err(|error| Trouble::usage(format!("`{name}` is not JSON ({error})")))?
        }
        false => Value::String(text),
    };
    Ok((name.to_owned(), value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn value(field: &str) -> Value {
        parsed(field).unwrap().1
    }

    #[test]
    fn columns_take_text_and_typed_columns_json() {
        assert_eq!(parsed("content=12").unwrap(), ("content".into(), json!("12")));
        assert_eq!(value("target=GET https://h/?a=b"), json!("GET https://h/?a=b"));
        assert_eq!((value("enabled=false"), value("seq=5"), value("category=")), (json!(false), json!(5), json!("")));
        assert_eq!((value("category:=null"), value("examples=[\"a\"]")), (Value::Null, json!(["a"])));
    }

    #[test]
    fn what_is_no_field_is_a_mistake_of_the_command_line() {
        for bad in ["enabled", "=x", ":=1", "enabled=maybe", "x:={", "content=@/nowhere/file"] {
            assert_eq!(parsed(bad).unwrap_err().code(), 2, "{bad}");
        }
    }

    #[test]
    fn a_row_names_its_key() {
        assert_eq!(key_of("\u{feff} {\"type\":\"fn\",\"key\":\"K\"}\n").unwrap(), "K");
        for bad in ["", "[]", "{}", r#"{"key":1}"#, r#"{"key":""}"#, r#"{"key":"a"}{}"#] {
            assert_eq!(key_of(bad).unwrap_err().code(), 2, "{bad}");
        }
    }

    #[test]
    fn every_column_that_is_not_text_is_known_here() {
        use callbook_domain::key::Key;
        use callbook_domain::row::{Definition, RowType};
        let mut row = Definition::new(Key::parse("K").unwrap(), RowType::Fn);
        (row.seq, row.timeout_ms, row.max_response_bytes) = (Some(1), Some(1), Some(1));
        (row.input_schema, row.output_schema) = (Some("{}".into()), Some("{}".into()));
        for (name, value) in row.to_json() {
            let is_text = value.is_string() || value.is_null();
            assert_eq!(is_text, !JSON_COLUMNS.contains(&name.as_str()), "{name}");
        }
    }
}
