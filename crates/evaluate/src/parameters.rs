//! The numeric parameters of a discipline that a card varies.
//!
//! They come from the registry of disciplines: times, sizes, counts and shares with a value. A parameter that
//! is not given has its default, or the value that follows from other parameters. What is not varied:
//!
//! - switches, choices, lists and records;
//! - a parameter that is off unless it is given, as `ce_threshold` of CoDel;
//! - rates without a default, and `mpu`, `mtu` and `overhead`: they describe the link or its users;
//! - a value of zero, which no factor changes.

use giveway_disciplines::Spec;
use giveway_qdisc::{LinkContext, Rate, Streams};
use giveway_spec::{Number, SpecType};

use crate::cells::Cell;
use crate::run::{Timing, prepare};

/// Parameters that describe the link.
const OF_LINKS: [&str; 3] = ["mpu", "mtu", "overhead"];

/// The rate of a link for values that do not depend on it.
const ANY: Rate = Rate::mbit(10);

/// A discipline and its parameters that can be varied.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    /// The discipline.
    pub spec: Spec,
    /// The parameters, with their values in the discipline.
    pub numbers: Vec<Number>,
}

impl Variable {
    /// The parameters of a discipline; `None` if the text is none, which an earlier check excludes.
    pub fn of(text: &str) -> Option<Variable> {
        let spec: Spec = text.parse().ok()?;
        let given = Spec::catalogue().numbers(&spec);
        let filled = Spec::catalogue().numbers(&spec.filled(&LinkContext::new(ANY, Streams::new(1))));
        let varied = |number: &Number| {
            let last = number.name.rsplit('.').next().unwrap_or_default();
            let of_link = OF_LINKS.contains(&last) || (number.is_rate() && !number.has_default);
            number.value != 0.0 && !of_link
        };
        // A value that is given keeps its text.
        let original =
            |number: Number| given.iter().find(|one| one.name == number.name).cloned().unwrap_or(number);
        Some(Variable { numbers: filled.into_iter().map(original).filter(varied).collect(), spec })
    }

    /// The discipline with these parameters multiplied, each by its factor. `None` if a parameter cannot have
    /// such a value.
    pub fn scaled(&self, factors: &[(usize, f64)]) -> Option<Spec> {
        let mut spec = self.spec.clone();
        for (place, factor) in factors {
            let number = &self.numbers[*place];
            spec = Spec::catalogue().with_number(&spec, number, number.value * factor).ok()?;
        }
        Some(spec)
    }

    /// The text and the value of a parameter in another form of the discipline.
    pub fn number_in(&self, place: usize, changed: &Spec) -> (String, f64) {
        let numbers = Spec::catalogue().numbers(changed);
        let same = numbers.into_iter().find(|number| number.name == self.numbers[place].name);
        same.map_or_else(|| (String::new(), f64::NAN), |number| (number.text, number.value))
    }
}

/// True for each discipline that every cell accepts in its short form.
pub(crate) fn accepted(cells: &[Cell], specs: &[String]) -> Vec<bool> {
    let fits = |cell: &Cell, specs: &[String]| {
        specs.is_empty() || prepare(cell, specs, &[1], Timing::Ideal, true).is_ok()
    };
    let mut accepted = vec![true; specs.len()];
    for cell in cells {
        let left: Vec<String> =
            specs.iter().zip(&accepted).filter(|(_, fits)| **fits).map(|(spec, _)| spec.clone()).collect();
        if !fits(cell, &left) {
            for (spec, accepted) in specs.iter().zip(&mut accepted) {
                *accepted = *accepted && fits(cell, std::slice::from_ref(spec));
            }
        }
    }
    accepted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::chosen;

    fn names(text: &str) -> Vec<String> {
        Variable::of(text).unwrap().numbers.into_iter().map(|number| number.name).collect()
    }

    #[test]
    fn times_sizes_counts_and_shares_with_a_value_are_varied() {
        assert_eq!(names("efd"), ["limit", "threshold"]);
        assert_eq!(names("codel"), ["limit", "target", "interval"]);
        assert_eq!(names("codel ce_threshold 1ms"), ["limit", "target", "interval", "ce_threshold"]);
        assert_eq!(names("red"), ["limit", "min", "max", "avpkt", "burst", "probability"]);
        assert_eq!(names("red weight 0.002"), ["limit", "min", "max", "avpkt", "weight", "probability"]);
        assert_eq!(names("tbf rate 5mbit child (fifo)"), ["burst", "child.limit"]);
        assert!(!names("cake bandwidth 5mbit overhead 38").iter().any(|name| name.starts_with("overhead")));
        assert!(!names("cake bandwidth 5mbit").contains(&"bandwidth".to_owned()));
        assert!(names("fq").contains(&"low_rate_threshold".to_owned()));
        assert_eq!(names("las sweep 0s"), ["limit", "idle", "flows"]);
        assert!(Variable::of("fifoo").is_none());
    }

    #[test]
    fn a_variant_is_written_as_tc_would() {
        let scaled = |text: &str, factors: &[(usize, f64)]| {
            Variable::of(text).unwrap().scaled(factors).map(|spec| spec.to_string())
        };
        assert_eq!(scaled("codel", &[(1, 1.2)]).as_deref(), Some("codel target 6ms"));
        assert_eq!(scaled("red", &[(2, 0.8)]).as_deref(), Some("red max 60000b"));
        assert_eq!(
            scaled("efd limit 100p", &[(0, 2.0), (1, 1.2)]).as_deref(),
            Some("efd limit 200p threshold 24p")
        );
        assert_eq!(scaled("red probability 0.9", &[(5, 1.2)]), None, "no share is above one");
        let red = Variable::of("red").unwrap();
        assert_eq!(red.numbers[2].text, "75000b");
        let changed = red.scaled(&[(2, 1.2)]).unwrap();
        assert_eq!(red.number_in(2, &changed), ("90000b".to_owned(), 90_000.0));
    }

    #[test]
    fn a_cell_refuses_what_a_discipline_refuses() {
        let cells = chosen(&["rrul/rrul".to_owned(), "l4s/step-cubic".to_owned()]).unwrap();
        let specs = ["red", "red min 80000b", "sfq divisor 1024", "sfq divisor 1229", "codel target 6ms"];
        let specs = specs.map(str::to_owned);
        assert_eq!(accepted(&cells, &specs), [true, false, true, false, true]);
    }
}
