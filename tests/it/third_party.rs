//! A third-party server through rows: Prometheus scrapes Callbook, and is asked through Callbook what it found.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use callbook_domain::event::commitment;
use callbook_tests::database;
use callbook_tests::door::Answer;
use callbook_tests::process::{Process, free_port};
use serde_json::{Value, json};

/// How long the server may take to start, to find its target and to scrape it once.
const PATIENCE: Duration = Duration::from_secs(30);
/// The bound of a response where a row names none, in bytes.
const MOST: usize = 4 * 1024 * 1024;

/// Callbook with rows for a Prometheus that scrapes it.
struct Stage {
    callbook: Process,
    _prometheus: Prometheus,
}

/// The server, with data of its own; it ends with the test.
struct Prometheus {
    child: Child,
    _data: tempfile::TempDir,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Prometheus {
    /// Starts the server; nothing, with a line that says so, where the program is absent.
    fn start(port: u16, target: u16) -> Option<Prometheus> {
        let data = tempfile::tempdir().unwrap();
        let config = format!(
            "global: {{scrape_interval: 1s, scrape_timeout: 900ms}}\nscrape_configs:\n  - job_name: callbook\n    \
             static_configs: [{{targets: ['127.0.0.1:{target}']}}]\n"
        );
        std::fs::write(data.path().join("prometheus.yml"), config).unwrap();
        let started = Command::new("prometheus")
            .arg(format!("--config.file={}", data.path().join("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", data.path().join("data").display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .arg("--log.level=warn")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        match started {
            Ok(child) => Some(Prometheus { child, _data: data }),
            Err(_) => {
                // the line is what CI looks for, and the test runner keeps what `println` says to itself
                callbook_tests::skipped("prometheus is not installed");
                None
            }
        }
    }
}

impl Stage {
    async fn set() -> Option<Stage> {
        let (http, grpc, admin, port) = (free_port(), free_port(), free_port(), free_port());
        let prometheus = Prometheus::start(port, admin)?;
        let origin = format!("http://127.0.0.1:{port}");
        let database = database::fresh().await;
        let environment = [("DATABASE_URL", database.as_str()), ("CALLBOOK_ALLOW_ORIGINS", origin.as_str())];
        let callbook = Process::start_at(&["up"], &environment, http, grpc, admin);
        let stage = Stage { callbook, _prometheus: prometheus };
        for row in rows(&origin) {
            stage.callbook.create(&row).await;
        }
        stage.wait_for_a_scrape().await;
        Some(stage)
    }

    /// Asks until the server has scraped its target; before it listens a call fails with `http:fetch`.
    async fn wait_for_a_scrape(&self) {
        let began = Instant::now();
        loop {
            let answer = self.callbook.call("PROM_QUERY", &json!({"query": "up"})).await;
            if answer.json()["output"]["data"]["result"].as_array().is_some_and(|series| !series.is_empty()) {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "nothing was scraped: {}", answer.text);
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    async fn call(&self, key: &str, args: Value) -> Value {
        self.callbook.call(key, &args).await.json()
    }

    async fn receipt(&self, answer: &Value) -> Value {
        let id = answer["proof"]["invocation_id"].as_str().unwrap();
        let receipt = self.callbook.get(&format!("/api/dispatch?receipt={id}")).await;
        assert_eq!(receipt.status, 200, "{}", receipt.text);
        receipt.json()
    }
}

/// The rows that a team would write for this API.
fn rows(origin: &str) -> Vec<Value> {
    let mut rows = rows_of_queries(origin);
    rows.extend(rows_of_metadata(origin));
    rows
}

fn rows_of_queries(origin: &str) -> Vec<Value> {
    vec![
        row(
            "PROM_QUERY",
            &format!("GET {origin}/api/v1/query?query=${{query}}&time=${{time}}"),
            "# WHAT: Evaluate a PromQL expression at one moment\n# WHEN_TO_USE: somebody asks for the value of a metric now",
            &json!({"query": text(), "time": {"type": "number"}}),
            &json!(["query"]),
        ),
        row(
            "PROM_RANGE",
            &format!("GET {origin}/api/v1/query_range?query=${{query}}&start=${{start}}&end=${{end}}&step=${{step}}"),
            "# WHAT: Evaluate a PromQL expression over a range of time",
            &json!({"query": text(), "start": {"type": "integer"}, "end": {"type": "integer"}, "step": {"type": "integer", "minimum": 1}}),
            &json!(["query", "start", "end", "step"]),
        ),
        row(
            "PROM_QUERY_FORM",
            &format!("POST {origin}/api/v1/query"),
            "# WHAT: Evaluate a long PromQL expression, sent as a form\n# SAFE: yes\nform:query=${query}&timeout=${timeout}",
            &json!({"query": text(), "timeout": {"type": "string"}}),
            &json!(["query"]),
        ),
    ]
}

fn rows_of_metadata(origin: &str) -> Vec<Value> {
    vec![
        row(
            "PROM_SERIES",
            &format!("GET {origin}/api/v1/series?match[]=${{match}}&start=${{start}}"),
            "# WHAT: List the series that match selectors",
            &json!({"match": {"type": "array", "items": text(), "minItems": 1}, "start": {"type": "integer"}}),
            &json!(["match"]),
        ),
        row(
            "PROM_LABEL_VALUES",
            &format!("GET {origin}/api/v1/label/${{name}}/values"),
            "# WHAT: List the values of a label",
            &json!({"name": text()}),
            &json!(["name"]),
        ),
        row(
            "PROM_TARGETS",
            &format!("GET {origin}/api/v1/targets?state=${{state}}"),
            "# WHAT: List what is scraped",
            &json!({"state": {"enum": ["active", "dropped", "any"]}}),
            &json!([]),
        ),
        row(
            "PROM_GONE",
            &format!("GET {origin}/api/v0/${{what}}"),
            "# WHAT: Ask an address that the server does not have",
            &json!({"what": text()}),
            &json!(["what"]),
        ),
    ]
}

fn row(key: &str, target: &str, content: &str, properties: &Value, required: &Value) -> Value {
    let schema =
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    json!({"key": key, "type": "http", "target": target, "category": "metrics", "content": content,
           "input_schema": schema, "examples": [{"query": "up"}]})
}

fn text() -> Value {
    json!({"type": "string", "minLength": 1})
}

/// The bytes of a part of a receipt are those that its commitment in the log is of.
fn assert_committed(receipt: &Value, part: &str) {
    let nonce: Vec<u8> = {
        let hex = receipt["nonces"][part].as_str().unwrap();
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    };
    let bytes = receipt[part]["text"].as_str().unwrap();
    assert_eq!(receipt["commitments"][part], commitment(&nonce, bytes.as_bytes()), "{part}");
}

#[tokio::test]
async fn what_a_real_server_knows_is_answered_with_proof() {
    let Some(stage) = Stage::set().await else { return };
    let asked = stage.callbook.look("/api/dispatch?ask=value%20of%20a%20metric%20now").await.json();
    assert_eq!(asked["best"]["key"], "PROM_QUERY", "{asked}");

    let up = stage.call("PROM_QUERY", json!({"query": "up{job=\"callbook\"}"})).await;
    assert_eq!((&up["ok"], &up["output"]["data"]["result"][0]["value"][1]), (&json!(true), &json!("1")), "{up}");
    let receipt = stage.receipt(&up).await;
    assert_eq!((&receipt["status"], &receipt["upstream_status"]), (&json!("PROVEN_MATERIAL_RESULT"), &json!(200)));
    let request = receipt["request"]["text"].as_str().unwrap();
    assert!(
        request.contains("/api/v1/query?query=up%7Bjob%3D%22callbook%22%7D\n"),
        "an absent argument drops its pair: {request}"
    );
    ["input", "request", "response", "output"].iter().for_each(|part| assert_committed(&receipt, part));

    let form =
        stage.call("PROM_QUERY_FORM", json!({"query": "sum(rpcs_total) > 0 and \"a&b=c\" == \"a&b=c\" or up"})).await;
    assert_eq!(form["error"]["code"], "http:400", "PromQL compares no strings, and was asked whole: {form}");
    let form =
        stage.call("PROM_QUERY_FORM", json!({"query": "sum(http_requests_total{route=\"/api/dispatch\"}) > 0"})).await;
    assert_eq!(form["output"]["data"]["resultType"], "vector", "{form}");
    let sent = stage.receipt(&form).await;
    assert!(sent["request"]["text"].as_str().unwrap().contains("content-type: application/x-www-form-urlencoded\n"));

    let series = stage.call("PROM_SERIES", json!({"match": ["up", "rpcs_total"]})).await;
    let names: Vec<&Value> = series["output"]["data"].as_array().unwrap().iter().map(|one| &one["__name__"]).collect();
    assert!(
        names.contains(&&json!("up")) && names.contains(&&json!("rpcs_total")),
        "both selectors were sent: {names:?}"
    );
    let labels = stage.call("PROM_LABEL_VALUES", json!({"name": "job"})).await;
    assert_eq!(labels["output"]["data"], json!(["callbook"]), "{labels}");
    let targets = stage.call("PROM_TARGETS", json!({"state": "active"})).await;
    assert_eq!(targets["output"]["data"]["activeTargets"][0]["health"], "up", "{targets}");
}

#[tokio::test]
async fn what_a_real_server_refuses_is_a_failed_outcome_with_its_own_words() {
    let Some(stage) = Stage::set().await else { return };
    for (key, args, code, status, words) in [
        ("PROM_QUERY", json!({"query": "sum("}), "http:400", 400, "unclosed left parenthesis"),
        (
            "PROM_QUERY",
            json!({"query": "label_replace(up, \"x\", \"\", \"job\", \"(\")"}),
            "http:422",
            422,
            "invalid regular expression",
        ),
        ("PROM_LABEL_VALUES", json!({"name": "0 ?#%"}), "http:400", 400, "invalid label name: \\\"0 ?#%\\\""),
        ("PROM_GONE", json!({"what": "query"}), "http:404", 404, "404 page not found"),
    ] {
        let answer = stage.call(key, args).await;
        assert_eq!(
            (&answer["ok"], &answer["ran"], &answer["error"]["code"]),
            (&json!(false), &json!(true), &json!(code)),
            "{answer}"
        );
        assert_eq!(
            (&answer["error"]["upstream_status"], &answer["error"]["retryable"]),
            (&json!(status), &json!(false))
        );
        assert!(answer["result"].as_str().unwrap().starts_with(&format!("ERR:{code}:")), "{answer}");
        assert!(
            answer["output"].to_string().contains(words) || answer["result"].to_string().contains(words),
            "{answer}"
        );
        let receipt = stage.receipt(&answer).await;
        assert_eq!(
            (&receipt["status"], &receipt["upstream_status"]),
            (&json!("PROVEN_ATTEMPT_NO_MATERIAL_RESULT"), &json!(status))
        );
        assert_committed(&receipt, "output");
    }
    let stats = stage.callbook.get("/api/invocations/stats?key=PROM_GONE").await.json();
    assert_eq!((&stats["total"]["count"], &stats["total"]["failures"]), (&json!(1), &json!(1)), "{stats}");
}

#[tokio::test]
async fn arguments_that_the_schema_refuses_never_reach_the_server() {
    let Some(stage) = Stage::set().await else { return };
    for (key, args, error) in [
        ("PROM_QUERY", json!({"query": ""}), "args_invalid:/query:minLength"),
        ("PROM_QUERY", json!({"query": "up", "time": "now"}), "args_invalid:/time:type"),
        ("PROM_SERIES", json!({"match": []}), "args_invalid:/match:minItems"),
        ("PROM_TARGETS", json!({"state": "sleeping"}), "args_invalid:/state:enum"),
        ("PROM_TARGETS", json!({"scrape_pool": "x"}), "args_invalid::additionalProperties"),
        ("PROM_LABEL_VALUES", json!({"name": "../../-/quit"}), "argument_refused:name:path_separator"),
    ] {
        let answer: Answer = stage.callbook.call(key, &args).await;
        assert_eq!(
            (answer.status, answer.error(), &answer.json()["ran"]),
            (400, error.to_owned(), &json!(false)),
            "{}",
            answer.text
        );
    }
}

#[tokio::test]
async fn a_huge_answer_is_taken_whole_within_its_bound_and_cut_above_it() {
    let Some(stage) = Stage::set().await else { return };
    let range = |query: &str, end: u32| json!({"query": query, "start": 0, "end": end, "step": 1});
    let whole = stage.call("PROM_RANGE", range("vector(1)", 10_999)).await;
    assert_eq!(
        whole["output"]["data"]["result"][0]["values"].as_array().map(Vec::len),
        Some(11_000),
        "{}",
        whole["error"]
    );

    let too_fine = stage.call("PROM_RANGE", range("vector(1)", 12_000)).await;
    assert_eq!(too_fine["error"]["code"], "http:400", "{}", too_fine["error"]);
    assert!(too_fine["output"]["error"].as_str().unwrap().contains("11,000 points"), "{}", too_fine["output"]);

    let many: Vec<String> = (0..60).map(|n| format!("label_replace(vector(1), \"n\", \"{n}\", \"\", \"\")")).collect();
    let cut = stage.call("PROM_RANGE", range(&many.join(" or "), 10_999)).await;
    let kept = cut["output"]["text"].as_str().unwrap_or_default();
    assert_eq!(
        (&cut["ok"], &cut["output"]["truncated"], kept.len()),
        (&json!(true), &json!(true), MOST),
        "{}",
        cut["error"]
    );
    let receipt = stage.receipt(&cut).await;
    assert_eq!(receipt["output"]["truncated"], true);
    assert_committed(&receipt, "output");

    stage.callbook.change("PROM_RANGE", &json!({"max_response_bytes": 1_000})).await;
    let small = stage.call("PROM_RANGE", range("vector(1)", 10_999)).await;
    assert_eq!(small["output"]["text"].as_str().map(str::len), Some(1_000), "{}", small["error"]);
}
