//! What can go wrong with this row in particular, and what to do about it.

use super::moves::{Move, may_invoke, waits_for_a_person};
use super::{Rendered, clean};
use crate::auth::Auth;
use crate::caller::{Caller, May};
use crate::compile::{FnPlan, Plan};
use crate::row::{DEFAULT_POOL, Effect};

/// A failure as the caller meets it, what to do, and where.
pub(super) struct Trouble {
    pub(super) problem: String,
    pub(super) action: &'static str,
    pub(super) address: String,
}

fn trouble(problem: impl Into<String>, action: &'static str, address: impl Into<String>) -> Trouble {
    Trouble { problem: problem.into(), action, address: address.into() }
}

/// In the order in which a call meets them.
pub(super) fn troubles(rendered: &Rendered<'_>) -> Vec<Trouble> {
    let contract = Move::Contract.address(rendered.key());
    let mut found = vec![trouble(
        "`unknown_key`",
        "take a key of `did_you_mean`, or ask in plain words",
        "GET /api/dispatch?ask=<question>",
    )];
    found.extend(gate(rendered));
    found.push(match rendered.compiled.signature.schema {
        Some(_) => trouble(
            "`args_invalid:<pointer>:<keyword>`",
            "correct the value at the pointer as the schema says; nothing ran",
            contract.clone(),
        ),
        None => trouble(
            "`missing_argument:<slot>`, `extra_arguments:…`",
            "count the arguments between `|`; a literal pipe is `\\|`; nothing ran",
            contract.clone(),
        ),
    });
    found.extend(pool(rendered));
    found.push(trouble("`row_moved`", "the row changed while it was called: read the contract again", contract));
    match &rendered.compiled.plan {
        Plan::Http(_) => found.extend(http(rendered)),
        Plan::Fn(plan) => found.push(function(rendered, plan)),
        Plan::Flow(_) => found.extend(flow()),
        Plan::Agent(_) => found.extend(agent()),
        Plan::Block => {}
    }
    found.push(trouble(
        "`ok:false`",
        "read the receipt, correct the one thing that failed, and send the call again as a repair",
        Move::Receipt.address(rendered.key()),
    ));
    found
}

fn gate(rendered: &Rendered<'_>) -> Option<Trouble> {
    let (key, definition) = (rendered.key(), rendered.definition());
    if may_invoke(rendered) {
        return waits_for_a_person(rendered).then(|| {
            trouble(
                "202 with `held`",
                "a person decides about the call: repeat it unchanged once it is approved",
                "GET /api/approvals",
            )
        });
    }
    Some(match rendered.caller {
        Caller::Anonymous => {
            trouble("`unauthorized`", "send a credential: `Authorization: Bearer <key>`", "POST /api/dispatch")
        }
        Caller::Holder(holder) => {
            let row = rendered.row;
            let refused = holder.chain.check_row(&definition.key, &row.contract_hash, row.risk, row.effect).err();
            let error = refused.map_or_else(|| "scope_mismatch".to_owned(), |fault| fault.error_text());
            trouble(format!("`{error}`"), "ask the one who issued the token for another", "GET /api/tokens/explain")
        }
        Caller::Owner | Caller::Principal(_) => trouble(
            format!("`forbidden`, needs `invoke:{key}`"),
            "ask the owner for the grant; do not look for another way",
            "POST /api/principals",
        ),
    })
}

fn pool(rendered: &Rendered<'_>) -> Option<Trouble> {
    let pool = rendered.definition().pool();
    (pool != DEFAULT_POOL).then(|| {
        trouble(
            format!("`no_executor_for_pool:{}`", clean(pool)),
            "no executor serves the row's pool now: an operator starts one with `--pools`",
            read_row(rendered),
        )
    })
}

fn http(rendered: &Rendered<'_>) -> Vec<Trouble> {
    let receipt = Move::Receipt.address(rendered.key());
    let row = read_row(rendered);
    let mut found = Vec::new();
    match &rendered.compiled.auth {
        Auth::None => found.push(trouble(
            "`ERR:http:401`, `ERR:http:403`",
            "the upstream wants a credential and the row names none: give the row an `auth`",
            row.clone(),
        )),
        auth @ (Auth::Bearer(_) | Auth::Basic { .. } | Auth::Headers(_) | Auth::Query { .. } | Auth::Oauth(_)) => {
            found.extend(credential(rendered, auth, &row));
        }
    }
    found.push(trouble(
        "`ERR:http:400`, `ERR:http:404`, `ERR:http:422`",
        "the upstream refuses these arguments: its answer is in the output; correct them and repair",
        receipt.clone(),
    ));
    found.push(trouble("`ERR:http:429`", "wait as long as `retry-after` in the receipt says", receipt.clone()));
    let failing = match rendered.row.effect {
        Effect::Read => "the upstream fails: the same call may succeed later",
        Effect::Write | Effect::Destructive => {
            "the upstream failed and may have acted: look there before you send it again, with an idempotency key"
        }
    };
    found.push(trouble("`ERR:http:5xx`", failing, receipt));
    found.push(trouble(
        "`ERR:http:fetch:<message>`",
        "no answer (name, address, TLS or time): check `target` and the allowed origins",
        row,
    ));
    found
}

fn credential(rendered: &Rendered<'_>, auth: &Auth, row: &str) -> Vec<Trouble> {
    let key = rendered.key();
    let names = match rendered.caller.may(May::Edit, Some(&rendered.definition().key)) {
        true => auth.secret_names().join(", "),
        false => "<NAME>".to_owned(),
    };
    vec![
        trouble(
            format!("`ERR:auth:missing_secret:{names}`"),
            "nothing was sent: an operator gives the executors a value under that name; the row stays as it is",
            row,
        ),
        trouble(
            "`ERR:http:401`, `ERR:http:403`",
            "the upstream refuses the executor's credential: an operator replaces the secret; the row stays as it is",
            row,
        ),
        trouble(
            format!("`ERR:breaker_open:{key}`"),
            "after 8 refusals in a row nothing is sent for an hour, or until the secret is replaced",
            row,
        ),
    ]
}

fn function(rendered: &Rendered<'_>, plan: &FnPlan) -> Trouble {
    match plan.function {
        Some(_) => trouble(
            "`ERR:fn:<code>:<message>`",
            "the function refuses these arguments: correct them and repair",
            Move::Receipt.address(rendered.key()),
        ),
        None => trouble(
            format!("`ERR:fn:unknown_target:{}`", clean(&plan.target)),
            "this build has no function of that name: correct `target`, or call an executor that has it",
            read_row(rendered),
        ),
    }
}

fn flow() -> [Trouble; 3] {
    let receipt = "GET /api/dispatch?receipt=<invocation_id>";
    [
        trouble(
            "`ERR:flow:<code>`, a step failed",
            "`error.where` names the step: read its own receipt and contract",
            receipt,
        ),
        trouble(
            "`ERR:flow:bad_step:<text>`",
            "a step has no row or no `KEY: arguments` form: correct the flow",
            receipt,
        ),
        trouble(
            "`runner_not_available:flow`",
            "the executor that answered runs no flows: call one that does",
            "POST /api/dispatch",
        ),
    ]
}

fn agent() -> [Trouble; 3] {
    let receipt = "GET /api/dispatch?receipt=<invocation_id>";
    [
        trouble("`ERR:agent:<code>`", "the model's provider failed or refused: the receipt says which", receipt),
        trouble(
            "the loop, depth or cost limit was reached",
            "ask for less in one call, or raise the row's limits",
            receipt,
        ),
        trouble(
            "`runner_not_available:agent`",
            "the executor that answered runs no agents: call one that does",
            "POST /api/dispatch",
        ),
    ]
}

fn read_row(rendered: &Rendered<'_>) -> String {
    format!("GET /api/directory/{}", rendered.key())
}
