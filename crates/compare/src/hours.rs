//! Busy and idle hours of a long capture.
//!
//! A discipline that helps in the evening may make no difference at night, and the mean of both is neither.
//! So a capture of at least [`FEWEST`] hours is compared in two parts. An hour is busy if it has at least
//! half of the bytes of the busiest hour.

/// Shorter captures are compared as a whole: hours.
const FEWEST: usize = 6;
/// The share of the busiest hour's bytes that a busy hour has.
const BUSY: f64 = 0.5;
/// The length of an hour, ns.
pub const HOUR: u64 = 3_600_000_000_000;

/// Some hours of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hours {
    /// The name in file names: "busy" or "idle".
    pub name: &'static str,
    /// The name in sentences, with the hours.
    pub words: String,
    /// The numbers of the hours since the first packet.
    pub numbers: Vec<usize>,
}

/// The busy and the idle hours of a capture, from its bytes in each hour; `None` if it is too short, or all
/// hours are alike. `begin` is the time of the first packet, ns since 1970, if the clock of the capture is
/// known.
pub fn busy_and_idle(bytes: &[u64], begin: Option<u64>) -> Option<[Hours; 2]> {
    let most = bytes.iter().copied().max()?;
    if bytes.len() < FEWEST || most == 0 {
        return None;
    }
    let is_busy = |at: &usize| bytes[*at] as f64 >= BUSY * most as f64;
    let (busy, idle): (Vec<usize>, Vec<usize>) = (0..bytes.len()).partition(is_busy);
    if idle.is_empty() {
        return None;
    }
    let hours = |name: &'static str, numbers: Vec<usize>| {
        let words = format!("{name} hours ({})", ranges(&numbers, begin));
        Hours { name, words, numbers }
    };
    Some([hours("busy", busy), hours("idle", idle)])
}

/// Hours as ranges: of the clock in UTC, or since the first packet.
fn ranges(numbers: &[usize], begin: Option<u64>) -> String {
    let clock = |hour: usize| match begin {
        None => format!("{hour} h"),
        Some(begin) => {
            let minutes = (begin / 60_000_000_000 + hour as u64 * 60) % (24 * 60);
            format!("{:02}:{:02}", minutes / 60, minutes % 60)
        }
    };
    let range = |run: &[usize]| format!("{} to {}", clock(run[0]), clock(run[run.len() - 1] + 1));
    let runs: Vec<String> = numbers.chunk_by(|a, b| a + 1 == *b).map(range).collect();
    const MAX: usize = 4;
    let shown = runs.iter().take(MAX).cloned().collect::<Vec<_>>().join(", ");
    let rest = if runs.len() > MAX { format!(" and {} more", runs.len() - MAX) } else { String::new() };
    let zone = if begin.is_some() { " UTC" } else { " after the first packet" };
    format!("{shown}{rest}{zone}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Eight hours from 17:30 on, of which three in the evening are busy.
    #[test]
    fn busy_hours_have_half_of_the_busiest() {
        let bytes = [10, 20, 90, 100, 50, 49, 1, 0];
        let begin = (17 * 60 + 30) * 60_000_000_000;
        let [busy, idle] = busy_and_idle(&bytes, Some(begin)).unwrap();
        assert_eq!((busy.numbers, busy.words.as_str()), (vec![2, 3, 4], "busy hours (19:30 to 22:30 UTC)"));
        assert_eq!(idle.words, "idle hours (17:30 to 19:30, 22:30 to 01:30 UTC)");
        let [busy, _] = busy_and_idle(&bytes, None).unwrap();
        assert_eq!(busy.words, "busy hours (2 h to 5 h after the first packet)");
    }

    #[test]
    fn a_short_or_steady_capture_is_whole() {
        assert_eq!(busy_and_idle(&[1, 100, 1, 1, 1], None), None);
        assert_eq!(busy_and_idle(&[9; 24], None), None);
        assert_eq!(busy_and_idle(&[], None), None);
    }
}
