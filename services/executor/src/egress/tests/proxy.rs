//! Proxies of the environment would see every credential, so they are not used. The environment is set for a child.

use std::process::Command;

use super::super::send;
use super::upstream::{Upstream, ok};
use super::{egress, get, limits};

const CHILD: &str = "CALLBOOK_TEST_CHILD";

#[tokio::test]
async fn proxies_of_the_environment_are_not_used() {
    if std::env::var_os(CHILD).is_some() {
        let upstream = Upstream::start(|_| ok(b"direct")).await;
        let answered = send(&egress(&[&upstream]), get(&upstream.url("/")), limits()).await.unwrap();
        assert_eq!(answered.body.as_ref(), b"direct");
        assert_eq!(upstream.seen()[0].line, "GET /");
        return;
    }
    let proxy = Upstream::start(|_| ok(b"proxied")).await;
    let name = format!("{}::proxies_of_the_environment_are_not_used", module_path!());
    let name = name.split_once("::").unwrap().1.to_owned();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", &name]).env(CHILD, "1");
    for variable in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"] {
        child.env(variable, proxy.origin());
    }
    let output = tokio::task::spawn_blocking(move || child.env_remove("NO_PROXY").output()).await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    assert!(proxy.seen().is_empty());
}
