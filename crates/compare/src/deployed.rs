//! A discipline as it is deployed: with its shaper, in front of the line.
//!
//! # Principles
//! - The line keeps its rate and its own fifo in each direction: upstream in the modem, downstream at the
//!   provider. The discipline is at this side of both, and its shaper is slower than the line. So downstream
//!   a burst waits in the fifo of the provider before it reaches the discipline.
//! - A direction without a shaper has the fifo of the line only.
//! - A discipline that shapes by itself takes the rate as a parameter. Any other is below a class of `htb`.
//!   The interface around them is a hundred times as fast as the line, so a packet is transmitted once.
//! - Seeds and traffic come from the comparison.
//!
//! # Deviations
//! - A shaper is as precise as its clock. A machine's shaper sends in small bursts.

use std::path::Path;

use giveway_measure::{DisciplineRow, Estimate, Table};
use giveway_qdisc::Rate;
use giveway_workload::Direction;

use super::capture::Capture;
use super::link::{Link, NODES, Senders, line};
use super::pair::{Pair, needs_bandwidth, shapes};

/// The node of the shaper, between the local side and the line.
pub(super) const SHAPER: &str = "shaper";
/// The metrics of the line, where all others come from the shaper's port.
const OF_THE_LINE: [&str; 2] = ["utilization", "goodput_bps"];
/// The waits at both ports, one after the other.
const WAITS: &str = "sojourn_";
/// The interface is so many times as fast as the line.
const FASTER: u64 = 100;

/// A discipline with its shaper.
pub(super) struct Shaped<'a> {
    /// The discipline of each direction.
    pub pair: &'a Pair,
    /// True if the target lets a discipline shape by itself.
    pub by_itself: bool,
    /// The rates of the shaper, upstream and downstream; `None` for a direction without it.
    pub rates: [Option<Rate>; 2],
    /// The fifos of the line.
    pub line: &'a Pair,
}

impl Shaped<'_> {
    /// The discipline in front of a line as a scenario, with the traffic of the comparison.
    pub fn scenario(
        &self,
        link: &Link,
        name: &str,
        file: &Path,
        (senders, seeds): (&Senders<'_>, u32),
        capture: &Capture,
    ) -> String {
        let links = self.links(link, NODES);
        let ports: Vec<String> =
            link.ports(capture).into_iter().flat_map(|direction| Shaped::ports(direction, NODES)).collect();
        let line = std::slice::from_ref(self.line);
        link.with_network(name, file, (senders, line, seeds), capture, (&links, &ports))
    }

    /// The links in front of the line and of the line, as TOML. `local` and `far` are the nodes at the ends.
    pub fn links(&self, link: &Link, (local, far): (&str, &str)) -> String {
        let interface = Rate::bit(link.up.max(link.down).as_bit().saturating_mul(FASTER));
        let [sends, receives] = [Direction::Up, Direction::Down].map(|direction| self.qdisc(direction));
        format!(
            "[[link]]\nfrom = \"{local}\"\nto = \"{SHAPER}\"\nrate = \"{interface}\"\ndelay = \"0s\"\nqdisc = {sends}\n\
             back = {{ rate = \"{interface}\", qdisc = {receives} }}\n\n{}",
            line(link, std::slice::from_ref(self.line), (SHAPER, far))
        )
    }

    /// The discipline with its shaper in one direction, as a value in TOML.
    fn qdisc(&self, direction: Direction) -> String {
        let Some(rate) = self.rates[direction as usize] else { return "\"fifo\"".to_owned() };
        let spec = self.pair.at(direction);
        if self.by_itself && needs_bandwidth(spec) {
            let ingress = if direction == Direction::Down { " ingress" } else { "" };
            return format!("\"{spec} bandwidth {rate}{ingress}\"");
        }
        if self.by_itself && shapes(spec) {
            return format!("\"{spec}\"");
        }
        format!(
            "{{ kind = \"htb\", default = \"line\", classes = [{{ name = \"line\", rate = \"{rate}\", leaf = \"{spec}\" }}] }}"
        )
    }

    /// The ports of the shaper and of the line in a direction.
    pub fn ports(direction: Direction, (local, far): (&str, &str)) -> [String; 2] {
        match direction {
            Direction::Up => [format!("{local}->{SHAPER}"), format!("{SHAPER}->{far}")],
            Direction::Down => [format!("{SHAPER}->{local}"), format!("{far}->{SHAPER}")],
        }
    }

    /// The row of a table of this network, with the names that its metrics have in a comparison.
    pub fn row(&self, table: &Table, nodes: (&str, &str)) -> Option<DisciplineRow> {
        let row = table.rows.first()?;
        let mut metrics = Vec::new();
        for direction in [Direction::Up, Direction::Down] {
            let [shaper, line] = Shaped::ports(direction, nodes).map(|port| format!("at.{port}."));
            for (name, value) in &row.metrics {
                let Some(metric) = name.strip_prefix(&shaper) else { continue };
                let at_line = row.metric(&format!("{line}{metric}"));
                let value = match at_line {
                    Some(other) if OF_THE_LINE.contains(&metric) => other.clone(),
                    Some(other) if metric.contains(WAITS) && metric.ends_with("_s") => sum(value, other),
                    _ => value.clone(),
                };
                metrics.push((format!("at.{}.{metric}", Link::port(direction)), value));
            }
        }
        Some(DisciplineRow { qdisc: self.pair.name(), seeds: row.seeds.clone(), metrics })
    }
}

/// The sum under each seed. The sum of two quantiles is about the quantile of the sum, since one of the two
/// queues is nearly empty.
fn sum(one: &Estimate, other: &Estimate) -> Estimate {
    let pairs = one.per_seed.iter().zip(&other.per_seed);
    Estimate::over(pairs.map(|(one, other)| Some((*one)? + (*other)?)).collect())
}

#[cfg(test)]
mod tests {
    use giveway_measure::Fingerprint;

    use super::*;

    const BOTH: [Option<Rate>; 2] = [Some(Rate::kbit(1900)), Some(Rate::kbit(15_200))];

    fn pair(text: &str) -> Pair {
        Pair::same(text.parse().expect("it is valid"))
    }

    #[test]
    fn the_shaper_is_in_front_of_a_line_that_keeps_its_rate() {
        let link = Link { up: Rate::mbit(2), down: Rate::mbit(16), rtt: None, resample: None, hours: None };
        let line = pair("fifo limit 100p");
        let links = |text: &str, rates| {
            let shaped = Shaped { pair: &pair(text), by_itself: true, rates, line: &line };
            shaped.links(&link, ("local", "far"))
        };
        let up = [BOTH[0], None];
        insta::assert_snapshot!(links("cake", BOTH) + &links("fq_codel", BOTH) + &links("cake", up));
    }

    /// Times are measured for the flows, and the use for the line. A packet waits twice.
    #[test]
    fn a_row_has_the_names_of_the_comparison() {
        let (cake, line) = (pair("cake"), pair("fifo limit 100p"));
        let shaped = Shaped { pair: &cake, by_itself: true, rates: BOTH, line: &line };
        let metric = |name: &str, value| (name.to_owned(), Estimate::over(vec![Some(value)]));
        let metrics = vec![
            metric("at.local->shaper.fct_p50_s", 1.0),
            metric("at.local->shaper.utilization", 0.001),
            metric("at.shaper->far.utilization", 0.9),
            metric("at.shaper->local.small_sojourn_p99_s", 0.5),
            metric("at.far->shaper.small_sojourn_p99_s", 0.25),
        ];
        let rows = vec![DisciplineRow { qdisc: "fifo limit 100p".to_owned(), seeds: vec![1], metrics }];
        let table = Table { rows, fingerprint: Fingerprint::EMPTY, events: 0, bottleneck_packets: None };
        let row = shaped.row(&table, ("local", "far")).expect("there is a row");
        assert_eq!(row.qdisc, "cake");
        assert_eq!(row.mean("at.local->far.fct_p50_s"), Some(1.0));
        assert_eq!(row.mean("at.local->far.utilization"), Some(0.9));
        assert_eq!(row.mean("at.far->local.small_sojourn_p99_s"), Some(0.75));
    }
}
