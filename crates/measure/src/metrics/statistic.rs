//! The statistics in the names of metrics.

/// A statistic of many values, as a word in the name of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// The number of events.
    Count,
    /// `mean`; `weighted` for a mean with weights.
    Mean,
    /// `max`; `longest` for a length.
    Max,
    /// `ci`: half of the 95 % interval of the mean.
    Interval,
    /// The quantile of this share of the values, in per mille: 990 for `p99`, 999 for `p999`.
    Quantile(u32),
}

impl Statistic {
    /// The statistic of a word; `None` for any other word.
    pub(super) fn of_word(word: &str) -> Option<Statistic> {
        match word {
            "mean" | "weighted" => Some(Statistic::Mean),
            "max" | "longest" => Some(Statistic::Max),
            "ci" => Some(Statistic::Interval),
            _ => {
                let digits = word.strip_prefix('p').filter(|digits| (2..=3).contains(&digits.len()))?;
                let number: u32 = digits.parse().ok()?;
                Some(Statistic::Quantile(if digits.len() == 2 { 10 * number } else { number }))
            }
        }
    }

    /// The statistic in the name of a metric; `None` if it has none.
    pub(super) fn in_name(name: &str) -> Option<Statistic> {
        name.split('_').find_map(Statistic::of_word)
    }

    /// The statistic without its noun: "99th percentile".
    pub fn name(self) -> String {
        match self {
            Statistic::Count => "number".to_owned(),
            Statistic::Mean => "mean".to_owned(),
            Statistic::Max => "maximum".to_owned(),
            Statistic::Interval => "half of the 95 % interval".to_owned(),
            Statistic::Quantile(500) => "median".to_owned(),
            Statistic::Quantile(per_mille) => {
                let (whole, tenth) = (per_mille / 10, per_mille % 10);
                let ending = match (tenth, whole % 10, whole / 10) {
                    (0, 1..=3, 1) => "th",
                    (0, 1, _) => "st",
                    (0, 2, _) => "nd",
                    (0, 3, _) => "rd",
                    _ => "th",
                };
                let tenth = if tenth == 0 { String::new() } else { format!(".{tenth}") };
                format!("{whole}{tenth}{ending} percentile")
            }
        }
    }

    /// The heading of a column with this statistic: "p99".
    pub(super) fn short(self) -> String {
        match self {
            Statistic::Count => "n".to_owned(),
            Statistic::Max => "max".to_owned(),
            Statistic::Interval => "ci".to_owned(),
            Statistic::Quantile(per_mille) if per_mille % 10 == 0 => format!("p{:02}", per_mille / 10),
            Statistic::Quantile(per_mille) => format!("p{per_mille:03}"),
            Statistic::Mean => "mean".to_owned(),
        }
    }

    /// The statistic of a noun: "99th percentile of the page load times". Only times have a plural there.
    pub(super) fn of(self, noun: &str) -> String {
        let name = self.name();
        match self {
            Statistic::Count => format!("{name} of {noun}"),
            Statistic::Mean | Statistic::Max | Statistic::Quantile(500) => format!("{name} {noun}"),
            Statistic::Interval => format!("{name} of the mean {noun}"),
            Statistic::Quantile(_) => format!("{name} of the {}", noun.replacen("time", "times", 1)),
        }
    }
}
