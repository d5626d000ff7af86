use super::*;

/// A fault with everything a fault can have, through the bytes of a response's headers and back.
fn through_headers(fault: &Fault) -> (Code, Fault) {
    let mut headers = http::HeaderMap::new();
    to_status(fault).add_header(&mut headers).unwrap();
    let status = Status::from_header_map(&headers).unwrap();
    (status.code(), from_status(&status))
}

#[test]
fn every_reason_comes_back_as_it_went() {
    for &reason in Reason::ALL {
        let bare = Fault::new(reason, "a sentence");
        assert_eq!(through_headers(&bare), (statuses(reason).grpc, bare));
        let full = Fault::new(reason, "ein Satz — 文")
            .detail("/alter:type")
            .fix("schreibe „0“")
            .with("invocation_id", "inv_01")
            .with("needs", "invoke übe")
            .retry_after_ms(1_234);
        assert_eq!(through_headers(&full).1, full);
    }
}

#[test]
fn long_values_are_cut_between_characters_and_the_headers_stay_small() {
    let long = "文".repeat(10_000);
    let mut fault = Fault::new(Reason::Internal, long.clone()).detail(long.clone()).fix(long.clone());
    for name in ["a", "b", "c", "d"] {
        fault = fault.with(name, long.clone());
    }
    let mut headers = http::HeaderMap::new();
    to_status(&fault).add_header(&mut headers).unwrap();
    let size: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 32).sum();
    assert!(size < 16 * 1024, "{size}");
    let back = through_headers(&fault).1;
    assert!(long.starts_with(back.message()) && back.message().len() > MESSAGE_BYTES - 3);
    let fix = back.how_to_fix().unwrap();
    assert!(long.starts_with(fix) && fix.len() > VALUE_BYTES - 3);
    assert!(back.detail_text().is_some() && back.metadata().len() < 4);
}

#[test]
fn a_foreign_status_gets_the_nearest_reason_and_does_not_claim_that_nothing_ran() {
    let unavailable = from_status(&Status::unavailable("10.0.0.7: connection reset"));
    assert_eq!(unavailable.reason(), Reason::ServiceUnavailable);
    assert!(!unavailable.message().contains("10.0.0.7"));
    assert_eq!(unavailable.metadata(), [("fired", "unknown".to_owned())]);
    assert_eq!(from_status(&Status::deadline_exceeded("")).reason(), Reason::DeadlineTooShort);
    let unimplemented = from_status(&Status::unimplemented(""));
    assert_eq!((unimplemented.reason(), unimplemented.metadata().len()), (Reason::Internal, 0));
    let newer = ErrorDetails::with_error_info("REASON_OF_TOMORROW", DOMAIN, HashMap::new());
    let newer = Status::with_error_details(Code::PermissionDenied, "x", newer);
    assert_eq!(from_status(&newer).reason(), Reason::Forbidden);
    let other = ErrorDetails::with_error_info("FORBIDDEN", "else.example", HashMap::new());
    assert_eq!(from_status(&Status::with_error_details(Code::NotFound, "x", other)).reason(), Reason::NotFound);
}

#[tokio::test]
async fn a_refused_connection_is_known_to_have_run_nothing() {
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let channel = tonic::transport::Endpoint::from_shared(format!("http://{closed}")).unwrap().connect_lazy();
    let mut client = tonic_health::pb::health_client::HealthClient::new(channel);
    let status = client.check(tonic_health::pb::HealthCheckRequest::default()).await.unwrap_err();
    let fault = from_status(&status);
    assert_eq!((fault.reason(), fault.metadata().len()), (Reason::ServiceUnavailable, 0));
}

#[tokio::test]
async fn the_largest_fault_reaches_a_client_whole() {
    let long = "文".repeat(10_000);
    let fault = Fault::new(Reason::RowMoved, long.clone()).detail(long.clone()).fix(long.clone()).with("a", long);
    let status = to_status(&fault);
    let (_, health) = tonic_health::server::health_reporter();
    let refuse = tonic::service::interceptor::InterceptedService::new(health, move |_| Err(status.clone()));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let incoming = tokio_stream::wrappers::TcpListenerStream::new(listener);
    tokio::spawn(tonic::transport::Server::builder().add_service(refuse).serve_with_incoming(incoming));
    let channel = tonic::transport::Endpoint::from_shared(format!("http://{address}")).unwrap().connect_lazy();
    let mut client = tonic_health::pb::health_client::HealthClient::new(channel);
    let status = client.check(tonic_health::pb::HealthCheckRequest::default()).await.unwrap_err();
    assert_eq!(from_status(&status), through_headers(&fault).1);
}

#[test]
fn an_invented_name_is_not_kept() {
    assert_eq!(name::lasting("needs"), Some("needs"));
    assert_eq!(name::lasting("no such\nname"), None);
    assert_eq!(name::lasting(&"x".repeat(65)), None);
}
