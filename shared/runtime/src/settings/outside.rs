//! What rows may reach besides http: model providers, databases, programs; and whose tokens are believed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use callbook_domain::agent::CallForm;
use callbook_domain::caller::Grant;
use callbook_domain::secret::Bindings;
use secrecy::SecretString;
use url::Url;

use super::error::SettingsError;
use super::file::{DatabaseTable, ExecTable, IssuerTable, PriceTable, ProviderTable};

/// A model provider.
#[derive(Clone, Debug, PartialEq)]
pub struct Provider {
    /// Where its API starts, such as `https://api.x.ai/v1`.
    pub base_url: Url,
    /// The wire form that it speaks.
    pub form: ProviderForm,
    /// The name of its secret, bound to the origin of `base_url`; absent: none is sent.
    pub secret: Option<String>,
    /// Model ids that go here; a `*` at the end stands for anything.
    pub models: Vec<String>,
    /// Prices by model id, or by pattern; a model without a price costs nothing in receipts.
    pub prices: BTreeMap<String, Price>,
    /// How its models call functions, where a row says nothing else. Default native.
    pub calls: CallForm,
}

/// The wire form of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderForm {
    /// `POST /chat/completions`
    OpenaiChat,
    /// `POST /messages`
    AnthropicMessages,
}

/// What a model costs, in US dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    /// Tokens that go in.
    pub input: f64,
    /// Tokens that come out.
    pub output: f64,
}

/// A database that `sql_query` may read.
#[derive(Clone, Debug)]
pub struct Database {
    /// Its URL, with its password.
    pub url: SecretString,
    /// Rows of an answer. Default 1,000.
    pub max_rows: u32,
    /// How long one query may take. Default 5 s.
    pub timeout: Duration,
}

/// What the function `exec` may start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exec {
    /// Absolute paths.
    pub programs: Vec<PathBuf>,
    /// The user that runs them, another one than Callbook's.
    pub user: String,
    /// How long one run may take. Default 30 s.
    pub timeout: Duration,
    /// Bytes of output that are kept. Default 1 MiB.
    pub max_output_bytes: usize,
}

/// Somebody else whose JWTs are taken as a credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issuer {
    /// The `iss` of its tokens.
    pub issuer: String,
    /// Where its keys are: https, or an origin that is allowed to be something else.
    pub jwks_url: Url,
    /// The name that its tokens must have in `aud`. Default the deployment's `audience`.
    pub audience: String,
    /// What each scope of a token allows.
    pub scopes: BTreeMap<String, Vec<Grant>>,
}

pub(super) fn providers(
    tables: BTreeMap<String, ProviderTable>,
    secrets: &Bindings,
) -> Result<BTreeMap<String, Provider>, SettingsError> {
    let checked = tables.into_iter().map(|(name, table)| {
        let provider = provider(&format!("providers.{name}"), table, secrets)?;
        Ok((name, provider))
    });
    checked.collect()
}

fn provider(name: &str, table: ProviderTable, secrets: &Bindings) -> Result<Provider, SettingsError> {
    let base_url = web_address(&format!("{name}.base_url"), &table.base_url)?;
    let form = match table.form.as_str() {
        "openai-chat" => ProviderForm::OpenaiChat,
        "anthropic-messages" => ProviderForm::AnthropicMessages,
        other => {
            let problem = format!("`{other}` is neither openai-chat nor anthropic-messages");
            return Err(SettingsError::refused(format!("{name}.form"), problem));
        }
    };
    if let Some(secret) = &table.secret {
        let origin = base_url.origin().ascii_serialization();
        if !secrets.0.get(secret).is_some_and(|binding| binding.origins.contains(&origin)) {
            let problem = format!("`{secret}` is not bound to {origin}; name that origin in `secrets.{secret}`");
            return Err(SettingsError::refused(format!("{name}.secret"), problem));
        }
    }
    let calls = CallForm::parse(table.calls.as_deref().unwrap_or("native"))
        .ok_or_else(|| SettingsError::refused(format!("{name}.calls"), "is neither native nor tags"))?;
    let prices = table.prices.into_iter().map(|(model, price)| Ok((model, self::price(name, price)?)));
    Ok(Provider {
        base_url,
        form,
        secret: table.secret,
        models: table.models,
        prices: prices.collect::<Result<_, _>>()?,
        calls,
    })
}

fn price(provider: &str, table: PriceTable) -> Result<Price, SettingsError> {
    let fits = |usd: f64| usd.is_finite() && usd >= 0.0;
    if !fits(table.input) || !fits(table.output) {
        return Err(SettingsError::refused(format!("{provider}.prices"), "must be US dollars, 0 or more"));
    }
    Ok(Price { input: table.input, output: table.output })
}

pub(super) fn databases(tables: BTreeMap<String, DatabaseTable>) -> Result<BTreeMap<String, Database>, SettingsError> {
    let checked = tables.into_iter().map(|(name, table)| {
        let setting = format!("databases.{name}");
        if !(table.url.starts_with("postgres://") || table.url.starts_with("postgresql://")) {
            return Err(SettingsError::refused(format!("{setting}.url"), "must start with postgres://"));
        }
        let database = Database {
            url: SecretString::from(table.url),
            max_rows: table.max_rows.unwrap_or(1_000),
            timeout: Duration::from_millis(u64::from(table.timeout_ms.unwrap_or(5_000))),
        };
        Ok((name, database))
    });
    checked.collect()
}

pub(super) fn exec(table: Option<ExecTable>) -> Result<Option<Exec>, SettingsError> {
    let Some(table) = table else { return Ok(None) };
    if let Some(program) = table.programs.iter().find(|program| !program.is_absolute()) {
        let problem = format!("`{}` is not an absolute path", program.display());
        return Err(SettingsError::refused("exec.programs", problem));
    }
    if table.user.is_empty() {
        return Err(SettingsError::refused("exec.user", "must name the user that runs the programs"));
    }
    Ok(Some(Exec {
        programs: table.programs,
        user: table.user,
        timeout: Duration::from_millis(u64::from(table.timeout_ms.unwrap_or(30_000))),
        max_output_bytes: table.max_output_bytes.unwrap_or(1024 * 1024) as usize,
    }))
}

pub(super) fn issuers(
    tables: BTreeMap<String, IssuerTable>,
    audience: &str,
    allow_origins: &[String],
) -> Result<BTreeMap<String, Issuer>, SettingsError> {
    let checked = tables.into_iter().map(|(name, table)| {
        let setting = format!("issuers.{name}");
        let jwks_url = web_address(&format!("{setting}.jwks_url"), &table.jwks_url)?;
        if jwks_url.scheme() != "https" && !allow_origins.contains(&jwks_url.origin().ascii_serialization()) {
            return Err(SettingsError::refused(format!("{setting}.jwks_url"), "must be https"));
        }
        let audience = table.audience.unwrap_or_else(|| audience.to_owned());
        Ok((name, Issuer { issuer: table.issuer, jwks_url, audience, scopes: table.scopes }))
    });
    checked.collect()
}

/// A web address without a login: a secret has a name and a binding instead.
fn web_address(setting: &str, text: &str) -> Result<Url, SettingsError> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let url = url.ok_or_else(|| SettingsError::refused(setting, "is not an http or https address"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(SettingsError::refused(setting, "must not hold a login; bind a secret instead"));
    }
    Ok(url)
}
