//! Rows of the function `exec`: programs that the operator listed, in the hands of another user.

use std::path::Path;

use callbook_tests::book::saying;
use callbook_tests::book::with;
use callbook_tests::door::Answer;
use callbook_tests::process::Process;
use callbook_tests::{database, skipped};
use serde_json::{Value, json};

const PROGRAMS: [&str; 7] =
    ["/bin/bash", "/bin/cat", "/bin/echo", "/bin/ls", "/bin/sleep", "/usr/bin/env", "/usr/bin/yes"];

/// A deployment that may start programs, and the folder of its settings. None where programs cannot be given to another
/// user, or are not where they usually are.
async fn deployment() -> Option<(Process, tempfile::TempDir)> {
    if !rustix::process::geteuid().is_root() || !PROGRAMS.iter().all(|program| Path::new(program).is_file()) {
        skipped("programs can be handed to another user by root alone");
        return None;
    }
    let (url, folder) = (database::fresh().await, tempfile::tempdir().unwrap());
    let config = folder.path().join("callbook.toml");
    let settings = json!(PROGRAMS).to_string();
    let settings =
        format!("[exec]\nprograms = {settings}\nuser = \"nobody\"\ntimeout_ms = 1500\nmax_output_bytes = 1000\n");
    std::fs::write(&config, settings).unwrap();
    let start = move || {
        let environment =
            [("DATABASE_URL", url.as_str()), ("CALLBOOK_CONFIG", config.to_str().unwrap()), ("SECRET_OF_A_SHELL", "x")];
        Process::start(&["up"], &environment)
    };
    let process = tokio::task::spawn_blocking(start).await.unwrap();
    let content = "# WHAT: Start a program\n# ARGS: $1=argv | $2=stdin\n# EX: x\n[$1,\"$2\"]";
    let schema = json!({"type": "object", "required": ["argv"], "properties":
        {"argv": {"type": "array", "items": {"type": "string"}}, "stdin": {"type": "string"}}});
    let columns = json!({"target": "exec", "content": content, "input_schema": schema});
    process.create(&with(saying("EXEC", ""), &columns)).await;
    Some((process, folder))
}

async fn run(process: &Process, argv: Value, stdin: &str) -> Answer {
    process.call("EXEC", &json!({"argv": argv, "stdin": stdin})).await
}

async fn result(process: &Process, argv: Value) -> String {
    run(process, argv, "").await.json()["result"].as_str().unwrap_or_default().to_owned()
}

/// Whether a process with these arguments lives.
fn lives(words: &[&str]) -> bool {
    let wanted: Vec<u8> = words.iter().flat_map(|word| word.bytes().chain([0])).collect();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok()).any(|line| line.ends_with(&wanted))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listed_program_gets_its_arguments_as_they_are_and_no_shell_reads_them() {
    let Some((process, _folder)) = deployment().await else { return };
    assert_eq!(result(&process, json!(["echo", "$(id)", "; ls", "a  b", "*"])).await, "$(id) ; ls a  b *\n");
    let fed = run(&process, json!(["/bin/cat", "-"]), "{\"a\":1.10}").await;
    assert!(fed.text.contains(r#""output":{"a":1.10}"#), "{}", fed.text);
    for (argv, code) in [
        (json!(["id"]), "fn:exec:refused"),
        (json!(["/usr/bin/../bin/env"]), "fn:exec:refused"),
        (json!([]), "fn:arguments"),
        (json!(["bash", "-c", "echo no >&2; exit 3"]), "fn:exec:3"),
        (json!(["bash", "-c", "kill -TERM $$"]), "fn:exec:signal:15"),
        (json!(["yes"]), "fn:too_large"),
    ] {
        let answer = run(&process, argv.clone(), "").await;
        let told = answer.json();
        assert_eq!((&told["ran"], &told["error"]["code"]), (&json!(true), &json!(code)), "{argv}: {told}");
        let confirmed = process.look(&format!("/api/dispatch?confirm={}", answer.id())).await.json();
        assert_eq!(confirmed["status"], "PROVEN_ATTEMPT_NO_MATERIAL_RESULT", "{argv}");
    }
    assert_eq!(result(&process, json!(["bash", "-c", "echo no >&2; exit 3"])).await, "ERR:fn:exec:3:no\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_is_nobody_in_an_empty_folder_and_knows_nothing() {
    let Some((process, _folder)) = deployment().await else { return };
    let environment = result(&process, json!(["env"])).await;
    let mut names: Vec<&str> = environment.lines().filter_map(|line| line.split('=').next()).collect();
    names.sort_unstable();
    assert_eq!(names, ["HOME", "LANG", "PATH", "TMPDIR"], "{environment}");
    let facts = "echo $(id -u):$(id -G):$PWD; ls -A; ulimit -u; ulimit -n; ulimit -c; ulimit -f; \
                 grep NoNewPrivs /proc/self/status; touch here && ls";
    let told = result(&process, json!(["bash", "-c", facts])).await;
    let lines: Vec<&str> = told.lines().collect();
    let (who, folder) = lines[0].rsplit_once(':').unwrap();
    let (uid, groups) = who.split_once(':').unwrap();
    assert!(uid != "0" && !groups.split(' ').any(|group| group == "0"), "{told}");
    assert_eq!(lines[1..], ["128", "256", "0", "65536", "NoNewPrivs:\t1", "here"], "{told}");
    let gone = || !Path::new(folder).exists();
    for _ in 0..100 {
        if !gone() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
    assert!(folder.contains("callbook-exec-") && gone(), "{folder}");
    let other = result(&process, json!(["bash", "-c", "echo $PWD"])).await;
    assert_ne!(other.trim(), folder);
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_a_program_starts_ends_with_it() {
    let Some((process, _folder)) = deployment().await else { return };
    assert_eq!(result(&process, json!(["bash", "-c", "sleep 98761 & echo done"])).await, "done\n");
    assert!(!lives(&["sleep", "98761"]), "a child outlived its program");
    let late = run(&process, json!(["bash", "-c", "sleep 98762 & sleep 98763"]), "").await.json();
    assert_eq!((&late["error"]["code"], &late["error"]["retryable"]), (&json!("timeout"), &json!(false)), "{late}");
    assert!(!lives(&["sleep", "98762"]) && !lives(&["sleep", "98763"]), "a child outlived its program");
    let bomb = "b() { b | b & b; }; b";
    let bombed = run(&process, json!(["bash", "-c", bomb]), "").await.json();
    assert_eq!(bombed["ok"], false, "{bombed}");
    assert_eq!(result(&process, json!(["echo", "still here"])).await, "still here\n");
}

#[tokio::test]
async fn without_the_setting_nothing_is_started() {
    let world = callbook_tests::world::World::start().await;
    let content = "# WHAT: Start a program\n# EX: x\n[[\"/bin/echo\",\"$1\"]]";
    world.create(&with(saying("EXEC", ""), &json!({"target": "exec", "content": content}))).await;
    let answer = world.invoke("EXEC", "hello").await.json();
    assert_eq!((&answer["ran"], &answer["error"]["code"]), (&json!(true), &json!("fn:exec:off")), "{answer}");
    world.stop().await;
}
