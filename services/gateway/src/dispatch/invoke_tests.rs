use super::*;

const ID: &str = "inv_01JH0000000000000000000000";

fn read(text: &str) -> std::result::Result<Wanted, String> {
    let body = serde_json::from_str::<Body>(text).map_err(|error| error.to_string())?;
    Wanted::read(body, &HeaderMap::new()).map_err(|fault| fault.message().to_owned())
}

fn invoked(text: &str) -> wire::InvokeRequest {
    match read(text) {
        Ok(Wanted::Invoke(request)) => request,
        _ => panic!("not an invocation: {text}"),
    }
}

#[test]
fn arguments_keep_their_text() {
    let args = r#"{"n":9007199254740993,"m":1.10,"z":-0, "e":1e400}"#;
    let request = invoked(&format!(r#"{{"key":"K","args":{args}}}"#));
    assert_eq!(request.arguments.unwrap().form, Some(Form::ArgsJson(Bytes::from_static(args.as_bytes()))));
    let request = invoked(r#"{"key":"K","body":"37.77|-122.42"}"#);
    assert_eq!(request.arguments.unwrap().form, Some(Form::Body("37.77|-122.42".into())));
    assert_eq!(invoked(r#"{"key":"K","body":null,"args":null}"#).arguments, None);
}

#[test]
fn what_contradicts_itself_is_refused() {
    for bad in [
        r#"{"key":"K","body":"a","args":{}}"#,
        r#"{"key":"K","args":"a"}"#,
        r#"{"key":"K","body":{"a":1}}"#,
        r#"{"key":"K","key":"L"}"#,
        r#"{"key":"K","actor":"owner"}"#,
        r#"{"key":"K","replay":"inv_01JH0000000000000000000000"}"#,
        r#"{"replay":"inv_01JH0000000000000000000000","body":"x"}"#,
        r#"{"replay":"inv_1"}"#,
        r#"{"key":"K","idempotency_key":""}"#,
        r#"{"key":"K","deadline_ms":-1}"#,
        "{}",
        "[]",
    ] {
        assert!(read(bad).is_err(), "{bad}");
    }
}

#[test]
fn repairs_and_replays_have_their_own_calls() {
    let repair = read(&format!(r#"{{"key":"K","body":"b","repairs":"{ID}"}}"#));
    assert!(matches!(repair, Ok(Wanted::Repair(request)) if request.key == "K" && request.invocation_id == ID));
    let replay = read(&format!(r#"{{"replay":"{ID}","idempotency_key":"k"}}"#));
    assert!(matches!(replay, Ok(Wanted::Replay(request)) if request.idempotency_key.as_deref() == Some("k")));
}

#[test]
fn the_idempotency_key_comes_by_header_or_field() {
    let key = |field: Option<&str>, header: &[&str]| {
        let headers = header.iter().map(|value| (IDEMPOTENCY_KEY, value.parse().unwrap())).collect();
        idempotency_key(field.map(str::to_owned), &headers)
    };
    assert_eq!(key(None, &["a"]), Ok(Some("a".into())));
    assert_eq!(key(Some("a"), &["a"]), Ok(Some("a".into())));
    assert_eq!(key(None, &[]), Ok(None));
    assert!(key(Some("a"), &["b"]).is_err());
    assert!(key(None, &["a", "a"]).is_err());
    assert!(key(None, &[""]).is_err());
    assert!(key(None, &["é"]).is_err());
}
