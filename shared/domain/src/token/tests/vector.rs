//! The published cases: `vectors/tokens.json` of the folder that `CALLBOOK_SHARED` names.

use std::path::PathBuf;

use super::*;
use crate::fault::{Fault, Reason};

#[test]
fn every_case_of_the_vectors_gets_its_reason() {
    let Some(vectors) = vectors() else { return };
    let mut keys = Keys::default();
    for jwk in vectors["issuer_jwks"]["keys"].as_array().unwrap() {
        let public = ["crv", "kty", "x"].map(|name| (name.to_owned(), jwk[name].clone())).into_iter().collect();
        keys.insert(text(&jwk["kid"]), PublicKey::from_jwk(&public).unwrap());
    }
    let max_ttl = Duration::seconds(vectors["limits"]["max_lifetime_s"].as_i64().unwrap());
    let cases = vectors["cases"].as_array().unwrap();
    let mut wrong = Vec::new();
    for case in cases {
        let got = run(case, &keys, max_ttl).map_or_else(|fault| fault.error_text(), |()| "ok".to_owned());
        let wanted = text(&case["expect"]);
        if got != wanted && !got.starts_with(&format!("{wanted}:")) {
            wrong.push(format!("{}: {got} and not {wanted}", text(&case["name"])));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(cases.len(), 76);
}

fn vectors() -> Option<Value> {
    let shared = std::env::var_os("CALLBOOK_SHARED").map(PathBuf::from);
    let shared = shared.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"));
    let Ok(found) = std::fs::read_to_string(shared.join("vectors/tokens.json")) else {
        eprintln!("skipped: no vectors/tokens.json in {}", shared.display());
        return None;
    };
    Some(serde_json::from_str(&found).unwrap())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// Steps 1 to 16 as far as they are pure, on one case.
fn run(case: &Value, keys: &Keys, max_ttl: Duration) -> Result<()> {
    let links: Vec<&str> = case["chain"].as_array().unwrap().iter().map(text).collect();
    let args = crate::arguments::Sent::new(None, serde_json::from_str(&case["args"].to_string()).unwrap())?;
    let arg = argument_hash(&args)?;
    let input = case["pop"].as_str().map(|text| ProofInput { text, key: self::text(&case["key"]), arg });
    let expect = Expect { audience: text(&case["me"]), iss: ISS, now: at(case["now"].as_i64().unwrap()), max_ttl };
    let chain = verify(&links.join("~"), keys, &expect, input.as_ref())?.chain;
    let risk = Risk::parse(text(&case["row_risk"])).unwrap();
    let effect = Effect::parse(text(&case["row_effect"])).unwrap();
    chain.check_row(&key(text(&case["key"])), text(&case["contract"]), risk, effect)?;
    chain.check_call(arg, case["payload_bytes"].as_u64().unwrap())?;
    if chain.owner_gate() {
        return Err(Fault::new(Reason::OwnerGateRequired, "every call of this token waits for a person"));
    }
    Ok(())
}
