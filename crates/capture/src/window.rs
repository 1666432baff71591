//! A part of a capture by time: `--from` and `--until`.

use std::str::FromStr;

/// A moment of a capture, as a user writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Nanoseconds after the first packet: `90s`, `10m`.
    After(u64),
    /// Nanoseconds after midnight of the first packet's day, UTC: `20:15` or `20:15:30`.
    Clock(u64),
    /// Nanoseconds since 1970: RFC 3339, as in `2026-11-26T20:15:00Z`.
    At(u64),
}

/// A text is not a moment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{0}\" is not a time: write 90s or 10m after the first packet, 20:15 or 20:15:30 of its day in UTC, or \
     2026-11-26T20:15:00Z"
)]
pub struct NoMoment(String);

/// Nanoseconds of a second.
const S: u64 = 1_000_000_000;
/// Nanoseconds of a day.
const DAY: u64 = 86_400 * S;

impl FromStr for Moment {
    type Err = NoMoment;

    fn from_str(text: &str) -> Result<Moment, NoMoment> {
        let moment = if text.contains(['T', 't']) || text.get(10..11) == Some(" ") {
            absolute(text).map(Moment::At)
        } else if text.contains(':') {
            clock(text).filter(|time| *time < DAY).map(Moment::Clock)
        } else {
            after(text).map(Moment::After)
        };
        moment.ok_or_else(|| NoMoment(text.to_owned()))
    }
}

impl Moment {
    /// Nanoseconds since 1970, for a capture whose first packet has this time.
    pub fn resolve(self, first: u64) -> u64 {
        match self {
            Moment::After(time) => first.saturating_add(time),
            Moment::Clock(time) => (first - first % DAY).saturating_add(time),
            Moment::At(time) => time,
        }
    }
}

/// `90s`, `1.5h`.
fn after(text: &str) -> Option<u64> {
    let split = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(split);
    let unit = match unit {
        "ms" => S / 1000,
        "s" => S,
        "m" | "min" => 60 * S,
        "h" => 3600 * S,
        "d" => DAY,
        _ => return None,
    };
    let (whole, part) = decimal(number)?;
    Some(
        whole.checked_mul(unit)?.saturating_add((u128::from(part) * u128::from(unit) / u128::from(S)) as u64),
    )
}

/// `HH:MM`, `HH:MM:SS` or `HH:MM:SS.fraction`, as nanoseconds.
fn clock(text: &str) -> Option<u64> {
    let mut parts = text.split(':');
    let (hours, minutes) = (two(parts.next()?)?, two(parts.next()?)?);
    let (seconds, part) = parts.next().map_or(Some((0, 0)), decimal)?;
    let is_valid = parts.next().is_none() && hours < 25 && minutes < 60 && seconds < 61;
    is_valid.then_some((hours * 3600 + minutes * 60 + seconds) * S + part)
}

/// RFC 3339 section 5.6, with a space or a T between date and time.
fn absolute(text: &str) -> Option<u64> {
    let (date, rest) = (text.get(..10)?, text.get(11..)?);
    let mut parts = date.split('-');
    let year: i64 = parts.next().filter(|year| year.len() == 4)?.parse().ok()?;
    let (month, day) = (two(parts.next()?)?, two(parts.next()?)?);
    if !(1970..2500).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let (time, offset) = match rest.find(['Z', 'z', '+', '-']) {
        Some(at) => (&rest[..at], &rest[at..]),
        None => return None,
    };
    let east = match offset.split_at(1) {
        ("Z" | "z", "") => 0,
        (sign, offset) if sign == "+" || sign == "-" => {
            let seconds = (clock(offset)? / S) as i64;
            if sign == "+" { seconds } else { -seconds }
        }
        _ => return None,
    };
    let nanos = clock(time)?;
    let seconds = days(year, month as i64, day as i64) * 86_400 - east;
    u64::try_from(seconds).ok()?.checked_mul(S)?.checked_add(nanos)
}

/// Days from 1970-01-01 to a date of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March, so that the leap day is the last one.
    let year = if month > 2 { year } else { year - 1 };
    let month = (month + 9) % 12;
    year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1 - 719_468
}

/// A time as RFC 3339 in UTC, to the second.
pub fn utc(time: u64) -> String {
    let seconds = time / S;
    let (days, second) = ((seconds / 86_400) as i64 + 719_468, seconds % 86_400);
    // The inverse of `days`: 400 years have 146,097 days.
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let (year, month) = if month < 10 { (year, month + 3) } else { (year + 1, month - 9) };
    let year = year + era * 400;
    let (hours, minutes) = (second / 3600, second / 60 % 60);
    format!("{year:04}-{month:02}-{date:02}T{hours:02}:{minutes:02}:{:02}Z", second % 60)
}

/// Two digits.
fn two(text: &str) -> Option<u64> {
    (text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

/// The whole part of a decimal number, and billionths.
fn decimal(text: &str) -> Option<(u64, u64)> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(part) || whole.is_empty() || part.len() > 9 {
        return None;
    }
    let part: u64 = format!("{part:0<9}").parse().ok()?;
    Some((whole.parse().ok()?, part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_relative_of_the_day_or_absolute() {
        // 2026-11-26 12:00:00 UTC.
        let first = 1_795_694_400 * S;
        assert_eq!(utc(first), "2026-11-26T12:00:00Z");
        for (text, wanted) in [
            ("90s", "2026-11-26T12:01:30Z"),
            ("10m", "2026-11-26T12:10:00Z"),
            ("1.5h", "2026-11-26T13:30:00Z"),
            ("2d", "2026-11-28T12:00:00Z"),
            ("20:15", "2026-11-26T20:15:00Z"),
            ("00:00:59", "2026-11-26T00:00:59Z"),
            ("2026-11-26T12:00:01Z", "2026-11-26T12:00:01Z"),
            ("2026-11-26 12:00:01Z", "2026-11-26T12:00:01Z"),
            ("2024-02-29T01:30:00.25+02:00", "2024-02-28T23:30:00Z"),
            ("2023-12-31T23:00:00-05:00", "2024-01-01T04:00:00Z"),
        ] {
            let moment: Moment = text.parse().unwrap();
            assert_eq!(utc(moment.resolve(first)), wanted, "{text}");
        }
        assert_eq!("2026-11-26T00:00:00.5Z".parse::<Moment>().unwrap().resolve(0) % S, S / 2);
        assert_eq!("1.5ms".parse(), Ok(Moment::After(1_500_000)));
    }

    #[test]
    fn other_texts_are_refused_with_examples() {
        for text in [
            "",
            "90",
            "s",
            "-5s",
            "5 s",
            "1.s.",
            "5y",
            "25:00",
            "24:00",
            "12",
            "12:60",
            "12:3",
            "2026-11-26",
            "2026-13-01T00:00:00Z",
            "2026-11-26T12:00:00",
            "2026-11-26T12:00Zx",
            "99999999999999999999s",
            "é:10",
        ] {
            let error = text.parse::<Moment>().unwrap_err().to_string();
            assert!(error.contains("is not a time: write 90s or 10m"), "{text}: {error}");
        }
    }

    /// Every day from 1970 to 2200, against a count of days.
    #[test]
    fn dates_and_days_agree() {
        for day in 0..84_000_u64 {
            let text = utc(day * DAY + 3_661 * S);
            assert_eq!(text.parse::<Moment>(), Ok(Moment::At(day * DAY + 3_661 * S)), "{text}");
        }
        assert_eq!(utc(951_782_400 * S), "2000-02-29T00:00:00Z");
    }
}
