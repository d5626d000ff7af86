//! The shared cases of `vectors/ssrf.json`: the URLs through the rules, the lookups through the real client.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use super::super::dns::Lookup;
use super::super::{Egress, Phase, Policy, Refusal, Sent, check_address, check_url, send};
use super::upstream::{Upstream, ok};
use super::{get, limits, post};

fn vectors() -> Option<Value> {
    let shared = std::env::var_os("CALLBOOK_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    match std::fs::read_to_string(shared.join("vectors/ssrf.json")) {
        Ok(text) => Some(serde_json::from_str(&text).unwrap()),
        Err(_) => {
            let _ = std::io::Write::write_all(&mut std::io::stdout(), b"\nskipped: vectors/ssrf.json is not there\n");
            None
        }
    }
}

fn list<'a>(vectors: &'a Value, name: &str) -> &'a Vec<Value> {
    vectors[name].as_array().unwrap()
}

/// Answers that are given one after the other, and a count of the questions.
fn scripted(mut answers: Vec<io::Result<Vec<IpAddr>>>) -> (Lookup, Arc<AtomicUsize>) {
    answers.reverse();
    let (answers, asked) = (Mutex::new(answers), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&asked);
    let lookup: Lookup = Arc::new(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        let answer = answers.lock().unwrap().pop().unwrap_or_else(|| Err(io::ErrorKind::NotFound.into()));
        Box::pin(async move { answer })
    });
    (lookup, asked)
}

fn scripted_egress(policy: Policy, answers: Vec<io::Result<Vec<IpAddr>>>) -> (Egress, Arc<AtomicUsize>) {
    let (lookup, asked) = scripted(answers);
    (Egress::new(policy, "test").with_lookup(lookup).with_connect_timeout(Duration::from_millis(300)), asked)
}

#[test]
fn every_url_of_the_vectors_is_judged_as_they_say() {
    let Some(vectors) = vectors() else { return };
    let mut count = 0;
    for case in list(&vectors, "urls") {
        let (url, expect) = (case["url"].as_str().unwrap(), case["expect"].as_str().unwrap());
        let found = check_url(&Policy::default(), url);
        match expect.strip_prefix("refuse:") {
            None => assert!(found.is_ok(), "{url}: {found:?}"),
            Some(refusal) => {
                let name = refusal.split(' ').next().unwrap();
                assert_eq!(found.map_err(Refusal::as_str), Err(name), "{url}");
            }
        }
        if let Some(what) = expect.split_once("unless allowed").map(|_| url) {
            let policy = Policy::parse(what.trim_end_matches('/')).unwrap();
            assert!(check_url(&policy, url).is_ok(), "{url} is allowed");
        }
        count += 1;
    }
    assert_eq!(count, 62);
}

#[test]
fn every_address_in_the_urls_of_the_vectors_is_special_but_the_public_one() {
    let Some(vectors) = vectors() else { return };
    let addresses = list(&vectors, "urls").iter().filter_map(|case| {
        let url = url::Url::parse(case["url"].as_str()?).ok()?;
        match url.host()? {
            url::Host::Ipv4(v4) => Some(IpAddr::V4(v4)),
            url::Host::Ipv6(v6) => Some(IpAddr::V6(v6)),
            url::Host::Domain(_) => None,
        }
    });
    for address in addresses {
        assert_eq!(check_address(address), address.to_string() == "8.8.8.8", "{address}");
    }
}

const SPECIAL: &str = "\
    0.255.255.255 10.255.255.255 100.64.0.0 100.127.255.255 127.255.255.255 169.254.0.0 172.16.0.0 \
    172.31.255.255 192.0.0.255 192.0.2.1 192.88.99.1 192.168.255.255 198.18.0.0 198.19.255.255 198.51.100.1 \
    203.0.113.255 224.0.0.0 239.255.255.255 255.255.255.255 :: ::1 ::ffff:8.8.8.8 ::8.8.8.8 64:ff9b::808:808 \
    64:ff9b:1::1 100::1 2001::1 2001:2::1 2001:10::1 2001:20::1 2001:1ff:ffff::1 2001:db8:ffff::1 \
    2002:808:808::1 3fff:fff::1 5f00::1 4000::1 fc00::1 fdff::1 fe80::1 febf::1 fec0::1 ff02::1";

const PUBLIC: &str = "\
    1.0.0.0 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.255.255 \
    169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 \
    223.255.255.255 8.8.8.8 2000::1 2001:200::1 2001:db7::1 2001:db9::1 2003::1 2606:4700:4700::1111 \
    2a00:1450::1 3ffe::1 3fff:1000::1";

#[test]
fn the_edges_of_special_ranges_are_exact() {
    for (addresses, expected) in [(SPECIAL, false), (PUBLIC, true)] {
        for address in addresses.split_whitespace() {
            assert_eq!(check_address(address.parse().unwrap()), expected, "{address}");
        }
    }
}

#[test]
fn an_allowed_origin_is_allowed_alone() {
    let policy = Policy::parse(" http://127.0.0.1:8911, https://db.internal:8443,http://[::1]:1 ,").unwrap();
    for url in ["http://127.0.0.1:8911/a?b", "http://127.1:8911/", "https://db.internal:8443/", "http://[0::1]:1/"] {
        assert!(check_url(&policy, url).is_ok(), "{url}");
    }
    for url in ["http://127.0.0.1/", "https://127.0.0.1:8911/", "https://db.internal/", "http://u@127.0.0.1:8911/"] {
        assert!(check_url(&policy, url).is_err(), "{url}");
    }
    for list in ["*", "127.0.0.1:1", "http://a/b", "http://a?b", "ftp://a", "http://u@a", "http://"] {
        assert!(Policy::parse(list).is_err(), "{list}");
    }
    assert_eq!(check_url(&Policy::default(), "https://api.example.com./"), Err(Refusal::Name));
    assert_eq!(
        check_url(&Policy::default(), "https://API.example.com:443").unwrap().as_str(),
        "https://api.example.com/"
    );
}

#[tokio::test]
async fn every_lookup_of_the_vectors_ends_as_they_say() {
    let Some(vectors) = vectors() else { return };
    for case in list(&vectors, "dns") {
        let (name, expect) = (case["name"].as_str().unwrap(), case["expect"].as_str().unwrap());
        let address = |text: &Value| text.as_str().unwrap().rsplit(' ').next().unwrap().parse().unwrap();
        let answers =
            list(case, "answers").iter().map(|answer| Ok(answer.as_array().unwrap().iter().map(address).collect()));
        let (egress, asked) = scripted_egress(Policy::default(), answers.collect());
        let failed = send(&egress, get(&format!("https://{name}/")), limits()).await.expect_err(name);
        assert_eq!(asked.load(Ordering::SeqCst), 1, "{name}");
        assert_eq!(failed.sent, Sent::No, "{name}");
        match expect {
            "refuse:dns" => assert_eq!(failed.phase, Phase::Refused(Refusal::Dns), "{name}"),
            _ if expect.starts_with("refuse") => assert_eq!(failed.phase, Phase::Refused(Refusal::Address), "{name}"),
            _ => {
                assert!(matches!(failed.phase, Phase::Connect | Phase::Tls), "{name}: {failed:?}");
                let again = send(&egress, get(&format!("https://{name}/")), limits()).await.expect_err(name);
                assert_eq!(again.phase, Phase::Refused(Refusal::Address), "{name}");
                assert_eq!(asked.load(Ordering::SeqCst), 2, "{name}");
            }
        }
    }
}

#[tokio::test]
async fn a_lookup_that_fails_sends_nothing() {
    let (egress, _) = scripted_egress(Policy::default(), vec![]);
    let failed = send(&egress, post("https://gone.example.test/?token=hunter2", "x"), limits()).await.unwrap_err();
    assert_eq!((failed.phase, failed.sent), (Phase::Dns, Sent::No));
    assert_eq!(failed.message, "the name of https://gone.example.test cannot be looked up");
}

#[tokio::test]
async fn an_allowed_name_may_be_private_and_only_under_its_own_origin() {
    let upstream = Upstream::start(|_| ok(b"inside")).await;
    let loopback = || Ok(vec!["127.0.0.1".parse().unwrap()]);
    let origin = format!("http://Inside.example.test:{}", upstream.port());
    let policy = Policy::parse(&origin).unwrap();
    let (egress, asked) = scripted_egress(policy, vec![loopback(), loopback()]);
    for _ in 0..2 {
        let answered = send(&egress, get(&format!("{origin}/")), limits()).await.unwrap();
        assert_eq!(answered.body.as_ref(), b"inside");
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1, "a kept connection needs no lookup");
    let other = send(&egress, get("https://inside.example.test/"), limits()).await.unwrap_err();
    assert_eq!(other.phase, Phase::Refused(Refusal::Address));
}
