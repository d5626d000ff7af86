//! Addresses that can be read: contracts, receipts, outputs, the map, and rows that have an address of their own.

use std::sync::LazyLock;

use bytes::Bytes;
use callbook_domain::fault::{Fault, Kind};
use callbook_domain::outcome::Output;
use callbook_wire::contract::v1::GetContractRequest;
use callbook_wire::executor::v1 as executor;
use callbook_wire::executor::v1::arguments::Form as Arguments;
use callbook_wire::resolver::v1::{ListSignaturesRequest, Signature, SignatureKind};
use data_encoding::BASE64;
use http::StatusCode;
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};

use super::content::{self, Contents, Form};
use super::endpoint::Context;
use super::message::{Params, RpcError, code};
use super::reply::{Hints, Outcome};
use super::{call, consent, header, receipt, typed};
use crate::dispatch;
use crate::upstream::rpc;

/// Rows with addresses that are looked at together.
const PAGE: u32 = 1_000;

/// The templates that every book has.
static TEMPLATES: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let template = |uri: &str, name: &str, description: &str, media_type: &str| json!({"uriTemplate": uri, "name": name, "description": description, "mimeType": media_type});
    vec![
        template("callbook://contract/{key}", "contract", "What a row takes, gives and may do", "application/json"),
        template("callbook://receipt/{id}", "receipt", "What an invocation did", "application/json"),
        template("callbook://output/{id}", "output", "What an invocation gave", "application/octet-stream"),
    ]
});

/// `resources/list`.
pub(super) async fn list(context: &Context, mut params: Params) -> Result<Outcome, RpcError> {
    let token: String = params.take("cursor")?.unwrap_or_default();
    let (rows, next) = page(context, token.clone()).await?;
    let map = json!({
        "uri": "callbook://map", "name": "map", "description": "The whole book in numbers", "mimeType": "application/json",
    });
    let mut found: Vec<Value> = if token.is_empty() { vec![map] } else { Vec::new() };
    found.extend(
        rows.iter()
            .filter(|(address, _)| !address.contains('{'))
            .map(|(address, row)| json!({"uri": address, "name": row.key, "description": typed::words(row)})),
    );
    Ok(Outcome::of("resources", &found).optional("nextCursor", next.as_ref()).hints(Hints::BOOK))
}

/// `resources/templates/list`.
pub(super) async fn templates(context: &Context, mut params: Params) -> Result<Outcome, RpcError> {
    let token: String = params.take("cursor")?.unwrap_or_default();
    let (rows, next) = page(context, token.clone()).await?;
    let mut found = if token.is_empty() { TEMPLATES.clone() } else { Vec::new() };
    found.extend(
        rows.iter()
            .filter(|(address, _)| address.contains('{'))
            .map(|(address, row)| json!({"uriTemplate": address, "name": row.key, "description": typed::words(row)})),
    );
    Ok(Outcome::of("resourceTemplates", &found).optional("nextCursor", next.as_ref()).hints(Hints::BOOK))
}

/// `resources/subscribe` and its opposite, of the older era: a client that opened the stream of notices hears of every
/// contract that changes, so there is nothing to be kept.
pub(super) async fn subscribe(context: &Context, mut params: Params) -> Result<Outcome, RpcError> {
    let _: String = params.require("uri")?;
    context.identify().await?;
    Ok(Outcome::default())
}

/// `resources/read`.
pub(super) async fn read(context: &Context, mut params: Params) -> Result<Outcome, RpcError> {
    let uri: String = params.require("uri")?;
    if context.era.is_modern() {
        header::check_name(&context.headers, &uri)?;
    }
    let found = match uri.strip_prefix("callbook://") {
        Some(own) => own_address(context, &uri, own).await,
        None => of_row(context, &uri).await,
    };
    match found {
        Ok(Some(contents)) => Ok(Outcome::of("contents", &contents).hints(Hints::NONE)),
        Ok(None) => Err(nothing(&uri)),
        Err(Refused::Fault(fault)) if fault.kind() == Kind::NotFound => Err(nothing(&uri)),
        Err(Refused::Fault(fault)) => Err(fault.into()),
        Err(Refused::Failed(why)) => Err(RpcError::new(StatusCode::OK, code::INTERNAL, why)),
        Err(Refused::Held(error)) => Err(*error),
    }
}

/// Why an address cannot be read.
enum Refused {
    Fault(Fault),
    /// The row ran and failed.
    Failed(String),
    /// It waits for a person.
    Held(Box<RpcError>),
}

impl From<Fault> for Refused {
    fn from(fault: Fault) -> Self {
        Refused::Fault(fault)
    }
}

fn nothing(uri: &str) -> RpcError {
    RpcError::params("there is no such resource").with(json!({"uri": uri}))
}

async fn own_address(context: &Context, uri: &str, own: &str) -> Result<Option<Vec<Contents>>, Refused> {
    let (path, query) = own.split_once('?').unwrap_or((own, ""));
    let one = |mime_type: &str, text: String| {
        Some(vec![Contents { uri: uri.to_owned(), mime_type: mime_type.to_owned(), text: Some(text), blob: None }])
    };
    match path.split_once('/') {
        Some(("contract", key)) => {
            let key = percent_decode_str(key).decode_utf8_lossy().into_owned();
            let request = GetContractRequest { key, format: 0 };
            let found =
                context.app.upstreams.contract.read(&context.call, request, rpc!(contract.get_contract)).await?;
            context.took_credential();
            Ok(one(&found.media_type, String::from_utf8_lossy(&found.content).into_owned()))
        }
        Some(("receipt", id)) => {
            let text = receipt::text(context, id).await?;
            Ok(one("application/json", text))
        }
        Some(("output", id)) => {
            let offset = query.strip_prefix("offset=").and_then(|offset| offset.parse().ok()).unwrap_or(0);
            let receipt = receipt::full(context, id).await?;
            let blocks = receipt::output(context, receipt, offset)?;
            let raw: Vec<crate::answer::Raw> = blocks
                .iter()
                .map(|block| serde_json::value::to_raw_value(block).expect("a block is plain data"))
                .collect();
            Ok(Some(content::contents(&raw, uri)))
        }
        None if path == "map" => Ok(one("application/json", dispatch::book(&context.app, &context.call).await?)),
        Some(_) | None => Ok(None),
    }
}

/// What a row gives whose address this is.
async fn of_row(context: &Context, uri: &str) -> Result<Option<Vec<Contents>>, Refused> {
    let mut token = String::new();
    loop {
        let (rows, next) = page(context, token).await?;
        for (address, row) in rows {
            if let Some(variables) = variables(&address, uri) {
                return invoked(context, row.key, variables, uri).await.map(Some);
            }
        }
        match next {
            Some(next) => token = next,
            None => return Ok(None),
        }
    }
}

async fn invoked(
    context: &Context,
    key: String,
    variables: Map<String, Value>,
    uri: &str,
) -> Result<Vec<Contents>, Refused> {
    let form = Arguments::ArgsJson(Bytes::from(Value::Object(variables).to_string()));
    let arguments = Some(executor::Arguments { form: Some(form) });
    let request = executor::InvokeRequest { key, arguments, ..executor::InvokeRequest::default() };
    let answer = call::run(context, request).await?;
    if let Some(held) = &answer.held {
        return Err(Refused::Held(Box::new(consent::refused(context, held))));
    }
    if !answer.ok {
        return Err(Refused::Failed(answer.result));
    }
    let media_type = answer.media_type;
    let mime_type = media_type.split(';').next().unwrap_or_default().trim().to_owned();
    let output = Output { bytes: answer.output.to_vec(), media_type, truncated: answer.truncated };
    let contents = |text, blob| vec![Contents { uri: uri.to_owned(), mime_type, text, blob }];
    Ok(match content::form(output) {
        Form::Blocks(list) => content::contents(&list, uri),
        Form::Json(text) | Form::Text(text) => contents(Some(text), None),
        Form::Bytes(bytes, _) => contents(None, Some(BASE64.encode(&bytes))),
        Form::Nothing => contents(Some(String::new()), None),
    })
}

/// Rows with the addresses that their schemas give them, and the token of what follows.
async fn page(context: &Context, page_token: String) -> Result<(Vec<(String, Signature)>, Option<String>), Fault> {
    let request = ListSignaturesRequest {
        kind: SignatureKind::Resource.into(),
        page_size: PAGE,
        page_token,
        ..ListSignaturesRequest::default()
    };
    let found = context.app.upstreams.resolver.read(&context.call, request, rpc!(resolver.list_signatures)).await?;
    context.took_credential();
    let address = |row: Signature| {
        let schema: Value = serde_json::from_slice(&row.input_schema).ok()?;
        Some((schema.get("x-uri")?.as_str()?.to_owned(), row))
    };
    let rows = found.signatures.into_iter().filter_map(address).collect();
    Ok((rows, Some(found.next_page_token).filter(|next| !next.is_empty())))
}

/// What the variables of a template (`{name}`, each at least a character and no `/`) are in an address. Nothing where
/// it does not fit.
fn variables(template: &str, uri: &str) -> Option<Map<String, Value>> {
    let (mut template, mut uri) = (template, uri);
    let mut found = Map::new();
    while let Some((literal, rest)) = template.split_once('{') {
        let (name, after) = rest.split_once('}')?;
        uri = uri.strip_prefix(literal)?;
        let next = after.split('{').next().unwrap_or_default();
        let end = if next.is_empty() { uri.len() } else { uri.find(next)? };
        let (value, left) = uri.split_at(end);
        if value.is_empty() || value.contains('/') {
            return None;
        }
        found.insert(name.to_owned(), json!(percent_decode_str(value).decode_utf8().ok()?));
        (template, uri) = (after, left);
    }
    (template == uri).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_gives_the_variables_of_its_template() {
        let of = |template: &str, uri: &str| variables(template, uri).map(|found| Value::Object(found).to_string());
        assert_eq!(of("a://b", "a://b").as_deref(), Some("{}"));
        assert_eq!(of("a://{id}/data", "a://1%202/data").as_deref(), Some(r#"{"id":"1 2"}"#));
        assert_eq!(of("a://{x}-{y}", "a://1-2").as_deref(), Some(r#"{"x":"1","y":"2"}"#));
        for (template, uri) in [
            ("a://b", "a://bc"),
            ("a://{id}", "a://"),
            ("a://{id}", "a://b/c"),
            ("a://{id}/d", "a://1/e"),
            ("a://{", "a://{"),
        ] {
            assert_eq!(of(template, uri), None, "{template} {uri}");
        }
    }
}
