//! How much one caller and all callers may ask at once.

use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, SocketAddr};
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use axum::body::{Body, HttpBody};
use axum::extract::{ConnectInfo, MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use callbook_domain::fault::{Fault, Reason};
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use http::{HeaderMap, Method, StatusCode, header};
use http_body_util::BodyExt;

use crate::answer::Refusal;
use crate::app::App;
use crate::config::Config;
use crate::request::TERMINAL_KEY;

/// Callers are told apart by a keyed hash of so many values. However many credentials and addresses an attacker
/// invents, the memory stays bounded, and which callers share a place cannot be chosen from outside.
const PLACES: u64 = 1 << 16;
/// The schemes of `authorization`, under which one credential is the same.
const SCHEMES: [&str; 3] = ["bearer ", "cap ", "url "];
/// After how long a caller that has too much open should come back, in milliseconds.
const BUSY_MS: u64 = 1_000;

/// Marks an answer for which a service has taken the caller's credential, where the address alone does not say so.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Judged;

/// Rates and open requests of callers, by place, and of the process.
pub(crate) struct Limiter {
    hasher: RandomState,
    clock: DefaultClock,
    anonymous: Option<DefaultKeyedRateLimiter<u64>>,
    credentialed: Option<DefaultKeyedRateLimiter<u64>>,
    /// Of an address, for credentials that nobody has taken yet: apart from those without any, who would crowd them out.
    unproven: Option<DefaultKeyedRateLimiter<u64>>,
    each: Option<NonZeroUsize>,
    open: Box<[AtomicUsize]>,
    /// Places of credentials that a service has taken lately. One that nobody has taken yet counts as its address, so
    /// that invented credentials buy nothing.
    taken: Box<[AtomicBool]>,
    all: Option<NonZeroUsize>,
    all_open: AtomicUsize,
}

impl Limiter {
    /// The limits of the settings.
    pub(crate) fn new(config: &Config) -> Self {
        let rate = |per_second: Option<NonZeroU32>| per_second.map(|n| RateLimiter::dashmap(Quota::per_second(n)));
        Limiter {
            hasher: RandomState::new(),
            clock: DefaultClock::default(),
            anonymous: rate(config.limits.anonymous_per_second),
            credentialed: rate(config.limits.principal_per_second),
            unproven: rate(config.limits.anonymous_per_second),
            each: config.limits.concurrency,
            open: (0..PLACES).map(|_| AtomicUsize::new(0)).collect(),
            taken: (0..PLACES).map(|_| AtomicBool::new(false)).collect(),
            all: config.in_flight,
            all_open: AtomicUsize::new(0),
        }
    }

    /// Forgets the callers that have been quiet, and which credentials were taken: the next answer says it again.
    pub(crate) fn tidy(&self) {
        self.taken.iter().for_each(|taken| taken.store(false, Ordering::Relaxed));
        for limiter in [&self.anonymous, &self.credentialed, &self.unproven].into_iter().flatten() {
            limiter.retain_recent();
            limiter.shrink_to_fit();
        }
    }

    fn admit(self: &Arc<Self>, headers: &HeaderMap, peer: Option<IpAddr>) -> Result<Slot, Fault> {
        let shown = key(headers);
        let own = shown.map(|key| self.place(key));
        let is_taken = |key: &&[u8]| self.taken[index(self.place(key))].load(Ordering::Relaxed);
        let at_its_address = |kind: &str| self.hasher.hash_one((kind, network(peer))) % PLACES;
        let (place, limiter) = match shown {
            Some(key) if is_taken(&key) => (self.place(root(key)), &self.credentialed),
            Some(_) => (at_its_address("unproven"), &self.unproven),
            None => (at_its_address("anonymous"), &self.anonymous),
        };
        if let Some(Err(until)) = limiter.as_ref().map(|limiter| limiter.check_key(&place)) {
            let wait = until.wait_time_from(self.clock.now());
            let fault = Fault::new(Reason::RateLimited, "more requests a second than this caller may send");
            return Err(fault.retry_after_ms(u64::try_from(wait.as_millis()).unwrap_or(BUSY_MS)));
        }
        let slot = Slot { limiter: Arc::clone(self), place: index(place), own: own.map(index) };
        let all = self.all_open.fetch_add(1, Ordering::Relaxed);
        let own = self.open[slot.place].fetch_add(1, Ordering::Relaxed);
        // Where it is one too many, the slot's drop takes it back.
        let (reason, sentence) = match () {
            () if self.all.is_some_and(|most| all >= most.get()) => {
                (Reason::Overloaded, "the process answers as many requests as it can")
            }
            () if self.each.is_some_and(|most| own >= most.get()) => {
                (Reason::RateLimited, "more requests at the same time than this caller may have")
            }
            () => return Ok(slot),
        };
        Err(Fault::new(reason, sentence).retry_after_ms(BUSY_MS))
    }

    fn place(&self, key: &[u8]) -> u64 {
        self.hasher.hash_one(key) % PLACES
    }
}

/// A request that counts while this lives.
struct Slot {
    limiter: Arc<Limiter>,
    place: usize,
    /// Where its credential counts once it is taken.
    own: Option<usize>,
}

impl Slot {
    /// Remembers that the request's credential was taken: a service that looks at every credential answered well.
    fn learn(&self, asks_a_service: bool, status: StatusCode) {
        if let Some(own) = self.own.filter(|_| asks_a_service && status.is_success()) {
            self.limiter.taken[own].store(true, Ordering::Relaxed);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.limiter.all_open.fetch_sub(1, Ordering::Relaxed);
        self.limiter.open[self.place].fetch_sub(1, Ordering::Relaxed);
    }
}

/// Lets a request in, or sheds it. The request counts until the last byte of its answer is taken.
pub(super) async fn check(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    if is_health(&request) {
        return next.run(request).await;
    }
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(address)| address.ip());
    let slot = match app.limiter.admit(request.headers(), peer) {
        Ok(slot) => slot,
        Err(fault) => return Refusal::from(fault).into_response(),
    };
    let asks_a_service = asks_a_service(&request);
    let (mut parts, body) = next.run(request).await.into_parts();
    slot.learn(asks_a_service || parts.extensions.get::<Judged>().is_some(), parts.status);
    // Below, the body counts its request and does not know its length any more.
    let length = body.size_hint().exact().filter(|_| parts.status != StatusCode::NOT_MODIFIED);
    if let Some(length) = length {
        parts.headers.entry(header::CONTENT_LENGTH).or_insert(length.into());
    }
    let counted = body.map_frame(move |frame| {
        let _counts = &slot;
        frame
    });
    Response::from_parts(parts, Body::new(counted))
}

/// Whether an answer that is good says that the credential is: the index, the documents and public confirmations do not
/// look at it.
fn asks_a_service(request: &Request) -> bool {
    let uri = request.uri();
    let is_read = uri.path() == "/api/dispatch" && request.method() == Method::GET;
    let invokes = || uri.query().is_some_and(|query| query.split('&').any(|pair| pair.starts_with("invoke=")));
    uri.path().starts_with("/api/") && uri.path() != "/api/mcp" && (!is_read || invokes())
}

/// An orchestrator that gets no answer would end a process that is only busy.
fn is_health(request: &Request) -> bool {
    let route = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    matches!(route, Some("/healthz" | "/readyz"))
}

/// The key or token that the request shows, however its header is spelled.
fn key(headers: &HeaderMap) -> Option<&[u8]> {
    let shown = headers.get(header::AUTHORIZATION).or_else(|| headers.get(TERMINAL_KEY))?.as_bytes();
    let scheme = SCHEMES.iter().find(|scheme| {
        shown.get(..scheme.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(scheme.as_bytes()))
    });
    Some(scheme.map_or(shown, |scheme| &shown[scheme.len()..]).trim_ascii())
}

/// What a credential counts as once it is taken: a token as its root, because whoever holds one could derive as many as
/// it likes.
fn root(key: &[u8]) -> &[u8] {
    key.split(|byte| *byte == b'~').next().unwrap_or_default()
}

fn index(place: u64) -> usize {
    usize::try_from(place).unwrap_or_default()
}

/// The network of one customer: an IPv4 address, or the first half of an IPv6 address.
fn network(peer: Option<IpAddr>) -> Option<u64> {
    match peer?.to_canonical() {
        IpAddr::V4(address) => Some(u64::from(address.to_bits())),
        IpAddr::V6(address) => u64::try_from(address.to_bits() >> 64).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limiter(change: impl FnOnce(&mut Config)) -> Arc<Limiter> {
        let mut config = Config::at("http://127.0.0.1:1".parse().unwrap());
        change(&mut config);
        Arc::new(Limiter::new(&config))
    }

    /// The limits of callers whose credentials were taken before.
    fn known(keys: &[&str], change: impl FnOnce(&mut Config)) -> Arc<Limiter> {
        let limiter = limiter(change);
        for key in keys {
            let place = index(limiter.hasher.hash_one(key.as_bytes()) % PLACES);
            limiter.taken[place].store(true, Ordering::Relaxed);
        }
        limiter
    }

    fn with(key: &str) -> HeaderMap {
        [(header::AUTHORIZATION, format!("Bearer {key}").parse().unwrap())].into_iter().collect()
    }

    #[test]
    fn a_caller_over_its_rate_waits_and_others_do_not() {
        let limiter = known(&["a", "b"], |config| config.limits.principal_per_second = NonZeroU32::new(2));
        let _held = [limiter.admit(&with("a"), None).ok().unwrap(), limiter.admit(&with("a"), None).ok().unwrap()];
        let refused = limiter.admit(&with("a"), None).err().unwrap();
        assert_eq!(refused.reason(), Reason::RateLimited);
        assert!(refused.retry_after().unwrap() <= 1_000);
        assert!(limiter.admit(&with("b"), None).is_ok());
        assert!(limiter.admit(&HeaderMap::new(), Some([127, 0, 0, 1].into())).is_ok());
    }

    #[test]
    fn open_requests_are_bounded_and_given_back() {
        let limiter = known(&["a", "b", "c"], |config| {
            config.limits.concurrency = NonZeroUsize::new(1);
            config.in_flight = NonZeroUsize::new(2);
        });
        let first = limiter.admit(&with("a"), None).ok().unwrap();
        assert_eq!(limiter.admit(&with("a"), None).err().unwrap().reason(), Reason::RateLimited);
        let second = limiter.admit(&with("b"), None).ok().unwrap();
        assert_eq!(limiter.admit(&with("c"), None).err().unwrap().reason(), Reason::Overloaded);
        drop((first, second));
        assert_eq!(limiter.all_open.load(Ordering::Relaxed), 0);
        assert!(limiter.admit(&with("a"), None).is_ok());
    }

    #[test]
    fn invented_and_respelled_credentials_buy_nothing() {
        let limiter = limiter(|config| config.limits.anonymous_per_second = NonZeroU32::new(2));
        let peer = Some([10, 0, 0, 1].into());
        let taken = (0..50).filter(|n| limiter.admit(&with(&format!("cbk_{n}")), peer).is_ok()).count();
        assert_eq!(taken, 2, "they count as their address");
        let one = key(&with("k")).map(<[u8]>::to_vec);
        let spelled = |text: &str| [(header::AUTHORIZATION, text.parse().unwrap())].into_iter().collect::<HeaderMap>();
        assert_eq!(key(&spelled("bEaReR   k ")).map(<[u8]>::to_vec), one);
        let terminal: HeaderMap = [(TERMINAL_KEY, "k".parse().unwrap())].into_iter().collect();
        assert_eq!(key(&terminal).map(<[u8]>::to_vec), one);
    }

    #[test]
    fn all_that_is_derived_from_a_token_counts_as_one_caller_and_what_is_forged_does_not() {
        let limiter = known(&["root~a", "root~b"], |config| config.limits.principal_per_second = NonZeroU32::new(2));
        let cap = |key: &str| [(header::AUTHORIZATION, format!("Cap {key}").parse().unwrap())].into_iter().collect();
        for n in 0..50 {
            drop(limiter.admit(&cap(&format!("root~forged-{n}")), Some([10, 0, 0, 1].into())));
        }
        assert!(limiter.admit(&cap("root~a"), None).is_ok() && limiter.admit(&with("root~b"), None).is_ok());
        assert_eq!(limiter.admit(&cap("root~a"), None).err().unwrap().reason(), Reason::RateLimited);
    }

    #[test]
    fn invented_credentials_do_not_grow_the_memory() {
        let limiter = limiter(|_| {});
        for n in 0..200_000 {
            drop(limiter.admit(&with(&n.to_string()), None));
        }
        assert!(limiter.credentialed.as_ref().unwrap().len() as u64 <= PLACES);
    }

    #[test]
    fn neighbours_in_one_ipv6_network_are_one_caller() {
        let of = |text: &str| network(Some(text.parse().unwrap()));
        assert_eq!(of("2001:db8::1"), of("2001:db8::2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
    }
}
