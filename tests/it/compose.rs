//! The image and `docker-compose.yml`, read as what they are and held against the program itself: nothing here can run
//! containers, so its services run as processes with the settings of the file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use callbook_tests::process::{Process, binary, free_port};
use callbook_tests::upstream::Upstream;
use callbook_tests::{book, database};
use serde_json::{Value, json};

const ROLES: [&str; 5] = ["gateway", "resolver", "contract", "gate", "executor"];
/// Settings that are variables only: as flags everybody who lists processes would see them.
const VARIABLES_ONLY: [&str; 2] = ["CALLBOOK_OWNER_KEY", "CALLBOOK_INTERNAL_KEY"];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn compose() -> Value {
    serde_saphyr::from_str(&read("docker-compose.yml")).unwrap()
}

/// The services that run our image, by name.
fn roles(compose: &Value) -> BTreeMap<String, Value> {
    let services = compose["services"].as_object().unwrap();
    let ours = services.iter().filter(|(_, service)| service["image"] == "callbook");
    ours.map(|(name, service)| (name.clone(), service.clone())).collect()
}

fn strings(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|item| item.as_str().unwrap()).collect()
}

fn environment(service: &Value) -> Vec<(String, String)> {
    let pairs = service["environment"].as_object().unwrap().iter();
    pairs.map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned())).collect()
}

/// The variables that `callbook serve` takes.
fn known_variables() -> BTreeSet<String> {
    let help = Command::new(binary()).args(["serve", "--help"]).env_clear().output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let found = help.split("[env: ").skip(1).filter_map(|rest| rest.split(['=', ']']).next());
    found.chain(VARIABLES_ONLY).map(str::to_owned).collect()
}

/// The lines of the Dockerfile as instructions: continued lines joined, comments left out.
fn instructions() -> Vec<(String, String)> {
    let text = read("Dockerfile");
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
    let joined = lines.join("\n").replace("\\\n", " ");
    let instructions = joined.lines().filter_map(|line| line.trim().split_once(' '));
    instructions.map(|(word, rest)| (word.to_owned(), rest.trim().to_owned())).collect()
}

fn of(word: &str) -> Vec<String> {
    instructions().into_iter().filter(|(name, _)| name == word).map(|(_, rest)| rest).collect()
}

#[test]
fn every_role_is_served_once_with_variables_that_it_knows() {
    let (compose, known) = (compose(), known_variables());
    let mut served = Vec::new();
    for (name, service) in roles(&compose) {
        let command = strings(&service["command"]);
        let ["serve", role] = command.as_slice() else { panic!("{name} runs {command:?}") };
        served.push((*role).to_owned());
        for (variable, _) in environment(&service) {
            assert!(known.contains(&variable), "{name}: `callbook serve` does not know {variable}");
        }
        let ends = (service["restart"].as_str(), service["stop_grace_period"].as_str());
        assert_eq!(ends, (Some("unless-stopped"), Some("45s")), "{name}");
    }
    served.sort();
    let mut roles = ROLES.map(str::to_owned);
    roles.sort();
    assert_eq!(served, roles);
    assert_eq!(compose["services"]["executor"]["deploy"]["replicas"], 2);
}

#[test]
fn services_wait_for_what_they_need_and_only_the_gateway_is_reached_from_this_machine() {
    let compose = compose();
    for (name, service) in compose["services"].as_object().unwrap() {
        let ports: Vec<&str> = service.get("ports").map(strings).unwrap_or_default();
        assert!(ports.iter().all(|port| port.starts_with("127.0.0.1:")), "{name} publishes {ports:?}");
        assert_eq!(!ports.is_empty(), name == "gateway", "{name} publishes {ports:?}");
        let needs: Vec<&str> = match name.as_str() {
            "postgres" => Vec::new(),
            "gateway" => vec!["contract", "executor", "gate", "resolver"],
            _ => vec!["postgres"],
        };
        let waits = service["depends_on"].as_object().into_iter().flatten();
        let waits: Vec<&str> =
            waits.filter(|(_, how)| how["condition"] == "service_healthy").map(|(on, _)| on.as_str()).collect();
        assert_eq!(BTreeSet::from_iter(waits), BTreeSet::from_iter(needs), "{name}");
    }
    let connections = strings(&compose["services"]["postgres"]["command"])[2];
    let most: u32 = connections.strip_prefix("max_connections=").unwrap().parse().unwrap();
    assert!(most >= 5 * 32 + 20, "four services, one of them twice, each with 32 connections");
}

#[test]
fn a_secret_is_a_file_that_the_script_makes_for_one_user() {
    let compose = compose();
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("scripts")).unwrap();
    let script = folder.path().join("scripts/compose-secrets");
    fs::copy(root().join("scripts/compose-secrets"), &script).unwrap();
    let made = |_| assert!(Command::new(&script).output().unwrap().status.success());
    (0..2).for_each(made);
    for (name, secret) in compose["secrets"].as_object().unwrap() {
        let path = folder.path().join(secret["file"].as_str().unwrap());
        let mode = fs::metadata(&path).unwrap_or_else(|error| panic!("{name}: {error}")).permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let uses = |service: &Value| -> Vec<String> {
        let list = service["secrets"].as_array().cloned().unwrap_or_default();
        list.iter().map(|one| one.as_str().or(one["source"].as_str()).unwrap().to_owned()).collect()
    };
    for (name, service) in compose["services"].as_object().unwrap() {
        let used = uses(service);
        assert!(used.iter().all(|one| compose["secrets"].get(one).is_some()), "{name} uses {used:?}");
        assert!(name != "gateway" || used.is_empty(), "a gateway passes credentials on and holds none");
    }
    let volumes = |name: &str| compose["services"][name]["volumes"].clone();
    assert!(volumes("executor").to_string().contains("/run/upstream:ro"), "values of secrets are the executors'");
    assert!(["gateway", "resolver", "contract", "gate"].iter().all(|name| volumes(name).is_null()));
    let settings = fs::read_to_string(folder.path().join("secrets/callbook.toml")).unwrap();
    let password = fs::read_to_string(folder.path().join("secrets/postgres_password")).unwrap();
    assert!(settings.contains(&format!(":{}@postgres:5432/callbook", password.trim())), "{settings}");
}

/// The services of the file as processes on loopback.
struct Services(BTreeMap<String, Process>);

impl Services {
    /// Starts them in the order in which they wait for each other, the executor twice.
    async fn start(upstream: &str) -> Services {
        let folder = tempfile::tempdir().unwrap();
        let database = database::fresh().await;
        fs::write(folder.path().join("callbook.toml"), format!("database_url = \"{database}\"\n")).unwrap();
        let (mut started, mut addresses): (BTreeMap<String, Process>, BTreeMap<&str, Vec<String>>) = Default::default();
        let roles = roles(&compose());
        for name in ["resolver", "contract", "gate", "executor", "executor", "gateway"] {
            let service = &roles[name];
            let (http, grpc, admin) = (free_port(), free_port(), free_port());
            let mut environment = environment(service);
            environment.iter_mut().for_each(|(_, value)| *value = on_loopback(value, &addresses, folder.path()));
            environment.push(("CALLBOOK_ALLOW_ORIGINS".into(), upstream.into()));
            environment.push(("DATABASE_URL".into(), String::new()));
            let pairs: Vec<(&str, &str)> = environment.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
            let process = Process::start_at(&strings(&service["command"]), &pairs, http, grpc, admin);
            assert_healthy(&of("HEALTHCHECK")[0], "7702", admin);
            if name == "gateway" {
                assert_healthy(&service["healthcheck"]["test"].to_string(), "7700", http);
            }
            addresses.entry(name).or_default().push(format!("127.0.0.1:{grpc}"));
            started.insert(format!("{name} {}", addresses[name].len()), process);
        }
        Services(started)
    }

    fn gateway(&self) -> &Process {
        &self.0["gateway 1"]
    }
}

/// A value of the file, with the names of services and the folder of secrets as they are here.
fn on_loopback(value: &str, addresses: &BTreeMap<&str, Vec<String>>, folder: &Path) -> String {
    let value = value.replace("/run/secrets/", &format!("{}/", folder.display()));
    let Some((pool, host)) = value.split_once('=').or(Some(("", value.as_str()))) else { return value };
    match host.strip_suffix(":7701").and_then(|name| addresses.get(name)) {
        None => value.clone(),
        Some(found) if pool.is_empty() => found.join(","),
        Some(found) => found.iter().map(|at| format!("{pool}={at}")).collect::<Vec<_>>().join(","),
    }
}

/// Runs the command of a health check where its port is another one.
fn assert_healthy(check: &str, port: &str, here: u16) {
    let command: Value = serde_json::from_str(&check[check.find('[').unwrap()..]).unwrap();
    let words: Vec<String> = strings(&command).iter().map(|word| word.replace(port, &here.to_string())).collect();
    let words = if words[0] == "CMD" { &words[1..] } else { &words[..] };
    let status = Command::new(&words[0]).args(&words[1..]).status().unwrap();
    assert!(status.success(), "{words:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_services_of_the_file_walk_from_a_row_to_a_receipt() {
    let upstream = Upstream::weather().await;
    let services = Services::start(&upstream.origin()).await;
    let gateway = services.gateway();
    gateway.create(&book::http("WARM", &format!("GET {}/v1/$1", upstream.origin()), "$1=place", "")).await;
    let hidden = gateway.look("/api/dispatch?key=WARM").await;
    assert_eq!(hidden.status, 401, "the catalogue is private in every role: {}", hidden.text);
    for _ in 0..8 {
        let answer = gateway.invoke("WARM", "here").await;
        assert_eq!(answer.json()["ok"], json!(true), "{}", answer.text);
        let receipt = gateway.get(&format!("/api/dispatch?receipt={}", answer.id())).await;
        assert_eq!(receipt.json()["actor"], "owner:terminal-key", "{}", receipt.text);
    }
    for (name, process) in services.0 {
        let (code, took) = tokio::task::spawn_blocking(move || process.terminate()).await.unwrap();
        assert!(code == Some(0) && took.as_secs() < 45, "{name} ended with {code:?} after {took:?}");
    }
}

#[test]
fn the_image_is_built_from_what_is_here_and_runs_as_nobody_special() {
    let sent: Vec<String> =
        read(".dockerignore").lines().filter_map(|line| line.strip_prefix('!')).map(str::to_owned).collect();
    let copied = of("COPY").into_iter().filter(|rest| !rest.starts_with("--from"));
    let copied: BTreeSet<String> = copied
        .flat_map(|rest| {
            let mut words: Vec<String> = rest.split_whitespace().map(str::to_owned).collect();
            words.pop();
            words
        })
        .collect();
    assert!(copied.iter().all(|path| root().join(path).exists()), "{copied:?}");
    assert_eq!(copied, BTreeSet::from_iter(sent), "what is sent to the builder is what it copies");
    for member in ["shared", "services", "tests", "proto", ".sqlx", "Cargo.lock"] {
        assert!(copied.contains(member), "the workspace needs {member}");
    }
    let rust = read("Cargo.toml")
        .lines()
        .find_map(|line| line.strip_prefix("rust-version = ").map(|v| v.trim_matches('"').to_owned()));
    assert!(of("FROM")[0].starts_with(&format!("rust:{}-slim", rust.unwrap())), "{:?}", of("FROM"));
    let stages = of("FROM").iter().filter(|from| from.contains("${DEBIAN}")).count();
    assert_eq!(stages, 2, "both stages are of one release");
    assert_eq!(of("USER"), ["10001"]);
    assert_eq!(of("EXPOSE"), ["7700 7701 7702"]);
    assert_eq!(of("ENTRYPOINT"), ["[\"callbook\"]"]);
    let known = known_variables();
    for pair in of("ENV").iter().flat_map(|rest| rest.split_whitespace()) {
        let name = pair.split('=').next().unwrap();
        assert!(known.contains(name) || name == "SQLX_OFFLINE", "`callbook serve` does not know {name}");
    }
}
