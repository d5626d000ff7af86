//! Functions of their arguments and the time alone.

use callbook_domain::arguments::Argument;
use callbook_domain::outcome::{Outcome, Output};
use serde_json::json;

use crate::App;

/// Runs a pure function; none where the name is not one.
pub fn run(app: &App, name: &str, arguments: &[Argument]) -> Option<Outcome> {
    let output = match name {
        "now" => now(app),
        "echo" => Output::text(arguments.iter().map(Argument::as_text).collect::<Vec<_>>().join("|")),
        "noop" => Output::empty(),
        _ => return None,
    };
    Some(Outcome::Ok(output, None))
}

fn now(app: &App) -> Output {
    let micros = i64::try_from(app.clock.now().unix_timestamp_nanos() / 1_000).unwrap_or(0);
    let at = jiff::Timestamp::from_microsecond(micros).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let zoned = at.to_zoned(app.config.timezone.clone());
    let zone = app.config.timezone.iana_name().unwrap_or("UTC").to_owned();
    let value = json!({
        "now": zoned.strftime("%Y-%m-%d %H:%M:%S").to_string(),
        "today": zoned.strftime("%Y-%m-%d").to_string(),
        "time": zoned.strftime("%H:%M:%S").to_string(),
        "zone": zone,
        "iso": zoned.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
    });
    Output::json(value.to_string())
}
