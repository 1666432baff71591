//! The situation of a comparison: how far its capture can be trusted, and whether its link is the bottleneck.

use giveway_qdisc::Span;
use giveway_workload::Direction;

use super::mode::word;
use super::tables::{Tables, text};

/// From this share of missing data on, there is a warning.
const DOUBTFUL: f64 = 0.2;
/// From this share of missing data on, there are no findings.
const USELESS: f64 = 0.5;
/// Shorter waits of 99 in 100 packets are no queue, seconds: CoDel's target (RFC 8289, section 4.3), up to
/// which a queue is taken as a useful one.
pub(super) const SHORT: f64 = 0.005;

/// Facts about the capture and the link, next to the tables.
#[derive(Clone, Copy, Debug)]
pub struct Situation {
    /// The share of the played data that the capture does not hold, 0 to 1.
    pub missing: f64,
    /// The length of the measurement interval.
    pub measured: Span,
    /// The length of the stretches that each run draws from the capture; `None` if each run has all of it.
    pub resample: Option<Span>,
    /// The kind of line that the capture shows, as a word of tc-cake(8), and the reason for the guess.
    pub overhead: Option<(&'static str, &'static str)>,
}

/// Trust in the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Nearly all data are in the capture.
    Full,
    /// Much is missing.
    Doubtful,
    /// Most is missing: there are no findings.
    None,
}

impl Situation {
    /// Trust in the results, by the share of missing data.
    pub fn trust(&self) -> Trust {
        match self.missing {
            share if share > USELESS => Trust::None,
            share if share > DOUBTFUL => Trust::Doubtful,
            _ => Trust::Full,
        }
    }

    /// The warning about missing data.
    pub fn doubt(&self) -> Option<String> {
        let missing =
            format!("{:.0} % of the data that were played are not in the capture", 100.0 * self.missing);
        let remedy = "Capture again without losses: tcpdump -s 96 -B 65536 needs less of the disk, and has a larger buffer";
        match self.trust() {
            Trust::Full => None,
            Trust::Doubtful => Some(format!(
                "WARNING: {missing}; their sizes are known from acknowledgements, their times are not. {remedy}."
            )),
            Trust::None => Some(format!("No findings: {missing}. {remedy}.")),
        }
    }

    /// True for each direction in which packets wait with the baseline, upstream first.
    pub(super) fn queues(&self, tables: &Tables) -> [bool; 2] {
        let wait = |direction| tables.baseline(direction).mean(SOJOURN);
        [Direction::Up, Direction::Down].map(|direction| wait(direction).is_some_and(|wait| wait >= SHORT))
    }

    /// True if packets hardly wait with the baseline, in any direction.
    pub(super) fn is_idle(&self, tables: &Tables) -> bool {
        self.queues(tables) == [false, false]
    }

    /// The load of the link, which often explains that there is no difference.
    pub(super) fn load(&self, tables: &Tables) -> String {
        let Some((wait, direction)) = longest_wait(tables) else {
            return "No metric could be compared.".to_owned();
        };
        let used = tables.baseline(direction).mean("utilization");
        let used = used.map_or(String::new(), |used| {
            let (share, measured) = (100.0 * used, self.measured.as_s());
            format!("; the link sends for {share:.0} % of the {measured:.1} s that are measured")
        });
        let wait = text(SOJOURN, wait);
        let way = word(direction);
        if self.is_idle(tables) {
            return format!(
                "Queues hardly form: 99 of 100 packets wait for at most {wait} ({way}){used}. So no discipline makes a \
                 difference."
            );
        }
        format!("In the busier direction ({way}) 1 of 100 packets waits for more than {wait}{used}.")
    }
}

/// The metric of the load: the 99th percentile of the sojourn times.
const SOJOURN: &str = "sojourn_p99_s";

/// The longer 99th percentile of the sojourn times with the baseline, and its direction.
fn longest_wait(tables: &Tables) -> Option<(f64, Direction)> {
    let wait = |direction: Direction| Some((tables.baseline(direction).mean(SOJOURN)?, direction));
    [Direction::Up, Direction::Down].into_iter().filter_map(wait).max_by(|a, b| a.0.total_cmp(&b.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_data_are_reported_in_steps() {
        let at = |missing| Situation { missing, measured: Span::s(40), resample: None, overhead: None };
        assert_eq!(at(0.2).doubt(), None);
        assert!(at(0.21).doubt().is_some_and(|text| text.starts_with("WARNING: 21 % of the data")));
        assert_eq!(at(0.5).trust(), Trust::Doubtful);
        assert!(at(0.51).doubt().is_some_and(|text| text.starts_with("No findings: 51 %")));
    }
}
