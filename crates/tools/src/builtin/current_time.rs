//! `current_time`: what a model cannot know by itself.

use duologue_core::{Effect, Reach, Tool, ToolError, tool};
use jiff::{Timestamp, Zoned, tz::TimeZone};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::suggest::nearest;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// An IANA time zone such as `Europe/Berlin` or `UTC`. The machine's own if left out.
    #[serde(default)]
    zone: Option<String>,
}

/// Tells date, time, weekday and zone.
pub(crate) fn current_time() -> impl Tool {
    tool(
        "current_time",
        "Tells the current date, time and weekday, here or in a given time zone.",
        Effect::Pure,
        |arguments: Arguments, _| async move {
            let zone = match arguments.zone.as_deref() {
                None => TimeZone::system(),
                Some(name) => zone_of(name)?,
            };
            Ok(describe(&Timestamp::now().to_zoned(zone)))
        },
    )
    .reach(Reach::Workspace)
}

fn zone_of(name: &str) -> Result<TimeZone, ToolError> {
    TimeZone::get(name).map_err(|_| {
        let known: Vec<String> = jiff::tz::db().available().map(|zone| zone.to_string()).collect();
        let cities = known.iter().filter_map(|zone| Some((zone.rsplit_once('/')?.1, zone)));
        // A model that writes `Berlin` means `Europe/Berlin`.
        let meant = cities
            .clone()
            .find(|(city, _)| city.eq_ignore_ascii_case(&name.trim().replace(' ', "_")))
            .map(|(_, zone)| zone.as_str())
            .or_else(|| nearest(name, known.iter().map(String::as_str)));
        let hint = match meant {
            Some(zone) => format!("did you mean \"{zone}\"?"),
            None => "write it as Area/City, such as \"Europe/Berlin\", or \"UTC\"".to_owned(),
        };
        let shown: String = name.chars().take(60).collect();
        ToolError(format!("unknown time zone \"{shown}\": {hint}"))
    })
}

fn describe(now: &Zoned) -> String {
    let zone = now.time_zone().iana_name().unwrap_or("local time");
    format!(
        "{} ({zone}), {} seconds since 1970",
        now.strftime("%A, %Y-%m-%d %H:%M:%S %:z"),
        now.timestamp().as_second(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_told_with_weekday_offset_and_zone() {
        let instant = Timestamp::from_second(1_793_545_202).unwrap();
        let at = |zone: &str| describe(&instant.to_zoned(zone_of(zone).unwrap()));
        assert_eq!(
            at("Europe/Berlin"),
            "Sunday, 2026-11-01 16:00:02 +01:00 (Europe/Berlin), 1793545202 seconds since 1970"
        );
        assert_eq!(
            at("UTC"),
            "Sunday, 2026-11-01 15:00:02 +00:00 (UTC), 1793545202 seconds since 1970"
        );
    }

    #[test]
    fn an_unknown_zone_is_answered_with_the_one_that_was_meant() {
        for (written, meant) in [
            ("Berlin", "Europe/Berlin"),
            ("new york", "America/New_York"),
            ("Europe/Berlni", "Europe/Berlin"),
        ] {
            assert_eq!(
                zone_of(written).unwrap_err().0,
                format!("unknown time zone \"{written}\": did you mean \"{meant}\"?")
            );
        }
        let nonsense = "x".repeat(10_000);
        assert!(zone_of(&nonsense).unwrap_err().0.len() < 300);
        assert!(zone_of("../../etc/passwd").is_err());
    }
}
