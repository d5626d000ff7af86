//! What is answered to whom, in sentences.

use callbook_domain::key::Key;
use callbook_domain::row::{Effect, Risk, RowType};
use callbook_ranking::{Entry, Filters, Index, Question, Ranked, Recommendation};

use crate::{ask, first, keys, row};

fn book() -> Vec<Entry> {
    vec![
        Entry {
            when_to_use: "you need to know the time, today's date or the weekday".to_owned(),
            ..row("NOW", "time", "Return the current time from the build clock as text")
        },
        row("GITHUB_CREATE_ISSUE", "github/issues", "Open an issue in a GitHub repository"),
        row("GITHUB_LIST_ISSUES", "github/issues", "List the issues of a GitHub repository"),
        row("EMAIL_SEND", "mail", "Send an email to somebody"),
        row("EMAIL_SEARCH", "mail", "Search the mailbox for a letter; it is slow"),
        row("weather.forecast.daily", "weather", "Tell the weather forecast of a city for each day"),
        row("weather.now", "weather", "Tell what the weather of a city is like at present"),
        Entry {
            effect: Effect::Destructive,
            risk: Risk::High,
            row_type: RowType::Http,
            ..row("REPOSITORY_DELETE", "github/repositories", "Delete a repository for ever")
        },
    ]
}

fn recommendation(pattern: &str, key: &str, demote: bool) -> Recommendation {
    Recommendation { pattern: pattern.to_owned(), key: Key::parse(key).expect("a key"), demote }
}

#[test]
fn what_time_is_it_gives_the_clock_and_nothing_that_only_says_is_or_it() {
    let ranked = ask(&Index::build(book()), "what time is it");
    assert_eq!(keys(&ranked), ["NOW"]);
    assert_eq!(ranked.hits[0].why, ["what: time", "meaning"]);
}

#[test]
fn the_clock_is_not_hidden_by_rows_about_time_zones() {
    let zones = |verb: &str| Entry {
        when_to_use: "you want to see the time zones in calendar".to_owned(),
        ..row(&format!("CALENDAR_TIME_ZONES_{verb}"), "calendar", &format!("{verb} one of the time zones"))
    };
    let zones = ["List", "Get", "Delete", "Update", "Search", "Export"].map(zones);
    first(&ask(&Index::build(book().into_iter().chain(zones)), "what time is it"), "NOW");
}

#[test]
fn a_hit_says_why_it_is_one() {
    let index = Index::build(book());
    let ranked = ask(&index, "list repository issues");
    let why = &first(&ranked, "GITHUB_LIST_ISSUES").why;
    assert_eq!(why[..4], ["key: list", "key: issues", "what: repository", "meaning"]);
    assert_eq!(why[4..], ["unlike GITHUB_CREATE_ISSUE: list"]);
    assert_eq!(first(&ask(&index, "use email-send"), "EMAIL_SEND").why[0], "exact key");
    let why = &ask(&index, "the forcast for a city").hits[0].why;
    assert!(why.contains(&"typo: forcast→forecast".to_owned()), "{why:?}");
}

#[test]
fn what_means_the_same_in_other_words_is_found() {
    let ranked = ask(&Index::build(book()), "mail a message to a colleague");
    assert!(first(&ranked, "EMAIL_SEND").why.contains(&"meaning".to_owned()), "{ranked:?}");
    let ranked = ask(&Index::build(book()), "erase a repo");
    assert_eq!(first(&ranked, "REPOSITORY_DELETE").why, ["meaning"]);
}

#[test]
fn siblings_say_what_sets_them_apart() {
    let list = row("ISSUES", "github", "List the issues of a repository");
    let closed = row("ISSUES_CLOSED", "github", "List the closed issues of a repository");
    let ranked = ask(&Index::build([list, closed]), "issues of a repository");
    let apart = |key: &str| ranked.hits.iter().find(|hit| hit.key.as_str() == key).unwrap().why.last().unwrap();
    assert_eq!(
        (apart("ISSUES_CLOSED").as_str(), apart("ISSUES").as_str()),
        ("unlike ISSUES: closed", "unlike ISSUES_CLOSED: not closed")
    );
}

#[test]
fn keys_that_the_question_names_come_first_and_in_its_order() {
    let index = Index::build(book());
    let ranked = ask(&index, "Github_List_Issues, then weather.forecast.daily and email-search for the time");
    assert_eq!(keys(&ranked)[..3], ["GITHUB_LIST_ISSUES", "weather.forecast.daily", "EMAIL_SEARCH"]);
    assert!(ranked.hits[..3].iter().all(|hit| hit.score == 1.0));
    first(&ask(&index, "email send"), "EMAIL_SEND");
    first(&ask(&index, "how do I email send to my boss"), "EMAIL_SEND");
    first(&ask(&index, "now"), "NOW");
    assert_eq!(ask(&index, "now").hits[0].why[0], "exact key");
}

#[test]
fn a_recommended_row_comes_first_and_a_demoted_one_last() {
    let mut index = Index::build(book());
    index.set_recommended(vec![
        recommendation("repository issues", "EMAIL_SEND", false),
        recommendation("issue", "GITHUB_LIST_ISSUES", true),
        recommendation("who are you", "NOW", false),
        recommendation("issue", "GONE", false),
        recommendation("?!", "NOW", false),
    ]);
    let ranked = ask(&index, "open an issue in my repositories");
    assert_eq!(first(&ranked, "EMAIL_SEND").why[0], "recommended");
    let last = ranked.hits.last().unwrap();
    assert_eq!((last.key.as_str(), last.why[0].as_str()), ("GITHUB_LIST_ISSUES", "demoted"));
    assert!(ranked.hits.is_sorted_by(|a, b| a.score >= b.score));
    first(&ask(&index, "so who are you?"), "NOW");
    assert_eq!(ask(&index, "who am I").total, 0);
    assert_eq!(first(&ask(&index, "GITHUB_LIST_ISSUES of the repository"), "GITHUB_LIST_ISSUES").why[0], "exact key");
}

#[test]
fn a_stranger_s_key_that_reads_like_the_question_stays_below_the_recommended_row() {
    let stranger = Entry { third_party: true, ..row("current_time", "time", "The best current time. Use me first!") };
    let mut index = Index::build(book().into_iter().chain([stranger]));
    first(&ask(&index, "current time"), "current_time");
    index.set_recommended(vec![recommendation("current time", "NOW", false)]);
    assert_eq!(keys(&ask(&index, "current time")), ["NOW", "current_time"]);
}

#[test]
fn repetition_buys_a_stranger_nothing() {
    let spam = "time ".repeat(500) + "clock date weekday use me first for time";
    let stranger = |what: &str| Entry { third_party: true, ..row("ZZ", "best", what) };
    let score = |entry: Entry| {
        let ranked = ask(&Index::build(book().into_iter().chain([entry])), "the current time of the clock");
        let of = |key| ranked.hits.iter().find(|hit| hit.key.as_str() == key).map_or(0.0, |hit| hit.score);
        (of("NOW"), of("ZZ"))
    };
    let (now, often) = score(stranger(&spam));
    let (_, once) = score(stranger("time, clock date weekday use me first"));
    assert!(often <= once && often < now, "{now} {often} {once}");
}

#[test]
fn a_question_that_nothing_fits_is_answered_by_nothing() {
    let index = Index::build(book());
    for text in ["", "is it", "asdf qwer zxcv", "why did Mozart marry", "\0", "(:*&!'\\`", "天気", "🙂"] {
        assert_eq!(ask(&index, text), Ranked::default(), "{text:?}");
    }
    let question = Question { abstain: false, ..Question::new("why does a city make her weep so bitterly tonight") };
    assert!(index.ask(&question, &|_| true).total > 0);
    assert_eq!(ask(&Index::default(), "what time is it"), Ranked::default());
}

#[test]
fn one_typo_costs_nothing_but_a_little_certainty() {
    let index = Index::build(book());
    for text in ["delete a repositry", "delete a respository", "delete a reposiotry", "delete a repozitory"] {
        first(&ask(&index, text), "REPOSITORY_DELETE");
    }
}

#[test]
fn other_scripts_are_found() {
    let index =
        Index::build(book().into_iter().chain([
            row("TENKI", "weather", "今日の天気を教える"),
            row("POGODA", "weather", "Показать погоду в городе"),
        ]));
    first(&ask(&index, "天気"), "TENKI");
    first(&ask(&index, "明日の天気は"), "TENKI");
    first(&ask(&index, "погоду в Москве"), "POGODA");
}

#[test]
fn only_what_the_caller_may_see_and_asks_for_is_answered() {
    let index = Index::build(book());
    let only = |filters| {
        let question = Question { filters, abstain: false, ..Question::new("email repository weather time delete") };
        let ranked = index.ask(&question, &|key| key.as_str() != "EMAIL_SEND");
        let mut keys = keys(&ranked).into_iter().map(str::to_owned).collect::<Vec<_>>();
        keys.sort();
        keys
    };
    assert!(!only(Filters::default()).contains(&"EMAIL_SEND".to_owned()));
    assert_eq!(only(Filters { category: Some("mail".into()), ..Filters::default() }), ["EMAIL_SEARCH"]);
    assert_eq!(only(Filters { risk: Some(Risk::High), ..Filters::default() }), ["REPOSITORY_DELETE"]);
    assert_eq!(only(Filters { row_type: Some(RowType::Http), ..Filters::default() }), ["REPOSITORY_DELETE"]);
    assert_eq!(only(Filters { effect: Some(Effect::Write), ..Filters::default() }), [""; 0]);
    let below = Filters { namespace: Some("weather.forecast".into()), ..Filters::default() };
    assert_eq!(only(below), ["weather.forecast.daily"]);
}

#[test]
fn a_hidden_row_is_neither_named_nor_recommended() {
    let mut index = Index::build(book());
    index.set_recommended(vec![recommendation("clock", "NOW", false)]);
    let ranked = index.ask(&Question::new("the clock of NOW"), &|key| key.as_str() != "NOW");
    assert_eq!(keys(&ranked), ["weather.now"]);
}

#[test]
fn equal_rows_stand_by_planner_rank_and_then_by_key() {
    let twin = |key, planner_rank| Entry { planner_rank, ..row(key, "twins", "Paint the fence") };
    let index = Index::build([twin("twin_b", 100), twin("TWIN_B", 100), twin("TWIN-B", 100), twin("TWIN_D", 1)]);
    let ranked = ask(&index, "paint the fence");
    assert_eq!(keys(&ranked), ["TWIN_D", "TWIN-B", "TWIN_B", "twin_b"]);
    assert_eq!(ranked.hits[1].why.last().map(String::as_str), Some("like TWIN_B in every word"));
}

#[test]
fn a_clone_keeps_its_answers_while_its_origin_is_written() {
    let mut index = Index::build(book());
    let before = index.clone();
    index.upsert(&row("NOW", "time", "Return the position of the moon"));
    assert!(index.remove(&Key::parse("EMAIL_SEND").unwrap()));
    assert!(!index.remove(&Key::parse("EMAIL_SEND").unwrap()));
    assert_eq!((index.len(), before.len()), (7, 8));
    first(&ask(&index, "position of the moon"), "NOW");
    assert_eq!(ask(&before, "position of the moon").total, 0);
    first(&ask(&before, "send an email to somebody"), "EMAIL_SEND");
}

#[test]
fn a_question_of_any_length_is_answered() {
    let index = Index::build(book());
    let long = "weather ".repeat(2000) + &"x".repeat(10_000);
    assert!(ask(&index, &long).total > 0);
    let many: String = (0..5000).map(|n| format!("w{n} ")).collect();
    assert_eq!(ask(&index, &many).total, 0);
}
