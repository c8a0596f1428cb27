//! Dates and times, read leniently and held as Python's `str` shows them.

use crate::Value;

/// A date as `2025-02-25`.
pub(super) fn read_date(input: &Value) -> Option<Value> {
    let text = input.as_str()?.trim();
    let date = match text.split_once(['T', ' ']) {
        Some((date, time)) if time.bytes().all(|digit| matches!(digit, b'0' | b':' | b'.')) => date,
        Some(_) => return None,
        None => text,
    };
    is_date(date).then(|| date.into())
}

/// A date with a time as `2025-01-15 10:30:00`, with what the input says beyond seconds.
pub(super) fn read_datetime(input: &Value) -> Option<Value> {
    let text = input.as_str()?.trim();
    let Some((date, time)) = text.split_once(['T', 't', ' ', '_']) else {
        return is_date(text).then(|| format!("{text} 00:00:00").into());
    };
    if !is_date(date) {
        return None;
    }
    let offset_at = time.find(['Z', 'z', '+', '-']).unwrap_or(time.len());
    let (clock, offset) = time.split_at_checked(offset_at)?;
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let mut parts = clock.split(':').map(|part| (part.len() == 2).then(|| part.parse::<u8>().ok()));
    let (hour, minute) = (parts.next()??.filter(|h| *h < 24)?, parts.next()??.filter(|m| *m < 60)?);
    let second = match parts.next() {
        Some(second) => second?.filter(|s| *s < 60)?,
        None => 0,
    };
    if parts.next().is_some() || !fraction.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let micros = format!("{fraction:0<6}");
    let micros = micros.get(..6)?;
    let fraction = if micros == "000000" { String::new() } else { format!(".{micros}") };
    let offset = match offset {
        "" => "",
        "Z" | "z" => "+00:00",
        other => other,
    };
    Some(format!("{date} {hour:02}:{minute:02}:{second:02}{fraction}{offset}").into())
}

fn is_date(text: &str) -> bool {
    let mut parts = text.split('-');
    let (Some(year), Some(month), Some(day), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    if (year.len(), month.len(), day.len()) != (4, 2, 2) {
        return false;
    }
    let (Ok(year), Ok(month), Ok(day)) =
        (year.parse::<u32>(), month.parse::<u32>(), day.parse::<u32>())
    else {
        return false;
    };
    (1..=12).contains(&month) && day >= 1 && day <= days_in(year, month)
}

fn days_in(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => {
            29
        }
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_held_as_python_shows_them() {
        for (text, shown) in [
            ("2025-01-15T10:30:00", Some("2025-01-15 10:30:00")),
            ("2025-01-15 10:30", Some("2025-01-15 10:30:00")),
            ("2025-01-15T10:30:00.5Z", Some("2025-01-15 10:30:00.500000+00:00")),
            ("2024-02-29", Some("2024-02-29 00:00:00")),
            ("2025-02-29", None),
            ("2025-01-15T25:00:00", None),
            ("soon", None),
        ] {
            assert_eq!(read_datetime(&text.into()), shown.map(Value::from), "{text}");
        }
        assert_eq!(read_date(&"2025-02-25T00:00:00".into()), Some("2025-02-25".into()));
    }
}
