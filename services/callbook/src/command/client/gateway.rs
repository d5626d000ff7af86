//! The gateway from outside: one request, one answer.

use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode, Url};
use secrecy::{ExposeSecret as _, SecretString};
use serde::de::DeserializeOwned;

use super::credential::{Credential, Source, is_loopback};
use super::problem::{Problem, Refusal};
use super::trouble::Trouble;

/// Where a gateway is that nobody named.
pub const DEFAULT: &str = "http://127.0.0.1:7700";
/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(5);
/// How long an answer may take where a request does not say otherwise.
const PATIENCE: Duration = Duration::from_secs(60);
/// The largest answer that is read whole, in bytes.
const MOST: usize = 512 * 1024 * 1024;

/// A gateway, and the key that is shown to it.
#[derive(Debug)]
pub struct Gateway {
    http: Client,
    /// Its address.
    pub url: Url,
    /// The key.
    pub credential: Credential,
}

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its bytes.
    pub body: Vec<u8>,
}

impl Answer {
    /// The JSON of the answer, as far as we look into it.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Trouble> {
        serde_json::from_slice(&self.body)
            .map_err(|error| Trouble::foreign(format!("the answer is not a gateway's ({error})")))
    }
}

impl Gateway {
    /// A gateway at an address; nothing is sent yet.
    pub fn new(url: &str, key: Option<SecretString>) -> Result<Self, Trouble> {
        let url = address(if url.is_empty() { DEFAULT } else { url })?;
        let credential = Credential::find(key.filter(|key| !key.expose_secret().is_empty()), &url);
        let agent = concat!("callbook/", env!("CARGO_PKG_VERSION"));
        // a redirect would take the request, and perhaps the key, where nobody sent it
        let client = Client::builder().user_agent(agent).connect_timeout(CONNECT).redirect(Policy::none());
        let client = if is_loopback(&url) { client.no_proxy() } else { client };
        let http =
            client.build().map_err(|error| Trouble::Broken(format!("this machine cannot make requests ({error})")))?;
        Ok(Gateway { http, url, credential })
    }

    /// A request to a path of the gateway, with the key.
    pub fn request(&self, method: Method, path: &[&str]) -> Result<RequestBuilder, Trouble> {
        let mut url = self.url.clone();
        // `address` lets only addresses through that have a path
        url.path_segments_mut().map_err(|()| Trouble::usage("--url has no path"))?.pop_if_empty().extend(path);
        let request = self.http.request(method, url).timeout(PATIENCE);
        let Some(secret) = &self.credential.secret else { return Ok(request) };
        let mut value = HeaderValue::try_from(format!("Bearer {}", secret.expose_secret()))
            .map_err(|_| Trouble::usage("the key has characters that no header can hold"))?;
        value.set_sensitive(true);
        Ok(request.header(AUTHORIZATION, value))
    }

    /// Asks for something that changes nothing.
    pub fn get(&self, path: &[&str], query: &[(&str, String)]) -> Result<RequestBuilder, Trouble> {
        Ok(self.request(Method::GET, path)?.query(query))
    }

    /// Sends JSON.
    pub fn json(
        &self,
        method: Method,
        path: &[&str],
        body: impl Into<reqwest::Body>,
    ) -> Result<RequestBuilder, Trouble> {
        Ok(self.request(method, path)?.header(CONTENT_TYPE, "application/json").body(body))
    }

    /// The whole answer, whatever its status.
    pub async fn ask(&self, request: RequestBuilder) -> Result<Answer, Trouble> {
        let (mut response, method) = self.begin(request).await?;
        let status = response.status();
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(|error| self.lost(&error, &method))? {
            body.extend_from_slice(&piece);
            if body.len() > MOST {
                return Err(Trouble::Broken(format!("the answer is larger than {MOST} bytes")));
            }
        }
        Ok(Answer { status, body })
    }

    /// The whole answer to a request that was not refused.
    pub async fn send(&self, request: RequestBuilder) -> Result<Answer, Trouble> {
        let answer = self.ask(request).await?;
        if answer.status.is_success() { Ok(answer) } else { Err(self.refused(answer)) }
    }

    /// An answer that comes piece by piece, to a request that was not refused.
    pub async fn open(&self, request: RequestBuilder) -> Result<Response, Trouble> {
        let (response, method) = self.begin(request).await?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let body = response.bytes().await.map_err(|error| self.lost(&error, &method))?.to_vec();
        Err(self.refused(Answer { status, body }))
    }

    /// What a refusal says.
    pub fn refused(&self, answer: Answer) -> Trouble {
        let Some(problem) = Problem::read(&answer.body) else {
            return Trouble::foreign(format!("{} answers {} and not as a gateway does", self.url, answer.status));
        };
        let fix = problem.is("unauthorized").then(|| self.credential.fix());
        Trouble::Refused(Box::new(Refusal { body: answer.body, problem, fix }))
    }

    /// What broke, for a request that got no whole answer.
    fn lost(&self, error: &reqwest::Error, method: &Method) -> Trouble {
        let url = &self.url;
        let left = if method.is_safe() { AGAIN } else { MAYBE };
        let (what, fix) = match () {
            () if error.is_connect() && error.is_timeout() => (format!("{url} does not answer"), START),
            () if error.is_connect() => (format!("{url} cannot be reached ({})", cause(error)), START),
            () if error.is_timeout() => (format!("{url} did not answer in time"), left),
            () => (format!("the connection to {url} broke ({})", cause(error)), left),
        };
        Trouble::Unreachable { what, fix: fix.to_owned() }
    }

    async fn begin(&self, request: RequestBuilder) -> Result<(Response, Method), Trouble> {
        let request = request.build();
        let request =
            request.map_err(|error| Trouble::usage(format!("the request cannot be made ({})", cause(&error))))?;
        let method = request.method().clone();
        let response = self.http.execute(request).await.map_err(|error| self.lost(&error, &method))?;
        if response.status().is_redirection() && response.status() != StatusCode::NOT_MODIFIED {
            let to =
                response.headers().get("location").and_then(|to| to.to_str().ok()).unwrap_or("elsewhere").to_owned();
            return Err(Trouble::foreign(format!("{} sends on to {to}", self.url)));
        }
        Ok((response, method))
    }

    /// Whether a key goes over the network for everybody to read.
    pub fn is_key_exposed(&self) -> bool {
        let shown = !matches!(self.credential.source, Source::None | Source::Unusable(_));
        shown && self.url.scheme() == "http" && !is_loopback(&self.url)
    }
}

const START: &str = "start it with `callbook up`, or name another address with --url or CALLBOOK_URL";
const AGAIN: &str = "try again, or see whether this is the gateway of Callbook";
const MAYBE: &str = "a change may have been made all the same; look before you try again";

/// What lies at the bottom of a failure, without the address in front of it.
fn cause(error: &reqwest::Error) -> String {
    let mut deepest: &dyn std::error::Error = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}

/// The address of a gateway as people write it: `localhost:7700` is one too.
fn address(text: &str) -> Result<Url, Trouble> {
    let text = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let refused = || Trouble::usage("--url is not the address of a gateway; one is http://127.0.0.1:7700");
    let url = Url::parse(&text).map_err(|_| refused())?;
    let fits = matches!(url.scheme(), "http" | "https") && url.query().is_none() && url.fragment().is_none();
    match (fits, url.username(), url.password()) {
        (true, "", None) => Ok(url),
        (true, ..) => Err(Trouble::usage("--url must not hold a login; give a key with CALLBOOK_KEY")),
        (false, ..) => Err(refused()),
    }
}

/// A gateway for tests.
#[cfg(test)]
pub fn gateway_at(url: &str, key: &str) -> Gateway {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Gateway::new(url, (!key.is_empty()).then(|| key.into())).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_as_people_write_them() {
        let of = |text: &str| address(text).map(|url| url.to_string()).map_err(|trouble| trouble.code());
        assert_eq!(of("localhost:7700"), Ok("http://localhost:7700/".into()));
        assert_eq!(of("https://book.example/base/"), Ok("https://book.example/base/".into()));
        for bad in ["", "ftp://h", "http://u:p@h", "http://h?x=1", "http://", "a b"] {
            assert_eq!(of(bad), Err(2), "{bad}");
        }
    }

    #[test]
    fn a_path_is_added_to_the_one_of_the_address() {
        let gateway = gateway_at("http://h.example/base", "");
        let of = |path: &[&str]| gateway.get(path, &[]).unwrap().build().unwrap().url().to_string();
        assert_eq!(of(&["api", "directory:list"]), "http://h.example/base/api/directory:list");
        assert_eq!(of(&["api", "directory", "a/b?c"]), "http://h.example/base/api/directory/a%2Fb%3Fc");
    }

    #[test]
    fn the_key_is_a_header_that_debug_does_not_show() {
        let gateway = gateway_at("http://h.example", "cbk_0123456789abcdef");
        let request = gateway.get(&["x"], &[]).unwrap().build().unwrap();
        assert_eq!(request.headers()["authorization"], "Bearer cbk_0123456789abcdef");
        assert!(!format!("{gateway:?} {request:?}").contains("0123456789"));
        assert!(gateway.is_key_exposed());
        assert!(gateway_at("http://h.example", "a\nb").get(&["x"], &[]).is_err());
        assert!(Gateway::new("http://h.example", Some("".into())).unwrap().credential.secret.is_none());
    }

    #[tokio::test]
    async fn nobody_at_the_address_is_not_reachable() {
        let gateway = gateway_at("http://127.0.0.1:1", "0123456789abcdef");
        let trouble = gateway.send(gateway.get(&["healthz"], &[]).unwrap()).await.unwrap_err();
        let lines = trouble.lines();
        assert_eq!(trouble.code(), 3);
        assert!(
            lines[0].starts_with("callbook: http://127.0.0.1:1/ cannot be reached (")
                && lines[1].contains("callbook up"),
            "{lines:?}"
        );
    }

    #[test]
    fn a_refusal_is_told_from_a_strange_server() {
        let gateway = gateway_at("http://h.example", "");
        let of = |body: &str| gateway.refused(Answer { status: StatusCode::UNAUTHORIZED, body: body.into() });
        assert_eq!(of("<html>").code(), 3);
        let refused = of(r#"{"error":"unauthorized","message":"a credential is needed","ran":false,"fix":"send …"}"#);
        assert_eq!(refused.code(), 1);
        assert!(refused.lines()[1].contains("CALLBOOK_KEY"));
    }
}
