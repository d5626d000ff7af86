//! What could be meant by the beginning of an argument.

use callbook_wire::resolver::v1::ListSignaturesRequest;
use serde::Deserialize;
use serde_json::{Value, json};

use super::endpoint::Context;
use super::message::{Params, RpcError};
use super::reply::Outcome;
use super::{prompt, typed};
use crate::upstream::rpc;

/// The most values of one answer.
const MOST: usize = 100;

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Reference {
    #[serde(rename = "ref/prompt")]
    Prompt { name: String },
    #[serde(rename = "ref/resource")]
    Resource { uri: String },
}

#[derive(Deserialize)]
struct Argument {
    name: String,
    value: String,
}

/// `completion/complete`.
pub(super) async fn complete(context: &Context, mut params: Params) -> Result<Outcome, RpcError> {
    let reference: Reference = params.require("ref")?;
    let argument: Argument = params.require("argument")?;
    let (values, has_more) = match reference {
        Reference::Resource { uri } if uri == "callbook://contract/{key}" && argument.name == "key" => {
            keys(context, argument.value).await?
        }
        Reference::Resource { .. } => {
            context.identify().await?;
            (Vec::new(), false)
        }
        Reference::Prompt { name } => {
            let row = prompt::find(context, &name).await?;
            let row = row.ok_or_else(|| RpcError::params(format!("`{name}` is no prompt of this server")))?;
            named(&typed::arguments(&row).schema, &argument)
        }
    };
    Ok(Outcome::of("completion", &json!({"values": values, "hasMore": has_more})))
}

/// Keys that begin so.
async fn keys(context: &Context, prefix: String) -> Result<(Vec<String>, bool), RpcError> {
    let request = ListSignaturesRequest { prefix, ..ListSignaturesRequest::default() };
    let found = context.app.upstreams.resolver.read(&context.call, request, rpc!(resolver.list_signatures)).await?;
    context.took_credential();
    let keys = found.signatures.into_iter().map(|row| row.key).take(MOST).collect();
    Ok((keys, !found.next_page_token.is_empty()))
}

/// Values that the schema names for the argument and that begin so.
fn named(schema: &Value, argument: &Argument) -> (Vec<String>, bool) {
    let told = schema.get("properties").and_then(|properties| properties.get(&argument.name));
    let lists = ["enum", "examples"].into_iter().filter_map(|keyword| told?.get(keyword)?.as_array());
    let values = lists.flatten().filter_map(Value::as_str).filter(|value| value.starts_with(&argument.value));
    let values: Vec<String> = values.map(str::to_owned).collect();
    let has_more = values.len() > MOST;
    (values.into_iter().take(MOST).collect(), has_more)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_from_the_schema() {
        let schema = json!({"properties": {"city": {"enum": ["Paris", "Porto", "Rome"], "examples": ["Prague", 1]}}});
        let of =
            |name: &str, value: &str| named(&schema, &Argument { name: name.to_owned(), value: value.to_owned() }).0;
        assert_eq!(of("city", "P"), ["Paris", "Porto", "Prague"]);
        assert!(of("city", "x").is_empty() && of("street", "").is_empty());
    }
}
