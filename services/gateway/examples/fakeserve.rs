#![allow(missing_docs, dead_code, unreachable_pub, clippy::unwrap_used)]
#[path = "../tests/surface/fake.rs"]
mod fake;
use callbook_wire::{
    contract::v1 as c, directory::v1 as d, executor::v1 as e, gate::v1 as g, receipt::v1 as r, resolver::v1 as q,
};
#[tokio::main]
async fn main() {
    let f = fake::Fake::default();
    let w = || Some(d::RowWrite { key: "K".into(), version: 1, revision: 1, ..Default::default() });
    let row = || d::Row { key: "K".into(), r#type: 1, version: 1, provenance: 1, ..Default::default() };
    let ans = || {
        Some(e::Answer {
            ok: true,
            ran: true,
            proof: Some(e::Proof { invocation_id: "inv_1".into(), ..Default::default() }),
            output: bytes::Bytes::from_static(b"{}"),
            media_type: "application/json".into(),
            ..Default::default()
        })
    };
    let p = || Some(g::Principal { name: "n".into(), ..Default::default() });
    let m = || q::Match { key: "K".into(), r#type: 1, effect: 1, risk: 1, ..Default::default() };
    f.say(
        "ResolverService/Ask",
        &q::AskResponse {
            count: 1,
            matches: vec![m()],
            best: Some(q::BestMatch { summary: Some(m()), contract_json: bytes::Bytes::from_static(b"{}") }),
            ..Default::default()
        },
    )
    .say("ResolverService/ListCapabilities", &q::ListCapabilitiesResponse { results: vec![m()], ..Default::default() })
    .say(
        "ResolverService/Describe",
        &q::DescribeResponse {
            answer: Some(q::describe_response::Answer::Description(q::Description::default())),
            ..Default::default()
        },
    )
    .say("ResolverService/GetStamp", &q::GetStampResponse::default())
    .say(
        "ResolverService/GetMap",
        &q::GetMapResponse { view: Some(q::get_map_response::View::Book(q::BookMap::default())), ..Default::default() },
    )
    .say(
        "ResolverService/ListRegistry",
        &q::ListRegistryResponse { objects: vec![q::RegistryObject::default()], ..Default::default() },
    )
    .say(
        "ResolverService/SearchRows",
        &q::SearchRowsResponse { rows: vec![q::FoundRow::default()], ..Default::default() },
    )
    .say("ResolverService/ListCategories", &q::ListCategoriesResponse::default())
    .say("DirectoryService/CreateRow", &d::CreateRowResponse { write: w() })
    .say("DirectoryService/GetRow", &d::GetRowResponse { row: Some(row()), ..Default::default() })
    .say("DirectoryService/ReplaceRow", &d::ReplaceRowResponse { write: w() })
    .say("DirectoryService/PatchRow", &d::PatchRowResponse { write: w(), fields: vec![] })
    .say("DirectoryService/DeleteRow", &d::DeleteRowResponse::default())
    .say("DirectoryService/ListRows", &d::ListRowsResponse { rows: vec![row()], ..Default::default() })
    .say(
        "DirectoryService/ListRowVersions",
        &d::ListRowVersionsResponse {
            versions: vec![d::RowVersion { action: 1, ..Default::default() }],
            ..Default::default()
        },
    )
    .say("DirectoryService/RestoreRow", &d::RestoreRowResponse { write: w() })
    .say("DirectoryService/ImportRows", &d::ImportRowsResponse { ok: true, ..Default::default() })
    .say("DirectoryService/ExportRows", &d::ExportRowsResponse { chunk: bytes::Bytes::from_static(b"{}\n") })
    .say("DirectoryService/CheckRow", &d::CheckRowResponse::default())
    .say(
        "ContractService/GetContract",
        &c::GetContractResponse {
            content: bytes::Bytes::from_static(b"{\"key\":\"K\",\"contract_hash\":\"x\"}"),
            media_type: "application/json".into(),
            ..Default::default()
        },
    )
    .say("ContractService/Recommend", &c::RecommendResponse { recommendation: Some(c::Recommendation::default()) })
    .say("ContractService/ListRecommendations", &c::ListRecommendationsResponse::default())
    .say("ContractService/DeleteRecommendation", &c::DeleteRecommendationResponse::default())
    .say("ExecutorService/Invoke", &e::InvokeResponse { answer: ans() })
    .say("ExecutorService/Shape", &e::ShapeResponse::default())
    .say("ExecutorService/Repair", &e::RepairResponse { answer: ans() })
    .say("ExecutorService/Replay", &e::ReplayResponse { answer: ans() })
    .say("ReceiptService/Confirm", &r::ConfirmResponse { confirmed: true, status: 1, mode: 1, ..Default::default() })
    .say("ReceiptService/GetReceipt", &r::GetReceiptResponse { receipt: Some(r::Receipt::default()) })
    .say(
        "ReceiptService/ListInvocations",
        &r::ListInvocationsResponse { invocations: vec![r::InvocationSummary::default()], ..Default::default() },
    )
    .say("ReceiptService/GetStats", &r::GetStatsResponse::default())
    .say("GateService/CreatePrincipal", &g::CreatePrincipalResponse { principal: p(), api_key: "cbk".into() })
    .say("GateService/ListPrincipals", &g::ListPrincipalsResponse::default())
    .say("GateService/RevokePrincipal", &g::RevokePrincipalResponse { principal: p(), revoked: 1 })
    .say("Health/Check", &tonic_health::pb::HealthCheckResponse { status: 1 });
    let config = callbook_gateway::Config::at(f.start().await);
    let l = tokio::net::TcpListener::bind("127.0.0.1:18080").await.unwrap();
    callbook_gateway::serve(l, config, Default::default()).await.unwrap();
}
