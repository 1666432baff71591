//! Options of `cargo xtask fuzz`.

use std::time::Duration;

const HELP: &str = "cargo xtask fuzz [10m] [--runs N] [--only NAME]... [--jobs N]";

/// Time, targets and processes of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Limit of the time of each target.
    pub time: Option<Duration>,
    /// Limit of the inputs of each target.
    pub inputs: Option<u64>,
    /// Number of parallel processes.
    pub jobs: usize,
    only: Vec<String>,
}

/// Time of each target without options.
const USUAL: Duration = Duration::from_secs(600);

impl Options {
    /// Parses the arguments of `cargo xtask fuzz`.
    ///
    /// # Errors
    /// If an argument is unknown or has no valid value.
    pub fn parse(words: &[&str]) -> Result<Options, String> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut options = Options { time: None, inputs: None, jobs: cores, only: Vec::new() };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().copied().ok_or_else(|| format!("{word} needs a value: {HELP}"));
            match *word {
                "--runs" => options.inputs = Some(number(value()?)?.max(1)),
                "--jobs" => options.jobs = usize::try_from(number(value()?)?).unwrap_or(cores).max(1),
                "--only" => options.only.push(value()?.to_owned()),
                time => options.time = Some(duration(time)?),
            }
        }
        if options.time.is_none() && options.inputs.is_none() {
            options.time = Some(USUAL);
        }
        Ok(options)
    }

    /// The selected targets; all of them without `--only`.
    ///
    /// # Errors
    /// If a selected target does not exist.
    pub fn choose(&self, all: &[String]) -> Result<Vec<String>, String> {
        match self.only.iter().find(|name| !all.contains(name)) {
            Some(name) => Err(format!("unknown target {name}: write one of {}", all.join(", "))),
            None if self.only.is_empty() => Ok(all.to_vec()),
            None => Ok(self.only.clone()),
        }
    }

    /// The limits of a target in words.
    pub fn bounds_in_words(&self) -> String {
        let time = self.time.map(|time| format!("{} s", time.as_secs()));
        let inputs = self.inputs.map(|inputs| format!("{inputs} inputs"));
        [time, inputs].into_iter().flatten().collect::<Vec<_>>().join(" or ")
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.replace('_', "").parse().map_err(|_| format!("{text} is not a number: {HELP}"))
}

/// Parses a duration such as `90s`, `10m` or `2h`.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text} is not a time such as 90s, 10m or 2h: {HELP}");
    let unit = text.chars().last().ok_or_else(wrong)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        _ => return Err(wrong()),
    };
    let count: u64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    let whole = count.checked_mul(seconds).filter(|seconds| *seconds > 0).ok_or_else(wrong)?;
    Ok(Duration::from_secs(whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_parsed() {
        let options = Options::parse(&["2m", "--only", "spec", "--jobs", "3"]).unwrap();
        assert_eq!((options.time, options.inputs, options.jobs), (Some(Duration::from_secs(120)), None, 3));
        let all = ["label".to_owned(), "spec".to_owned()];
        assert_eq!(options.choose(&all), Ok(vec!["spec".to_owned()]));
        assert!(options.choose(&all[..1]).unwrap_err().contains("unknown target spec: write one of label"));
        let many = Options::parse(&["--runs", "10_000_000"]).unwrap();
        assert_eq!((many.time, many.inputs), (None, Some(10_000_000)));
        let either = Options::parse(&["5m", "--runs", "100"]).unwrap();
        assert_eq!(either.bounds_in_words(), "300 s or 100 inputs");
        assert_eq!(Options::parse(&[]).unwrap().time, Some(Duration::from_secs(600)));
        for wrong in [&["10"][..], &["0s"], &["--runs"], &["--runs", "many"], &["5é"]] {
            assert!(Options::parse(wrong).unwrap_err().contains(HELP), "{wrong:?}");
        }
    }
}
