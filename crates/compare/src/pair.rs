//! The disciplines of both directions of a link, and those that are compared by default.

use giveway_disciplines::{ALL, Spec};
use giveway_qdisc::{LinkContext, Rate, Streams};
use giveway_runner::RunnerError;
use giveway_workload::Direction;

/// The disciplines that are compared by default. The limit of the fifo is about a home router's.
const DEFAULT: [&str; 6] = ["fifo limit 100p", "fq_codel", "cake", "pie", "drr limit 100p", "efd limit 100p"];

/// The disciplines of a link, upstream and downstream.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// The discipline upstream, whose name the pair has in tables.
    pub up: Spec,
    /// The discipline downstream.
    pub down: Spec,
    /// True if a discipline that shapes by itself has no rate on purpose.
    pub is_unlimited: bool,
}

impl Pair {
    /// One discipline for both directions.
    pub fn same(spec: Spec) -> Pair {
        Pair { down: spec.clone(), up: spec, is_unlimited: false }
    }

    /// The discipline of a direction.
    pub fn at(&self, direction: Direction) -> &Spec {
        if direction == Direction::Up { &self.up } else { &self.down }
    }

    /// Both disciplines.
    pub fn iter(&self) -> impl Iterator<Item = &Spec> {
        [&self.up, &self.down].into_iter()
    }

    /// The spec that stands for the pair in tables and in the list of disciplines of the scenario.
    pub fn name(&self) -> String {
        self.up.to_string()
    }

    /// The discipline of a direction at a link of this rate. A discipline that shapes by itself gets the rate
    /// of the link, as `tc` sets it up: its parameters may follow from the rate (cake's target does).
    pub fn on(&self, direction: Direction, rate: Rate) -> String {
        let spec = self.at(direction);
        if !self.is_unlimited && needs_bandwidth(spec) {
            format!("{spec} bandwidth {rate}")
        } else {
            spec.to_string()
        }
    }
}

/// True if a discipline shapes by itself in Linux.
pub fn shapes(spec: &Spec) -> bool {
    spec.in_linux().is_some_and(|linux| linux.shapes)
}

/// True if a discipline shapes by itself, and its rate is still to be set.
pub fn needs_bandwidth(spec: &Spec) -> bool {
    let context = LinkContext::new(Rate::mbit(10), Streams::new(0));
    shapes(spec) && spec.properties(&context).work_conserving
}

/// Parses the specs of disciplines: for both directions, and one for each direction in turn. "all" stands for
/// every discipline that can be in front of a link, and empty lists for [`DEFAULT`]. Pairs of `up` and `down`
/// come first, so the first one is the baseline. Each pair appears once.
///
/// # Errors
/// [`RunnerError::Usage`] for the first invalid spec, a spec of one direction without one of the other, and
/// two pairs with the same discipline upstream.
pub fn pairs(both: &[String], up: &[String], down: &[String]) -> Result<Vec<Pair>, RunnerError> {
    let parsed = |flag: &str, text: &String| {
        text.parse::<Spec>().map_err(|error| RunnerError::Usage(format!("{flag} \"{text}\": {error}")))
    };
    if up.len() != down.len() {
        let (more, fewer) = if up.len() > down.len() {
            ("--qdisc-up", "--qdisc-down")
        } else {
            ("--qdisc-down", "--qdisc-up")
        };
        return Err(RunnerError::Usage(format!(
            "each {more} needs a {fewer}, the discipline of the other direction at the same time: add for example {fewer} \
             \"fifo limit 400p\""
        )));
    }
    let mut pairs: Vec<Pair> = Vec::new();
    for (up, down) in up.iter().zip(down) {
        let is_unlimited = says_unlimited(up) || says_unlimited(down);
        pairs.push(Pair { up: parsed("--qdisc-up", up)?, down: parsed("--qdisc-down", down)?, is_unlimited });
    }
    let both = match both {
        [] if pairs.is_empty() => DEFAULT.map(str::to_owned).to_vec(),
        // A pair alone is a baseline for the usual ones.
        [] if pairs.len() == 1 => DEFAULT[1..].iter().map(|text| (*text).to_owned()).collect(),
        some => some.to_vec(),
    };
    for text in &both {
        match text.as_str() {
            "all" => pairs.extend(all().map(Pair::same)),
            _ => {
                let same = Pair::same(parsed("--qdisc", text)?);
                pairs.push(Pair { is_unlimited: says_unlimited(text), ..same });
            }
        }
    }
    let mut seen: Vec<Pair> = Vec::new();
    pairs.retain(|pair| {
        let new = !seen.contains(pair);
        seen.push(pair.clone());
        new
    });
    for (at, pair) in pairs.iter().enumerate() {
        if let Some(other) = pairs[..at].iter().find(|other| other.name() == pair.name()) {
            return Err(RunnerError::Usage(format!(
                "\"{}\" is upstream of \"{}\" and of \"{}\", and a table has one row for each discipline upstream: compare them \
                 one after the other, or let another limit distinguish them",
                pair.name(),
                other.down,
                pair.down
            )));
        }
    }
    Ok(pairs)
}

/// True if a spec has the word of tc for a shaper without a rate, which is otherwise left out.
fn says_unlimited(spec: &str) -> bool {
    spec.split_whitespace().any(|word| word == "unlimited")
}

/// Every discipline that can be in front of a link without further parameters; the disciplines of [`DEFAULT`]
/// with their parameters. Shapers are left out, because they would be a second link.
fn all() -> impl Iterator<Item = Spec> {
    let tuned = |name: &str| {
        let mut known = DEFAULT.iter().map(|text| text.parse::<Spec>().expect("a default can be parsed"));
        known.find(|spec| spec.name() == name)
    };
    let context = LinkContext::new(Rate::mbit(10), Streams::new(0));
    ALL.iter().map(move |entry| tuned(entry.name).unwrap_or_else(|| entry.default())).filter(move |spec| {
        spec.build_numbered(&context).is_ok() && spec.properties(&context).work_conserving
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shaper_has_the_rate_of_its_link() {
        let on = |text: &str| {
            let pair = Pair::same(text.parse().unwrap());
            pair.on(Direction::Up, Rate::mbit(2))
        };
        assert_eq!(on("cake besteffort"), "cake besteffort bandwidth 2mbit");
        assert_eq!(on("cake bandwidth 1mbit"), "cake bandwidth 1mbit", "a written rate stays");
        assert_eq!(on("fq_codel"), "fq_codel");
        let unlimited = Pair { is_unlimited: true, ..Pair::same("cake unlimited".parse().unwrap()) };
        assert_eq!(unlimited.on(Direction::Up, Rate::mbit(2)), "cake");
    }
}
