//! The disciplines of both directions of a link.

use giveway_disciplines::Spec;
use giveway_qdisc::{LinkContext, Rate, Streams};
use giveway_workload::Direction;

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
