//! Functions of the time and of chance.

use callbook_domain::arguments::Argument;
use callbook_domain::invocation::uuid_at;
use callbook_domain::outcome::{Failure, Output};
use jiff::tz::TimeZone;
use serde_json::json;

use super::{Given, refused, text_of};
use crate::App;

/// The time in the zone of the setting, or in the IANA zone that is named.
pub(super) fn now(app: &App, arguments: &[Argument]) -> Given {
    let zone = match text_of(arguments, 0).trim() {
        "" => app.config.timezone.clone(),
        name => TimeZone::get(name).map_err(|_| refused("the time zone is not known: name one as `Europe/Vienna`"))?,
    };
    let micros = i64::try_from(app.clock.now().unix_timestamp_nanos() / 1_000).unwrap_or(0);
    let at = jiff::Timestamp::from_microsecond(micros).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let name = zone.iana_name().unwrap_or("UTC").to_owned();
    let zoned = at.to_zoned(zone);
    let value = json!({
        "now": zoned.strftime("%Y-%m-%d %H:%M:%S").to_string(),
        "today": zoned.strftime("%Y-%m-%d").to_string(),
        "time": zoned.strftime("%H:%M:%S").to_string(),
        "zone": name,
        "iso": zoned.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
    });
    Ok(Output::json(value.to_string()))
}

/// A random UUID, or with `v7` one that sorts by time.
pub(super) fn uuid(app: &App, arguments: &[Argument]) -> Given {
    let id = match text_of(arguments, 0).trim() {
        "" | "v4" | "4" => {
            let mut bytes = [0; 16];
            getrandom::fill(&mut bytes).map_err(no_chance)?;
            uuid::Builder::from_random_bytes(bytes).into_uuid()
        }
        "v7" | "7" => uuid_at(app.clock.now()),
        _ => return Err(refused("the version of a UUID is `v4` or `v7`")),
    };
    Ok(Output::text(id.to_string()))
}

/// A number from 0 up to 1, or a whole number between two, both included.
pub(super) fn random(arguments: &[Argument]) -> Given {
    let text = match arguments {
        [] => fraction(chance()?),
        [low, high] => between(whole(low)?, whole(high)?)?.to_string(),
        _ => return Err(refused("`random` takes no argument, or the lowest and the highest whole number")),
    };
    Ok(Output::json(text))
}

fn chance() -> Result<u64, Failure> {
    getrandom::u64().map_err(no_chance)
}

fn no_chance(_: getrandom::Error) -> Failure {
    Failure::new("internal", "the system gives no randomness")
}

/// The 53 bits that a double keeps.
#[expect(clippy::cast_precision_loss, reason = "53 bits fit a double")]
fn fraction(random: u64) -> String {
    ((random >> 11) as f64 / (1u64 << 53) as f64).to_string()
}

fn whole(argument: &Argument) -> Result<i64, Failure> {
    argument.as_text().trim().parse().map_err(|_| refused("`random` takes whole numbers of at most 64 bits"))
}

/// Every number equally often: draws beyond the last whole multiple of the span are drawn again.
fn between(low: i64, high: i64) -> Result<i64, Failure> {
    if low > high {
        return Err(refused("the lowest number is larger than the highest"));
    }
    let span = high.abs_diff(low);
    let Some(count) = span.checked_add(1) else { return Ok(chance()?.cast_signed()) };
    let fair = u64::MAX - u64::MAX % count;
    loop {
        let drawn = chance()?;
        if drawn < fair {
            return Ok(low.wrapping_add_unsigned(drawn % count));
        }
    }
}

/// Nothing.
pub(super) fn noop(_: &[Argument]) -> Given {
    Ok(Output::empty())
}

/// Its arguments, joined by `|`; a JSON argument that stands alone as it is.
pub(super) fn echo(arguments: &[Argument]) -> Given {
    Ok(match arguments {
        [one] if !one.is_string() => Output::json(one.as_text()),
        several => Output::text(several.iter().map(Argument::as_text).collect::<Vec<_>>().join("|")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(texts: &[&str]) -> Vec<Argument> {
        texts.iter().map(|text| Argument::untyped(*text)).collect()
    }

    #[test]
    fn a_random_number_stays_within_its_bounds() {
        for _ in 0..200 {
            let drawn: i64 = random(&arguments(&["-2", " 2"])).unwrap().as_text().unwrap().parse().unwrap();
            assert!((-2..=2).contains(&drawn));
        }
        let (least, most) = (i64::MIN.to_string(), i64::MAX.to_string());
        assert!(random(&arguments(&[&least, &most])).is_ok());
        assert_eq!(random(&arguments(&["7", "7"])).unwrap(), Output::json("7"));
        assert_eq!(fraction(0), "0");
        assert_eq!(fraction(u64::MAX), "0.9999999999999999");
        for bad in [&["2", "1"][..], &["1"], &["1.5", "2"], &["", "1"]] {
            assert_eq!(random(&arguments(bad)).unwrap_err().code, "fn:arguments", "{bad:?}");
        }
    }

    #[test]
    fn an_echo_keeps_text_as_text_and_json_as_json() {
        assert_eq!(echo(&[]).unwrap(), Output::text(""));
        assert_eq!(echo(&arguments(&["a", "{}"])).unwrap(), Output::text("a|{}"));
        assert_eq!(echo(&[Argument::json(" [1e400, -0]").unwrap()]).unwrap(), Output::json(" [1e400, -0]"));
        assert_eq!(echo(&[Argument::json("\"a\"").unwrap()]).unwrap(), Output::text("a"));
    }
}
