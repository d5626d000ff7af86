//! Questions through every door: one index answers them all, and none of them fails.

use std::process::Command;

use callbook_tests::book::{saying, with};
use callbook_tests::process::binary;
use callbook_tests::world::{OWNER, World, owned, send};
use callbook_wire::resolver::v1 as resolver;
use callbook_wire::resolver::v1::resolver_service_client::ResolverServiceClient;
use reqwest::Method;
use serde_json::{Value, json};

/// A small book, and a row by which it can be asked.
async fn world() -> World {
    let world = World::start().await;
    for (key, category, what) in [
        ("CLOCK", "time", "Tell the current time and the date of today"),
        ("MAIL_SEND", "mail", "Send an email to somebody"),
        ("MAIL_SEARCH", "mail", "Search the mailbox for a letter"),
        ("FORECAST", "weather", "Tell the weather forecast of a city"),
        ("TENKI", "weather", "今日の天気予報を教える"),
        ("POGODA", "weather", "Показать погоду в городе"),
        ("REPOSITORY_DELETE", "code", "Delete a repository for ever"),
    ] {
        world.create(&with(saying(key, what), &json!({"category": category}))).await;
    }
    let ask = "# WHAT: Look into the book\n# ARGS: question | limit\n# EX: x|1\n[\"$1\",\"$2\"]";
    world.create(&json!({"key": "ASK", "type": "fn", "target": "ask", "content": ask, "planner_visible": 0})).await;
    world
}

async fn ask(world: &World, question: &str) -> Value {
    let request = world.anyone(Method::GET, "/api/dispatch").query(&[("ask", question)]);
    let answer = send(request).await;
    assert_eq!(answer.status, 200, "{question:?}: {}", answer.text);
    answer.json()
}

fn keys(matches: &Value) -> Vec<String> {
    matches.as_array().unwrap().iter().map(|row| row["key"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn one_index_answers_over_rest_grpc_the_function_and_the_command_line() {
    let world = world().await;
    let mut client = ResolverServiceClient::new(world.channel().await);
    for question in ["send a letter by email", "weather of a city", "use mail-search", "delete my repositry", "天気"]
    {
        let rest = ask(&world, question).await;
        let found = keys(&rest["matches"]);
        assert!(!found.is_empty(), "{question}: {rest}");

        let asked = resolver::AskRequest { question: question.to_owned(), ..Default::default() };
        let grpc = client.ask(owned(asked)).await.unwrap().into_inner();
        assert_eq!(grpc.matches.iter().map(|row| row.key.clone()).collect::<Vec<_>>(), found, "{question}");
        assert_eq!(grpc.best.unwrap().summary.unwrap().key, found[0]);
        let score = rest["best"]["score"].as_f64().unwrap();
        assert!((grpc.matches[0].score - score).abs() < 0.0001, "{question}: {rest}");

        let function = world.call("ASK", &json!([question, ""])).await.json();
        assert_eq!(keys(&function["output"]["matches"]), found, "{question}: {function}");
        assert_eq!(function["output"]["matches"][0]["why"], rest["best"]["why"]);

        let mut command = Command::new(binary());
        command.args(["ask", question, "-o", "json"]).env("CALLBOOK_URL", &world.http).env("CALLBOOK_KEY", OWNER);
        let written = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
        let told: Value = serde_json::from_slice(&written.stdout).unwrap();
        assert_eq!(keys(&told["matches"]), found, "{question}");
    }
    world.stop().await;
}

#[tokio::test]
async fn other_scripts_and_typing_errors_find_their_rows() {
    let world = world().await;
    for (question, key) in [
        ("what time is it", "CLOCK"),
        ("whats teh curent time", "CLOCK"),
        ("weather forcast", "FORECAST"),
        ("dellete a repository", "REPOSITORY_DELETE"),
        ("明日の天気は", "TENKI"),
        ("погоду в Москве", "POGODA"),
        ("ПОГОДУ", "POGODA"),
    ] {
        let told = ask(&world, question).await;
        assert_eq!(told["best"]["key"], key, "{question}: {told}");
    }
    let told = ask(&world, "weather forcast").await;
    assert!(told["best"]["why"].as_array().unwrap().contains(&json!("typo: forcast→forecast")), "{told}");
    world.stop().await;
}

/// Questions of every script and shape; most fit nothing.
fn odd() -> Vec<String> {
    let mut odd: Vec<String> = [
        " ",
        "\t\r\n",
        "\0",
        "time\0now",
        "(:*&!'\\`",
        "' or 1=1 --",
        "%",
        "%00",
        "a:*",
        "\"unclosed",
        "((((",
        "\u{7f}",
        "\u{feff}",
        "\u{202e}emit",
        "\u{200d}\u{200d}",
        "e\u{301}\u{301}\u{301}",
        "🙂",
        "👩‍👩‍👧‍👦 weather",
        "ما هو الطقس اليوم",
        "מה השעה",
        "कितने बजे हैं",
        "天気はどうですか",
        "오늘 날씨",
        "วันนี้อากาศ",
        "τι ώρα είναι",
        "რა დროა",
        "ምን ሰዓት ነው",
        "İSTANBUL'DA HAVA",
        "ǅ ß ﬁ Ω",
        "𝒘𝒆𝒂𝒕𝒉𝒆𝒓",
        "\u{10ffff}",
        "REPOSITORY_DELETE",
        "repository_delete; MAIL_SEND",
    ]
    .map(str::to_owned)
    .into();
    odd.push("weather ".repeat(1_280));
    odd.push("x".repeat(10_240));
    odd.push("天".repeat(10_240));
    odd.push((0..2_000).map(|n| format!("w{n} ")).collect());
    odd
}

#[tokio::test]
async fn no_question_fails_whatever_it_is_written_in() {
    let world = world().await;
    let mut client = ResolverServiceClient::new(world.channel().await);
    for question in odd() {
        let shown: String = question.chars().take(20).collect();
        let asked = resolver::AskRequest { question: question.clone(), ..Default::default() };
        let answered = client.ask(asked).await.unwrap_or_else(|status| panic!("{shown:?}: {status}")).into_inner();
        assert_eq!(answered.matches.is_empty(), answered.hint.is_some(), "{shown:?}: {answered:?}");
        assert_eq!(answered.count, answered.matches.len() as u64, "{shown:?}");
        assert!(answered.matches.iter().all(|row| (0.0..=1.0).contains(&row.score) && !row.why.is_empty()));
        assert!(answered.question.len() <= 10 * 1024, "{shown:?}");
        // an address holds 8 KiB, so the longest go over gRPC alone
        if question.len() < 2_000 {
            let told = ask(&world, &question).await;
            let found: Vec<_> = answered.matches.iter().map(|row| row.key.clone()).collect();
            assert_eq!(keys(&told["matches"]), found, "{shown:?}");
        }
        let function = world.call("ASK", &json!([question, ""])).await;
        assert!(function.status == 200 && function.json()["ok"] == true, "{shown:?}: {}", function.text);
    }
    for broken in ["%FF%FE", "%C3", "a%", "%zz"] {
        let answer = world.look(&format!("/api/dispatch?ask={broken}")).await;
        assert!(answer.status == 200 || answer.status == 400, "{broken}: {}", answer.text);
    }
    world.stop().await;
}
