//! A stranger is refused on every rpc and every route that is not public. The tables are held against the descriptors
//! and the API document, so that what is new has to say here who may use it.

use std::collections::BTreeMap;

use callbook_runtime::settings::Overrides;
use callbook_tests::book;
use callbook_tests::door::send;
use callbook_tests::world::{World, keyed};
use http::uri::PathAndQuery;
use prost::Message as _;
use prost_types::FileDescriptorSet;
use reqwest::Method;
use serde_json::{Value, json};
use tonic::transport::Channel;
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

/// Who may use it, when the catalogue is private.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    /// Everybody.
    Anyone,
    /// Everybody with a credential.
    Callers,
    /// Those whose grants cover it.
    Granted,
    /// The holder of a token.
    Holder,
    /// The owner.
    Owner,
}
use Who::{Anyone, Callers, Granted, Holder, Owner};

/// Every rpc of every service.
const RPCS: &[(&str, Who)] = &[
    ("callbook.contract.v1.ContractService/DeleteRecommendation", Granted),
    ("callbook.contract.v1.ContractService/GetContract", Callers),
    ("callbook.contract.v1.ContractService/ListRecommendations", Callers),
    ("callbook.contract.v1.ContractService/Recommend", Granted),
    ("callbook.directory.v1.DirectoryService/CheckRow", Granted),
    ("callbook.directory.v1.DirectoryService/CreateRow", Granted),
    ("callbook.directory.v1.DirectoryService/DeleteRow", Granted),
    ("callbook.directory.v1.DirectoryService/ExportRows", Granted),
    ("callbook.directory.v1.DirectoryService/GetRow", Callers),
    ("callbook.directory.v1.DirectoryService/ImportRows", Granted),
    ("callbook.directory.v1.DirectoryService/ListRowVersions", Callers),
    ("callbook.directory.v1.DirectoryService/ListRows", Callers),
    ("callbook.directory.v1.DirectoryService/PatchRow", Granted),
    ("callbook.directory.v1.DirectoryService/ReplaceRow", Granted),
    ("callbook.directory.v1.DirectoryService/RestoreRow", Granted),
    ("callbook.executor.v1.ExecutorService/DecideApproval", Granted),
    ("callbook.executor.v1.ExecutorService/DeleteWatchRule", Owner),
    ("callbook.executor.v1.ExecutorService/FollowInvocation", Callers),
    ("callbook.executor.v1.ExecutorService/GetApproval", Callers),
    ("callbook.executor.v1.ExecutorService/Invoke", Granted),
    ("callbook.executor.v1.ExecutorService/InvokeBatch", Callers),
    ("callbook.executor.v1.ExecutorService/ListApprovals", Callers),
    ("callbook.executor.v1.ExecutorService/ListWatchRules", Owner),
    ("callbook.executor.v1.ExecutorService/PutWatchRule", Owner),
    ("callbook.executor.v1.ExecutorService/Repair", Granted),
    ("callbook.executor.v1.ExecutorService/Replay", Granted),
    ("callbook.executor.v1.ExecutorService/ResetBreaker", Owner),
    ("callbook.executor.v1.ExecutorService/Shape", Granted),
    ("callbook.executor.v1.ExecutorService/StreamInvocation", Granted),
    ("callbook.gate.v1.GateService/CreatePrincipal", Owner),
    ("callbook.gate.v1.GateService/ExplainToken", Holder),
    ("callbook.gate.v1.GateService/GetKeys", Anyone),
    ("callbook.gate.v1.GateService/ListPrincipals", Owner),
    ("callbook.gate.v1.GateService/ListTokens", Callers),
    ("callbook.gate.v1.GateService/MintToken", Granted),
    ("callbook.gate.v1.GateService/NarrowToken", Holder),
    ("callbook.gate.v1.GateService/RevokePrincipal", Owner),
    ("callbook.gate.v1.GateService/RevokeToken", Granted),
    ("callbook.gate.v1.GateService/RotateKey", Owner),
    ("callbook.receipt.v1.ReceiptService/Confirm", Anyone),
    ("callbook.receipt.v1.ReceiptService/GetReceipt", Callers),
    ("callbook.receipt.v1.ReceiptService/GetStats", Callers),
    ("callbook.receipt.v1.ReceiptService/ListInvocations", Callers),
    ("callbook.resolver.v1.ResolverService/Ask", Callers),
    ("callbook.resolver.v1.ResolverService/Describe", Callers),
    ("callbook.resolver.v1.ResolverService/GetMap", Callers),
    ("callbook.resolver.v1.ResolverService/GetStamp", Callers),
    ("callbook.resolver.v1.ResolverService/ListCapabilities", Callers),
    ("callbook.resolver.v1.ResolverService/ListCategories", Callers),
    ("callbook.resolver.v1.ResolverService/ListRegistry", Callers),
    ("callbook.resolver.v1.ResolverService/ListSignatures", Callers),
    ("callbook.resolver.v1.ResolverService/SearchRows", Callers),
    ("callbook.resolver.v1.ResolverService/WatchChanges", Callers),
];

/// Every route, with the query that makes it do something.
const ROUTES: &[(&str, &str, &str, Who)] = &[
    ("get", "/.well-known/jwks.json", "", Anyone),
    ("get", "/api/approvals", "", Callers),
    ("get", "/api/approvals/{id}", "", Callers),
    ("post", "/api/approvals/{id}/approve", "", Granted),
    ("post", "/api/approvals/{id}/refuse", "", Granted),
    ("get", "/api/directory", "", Callers),
    ("post", "/api/directory", "", Granted),
    ("delete", "/api/directory/{key}", "", Granted),
    ("get", "/api/directory/{key}", "", Callers),
    ("patch", "/api/directory/{key}", "", Granted),
    ("put", "/api/directory/{key}", "", Granted),
    ("post", "/api/directory/{key}/breaker/reset", "", Owner),
    ("get", "/api/directory/{key}/history", "", Callers),
    ("post", "/api/directory/{key}/restore", "?version=1", Granted),
    ("get", "/api/directory/{key}/test", "", Granted),
    ("post", "/api/directory/{key}/test", "", Granted),
    ("get", "/api/directory:categories", "", Callers),
    ("get", "/api/directory:describe", "?key=TEAM_ECHO", Callers),
    ("get", "/api/directory:export", "", Granted),
    ("post", "/api/directory:import", "", Granted),
    ("get", "/api/directory:list", "", Callers),
    ("get", "/api/directory:search", "?q=echo", Callers),
    ("get", "/api/directory:stamp", "", Callers),
    ("get", "/api/dispatch", "?ask=echo", Callers),
    ("post", "/api/dispatch", "", Granted),
    ("post", "/api/dispatch:batch", "", Callers),
    ("get", "/api/invocations", "", Callers),
    ("get", "/api/invocations/stats", "", Callers),
    ("get", "/api/invocations/{id}", "", Callers),
    ("get", "/api/invocations/{id}/events", "", Callers),
    ("get", "/api/principals", "", Owner),
    ("post", "/api/principals", "", Owner),
    ("delete", "/api/principals/{name}", "", Owner),
    ("post", "/api/principals/{name}/revoke", "", Owner),
    ("delete", "/api/recommended", "?pattern=a&key=TEAM_ECHO", Granted),
    ("get", "/api/recommended", "", Callers),
    ("post", "/api/recommended", "", Granted),
    ("get", "/api/tokens", "", Callers),
    ("post", "/api/tokens", "", Granted),
    ("get", "/api/tokens/explain", "", Holder),
    ("post", "/api/tokens/keys/rotate", "", Owner),
    ("post", "/api/tokens/narrow", "", Holder),
    ("post", "/api/tokens/revoke", "", Granted),
    ("get", "/api/watch-rules", "", Owner),
    ("post", "/api/watch-rules", "", Owner),
    ("delete", "/api/watch-rules/{name}", "", Owner),
    ("put", "/api/watch-rules/{name}", "", Owner),
    ("get", "/healthz", "", Anyone),
    ("get", "/llms.txt", "", Anyone),
    ("get", "/readyz", "", Anyone),
    ("get", "/receipt/{id}", "", Anyone),
];

/// What does not stand in the API document, or means another thing with another query.
const MORE: &[(&str, &str, &str, Who)] = &[
    ("get", "/api/dispatch", "", Anyone),
    ("get", "/api/dispatch", "?confirm={id}", Anyone),
    ("get", "/api/dispatch", "?key=TEAM_ECHO", Callers),
    ("get", "/api/dispatch", "?map=1", Callers),
    ("get", "/api/dispatch", "?map=tests", Callers),
    ("get", "/api/dispatch", "?receipt={id}", Callers),
    ("get", "/api/dispatch", "?registry=1", Callers),
    ("get", "/api/directory/categories", "", Callers),
    ("get", "/api/directory/search", "?q=echo", Callers),
    ("get", "/openapi.json", "", Anyone),
];

/// Credentials that are none: the name of the header, and its value.
const INVENTED: &[(&str, &str)] = &[
    ("authorization", "Bearer cbk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"),
    ("authorization", "Bearer owner-key-of-the-tests-0123456780"),
    ("authorization", "Basic b3duZXI6"),
    ("authorization", "Bearer "),
    ("x-terminal-key", "owner-key-of-the-tests-012345678"),
    ("x-terminal-key", "cbk_"),
];

/// A deployment with a private catalogue, the key of a principal without grants, of one that was ended, and an id.
async fn private() -> (World, String, String, String) {
    let set = |overrides: &mut Overrides| overrides.catalogue = Some("private".into());
    let world = World::with().set(set).start().await;
    world.create(&book::echo("TEAM_ECHO")).await;
    let id = world.invoke("TEAM_ECHO", "grandmother").await.id();
    let plain = world.principal("plain", &json!([])).await;
    let ended = world.principal("ended", &json!([{"may": "invoke"}, {"may": "edit"}])).await;
    send(world.owner(Method::DELETE, "/api/principals/ended")).await;
    (world, plain, ended, id)
}

/// Every method of every service of ours.
fn described() -> Vec<String> {
    let set = FileDescriptorSet::decode(callbook_wire::FILE_DESCRIPTOR_SET).unwrap();
    let mut found: Vec<String> = set
        .file
        .iter()
        .filter(|file| file.package().starts_with("callbook."))
        .flat_map(|file| file.service.iter().map(move |service| (file.package(), service)))
        .flat_map(|(package, service)| {
            service.method.iter().map(move |method| format!("{package}.{}/{}", service.name(), method.name()))
        })
        .collect();
    found.sort();
    found
}

#[test]
fn every_rpc_says_here_who_may_call_it() {
    let listed: Vec<&str> = RPCS.iter().map(|(name, _)| *name).collect();
    assert_eq!(described(), listed, "an rpc is missing from the table of this test, or is gone");
}

/// Sends an empty message to any method, and gives what its first answer says.
async fn call(channel: &Channel, method: &str, request: Request<()>) -> Result<(), Status> {
    let mut client = tonic::client::Grpc::new(channel.clone());
    client.ready().await.unwrap();
    let path = PathAndQuery::try_from(format!("/{method}")).unwrap();
    let request = request.map(|()| tokio_stream::once(()));
    let mut answer = client.streaming(request, path, ProstCodec::<(), ()>::default()).await?.into_inner();
    match tokio::time::timeout(std::time::Duration::from_secs(2), answer.message()).await {
        Ok(message) => message.map(drop),
        Err(_) => Ok(()), // a stream that waits for something to tell
    }
}

#[tokio::test]
async fn a_stranger_is_refused_on_every_rpc_that_is_not_public() {
    let (world, plain, ended, _) = private().await;
    let channel = world.channel().await;
    for (method, who) in RPCS {
        let nobody = call(&channel, method, Request::new(())).await;
        match who {
            Anyone => assert!(nobody.as_ref().err().is_none_or(|refused| refused.code() == Code::NotFound), "{method}"),
            Callers | Granted | Holder | Owner => {
                assert_eq!(nobody.unwrap_err().code(), Code::Unauthenticated, "{method}")
            }
        }
        let mut strangers: Vec<Request<()>> = vec![keyed(&ended, ())];
        for (name, value) in INVENTED {
            let mut request = Request::new(());
            request.metadata_mut().insert(*name, value.parse().unwrap());
            strangers.push(request);
        }
        for stranger in strangers.into_iter().filter(|_| *who != Anyone) {
            let shown = format!("{:?}", stranger.metadata());
            let refused = call(&channel, method, stranger).await.unwrap_err();
            assert_eq!(refused.code(), Code::Unauthenticated, "{method} with {shown}");
        }
        let known = call(&channel, method, keyed(&plain, ())).await.err().map(|refused| refused.code());
        match who {
            Owner | Holder => assert_eq!(known, Some(Code::PermissionDenied), "{method}"),
            Granted => assert!(known.is_some_and(|code| code != Code::Internal), "{method}: {known:?}"),
            Anyone | Callers => assert!(
                !matches!(known, Some(Code::Unauthenticated | Code::PermissionDenied | Code::Internal)),
                "{method}: {known:?}"
            ),
        }
    }
    world.stop().await;
}

/// A body that the gateway takes, so that it is the service that refuses.
fn body(method: &str, path: &str, id: &str) -> Option<Value> {
    match (method, path) {
        ("get" | "delete", _) | (_, "/api/directory/{key}/breaker/reset" | "/api/directory/{key}/restore") => None,
        (_, "/api/principals/{name}/revoke" | "/api/tokens/keys/rotate") => None,
        (_, "/api/dispatch") => Some(json!({"key": "TEAM_ECHO", "body": "a"})),
        (_, "/api/dispatch:batch") => Some(json!({"calls": [{"key": "TEAM_ECHO", "body": "a"}]})),
        (_, "/api/approvals/{id}/approve" | "/api/approvals/{id}/refuse") => Some(json!({})),
        (_, "/api/watch-rules" | "/api/watch-rules/{name}") => Some(json!({"name": "plain", "action": "deny"})),
        (_, "/api/principals") => Some(json!({"name": "new", "grants": []})),
        (_, "/api/tokens") => Some(json!({"keys": ["TEAM_ECHO"]})),
        (_, "/api/tokens/narrow") => Some(json!({"uses": 1})),
        (_, "/api/tokens/revoke") => Some(json!({"subject": "owner"})),
        (_, "/api/recommended") => Some(json!({"pattern": "a", "key": "TEAM_ECHO"})),
        (_, "/api/directory:import") => Some(json!([book::echo("TEAM_NEW")])),
        (_, "/api/directory" | "/api/directory/{key}" | "/api/directory/{key}/test") => Some(book::echo("TEAM_ECHO")),
        _ => panic!("{method} {path} of {id} needs a body in this test"),
    }
}

#[tokio::test]
async fn every_route_says_here_who_may_use_it_and_a_stranger_is_refused_on_those_that_are_not_public() {
    let (world, plain, ended, id) = private().await;
    let document = world.look("/openapi.json").await.json();
    let listed: BTreeMap<(&str, &str), Who> = ROUTES.iter().map(|(m, path, _, who)| ((*path, *m), *who)).collect();
    let mut documented = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        documented.extend(methods.as_object().unwrap().keys().map(|method| (path.as_str(), method.as_str())));
    }
    documented.sort_unstable();
    assert_eq!(
        documented,
        listed.keys().copied().collect::<Vec<_>>(),
        "the table of this test and the document differ"
    );

    for (method, path, query, who) in ROUTES.iter().chain(MORE) {
        let address =
            format!("{path}{query}").replace("{key}", "TEAM_ECHO").replace("{id}", &id).replace("{name}", "plain");
        let request = || {
            let request = world.anyone(method.to_uppercase().parse().unwrap(), &address);
            match body(method, path, &id) {
                Some(body) => request.json(&body),
                None => request,
            }
        };
        let nobody = send(request()).await;
        let (status, error) = (nobody.status, nobody.error());
        match who {
            Anyone => assert_eq!(status, 200, "{method} {address}: {}", nobody.text),
            Callers | Granted | Holder | Owner => {
                assert_eq!((status, error.as_str()), (401, "unauthorized"), "{method} {address}")
            }
        }
        assert!(*path == "/llms.txt" || !nobody.text.contains("grandmother"), "{method} {address}: {}", nobody.text);
        for (name, value) in INVENTED.iter().chain(&[("authorization", &*format!("Bearer {ended}"))]) {
            let refused = send(request().header(*name, *value)).await;
            assert!(*who == Anyone || refused.status == 401, "{method} {address} with {value}: {}", refused.text);
        }
        let known = send(request().bearer_auth(&plain)).await;
        match who {
            Owner => assert_eq!((known.status, &known.json()["needs"]), (403, &json!("owner")), "{method} {address}"),
            Holder => assert_eq!((known.status, &*known.error()), (403, "forbidden"), "{method} {address}"),
            Granted => assert!(matches!(known.status, 403 | 404 | 422), "{method} {address}: {}", known.text),
            Anyone | Callers => assert!(matches!(known.status, 200 | 404), "{method} {address}: {}", known.text),
        }
    }
    assert_eq!(world.get("/api/directory/TEAM_ECHO").await.json()["version"], 1, "nothing was changed");
    assert_eq!(world.get("/api/principals").await.json()["principals"].as_array().unwrap().len(), 1);
    world.stop().await;
}
