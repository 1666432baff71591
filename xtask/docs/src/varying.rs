//! The page about links that vary and the disciplines of Linux, from `docs/varying.csv`.

#[path = "../../src/varying/table.rs"]
mod table;

use std::path::Path;

use crate::recorded::{self, Column};
use table::DisciplineMeans;

/// The scenarios: their names, and headings.
const SCENARIOS: [(&str, &str); 6] = [
    ("step", "A link that falls to a tenth of its rate and recovers"),
    ("lte", "A cellular link whose rate wanders"),
    ("satellite", "A satellite that hands over every 15 seconds"),
    ("cable", "A cable modem that sends when it gets a grant"),
    ("wifi", "A Wi-Fi channel that three stations share"),
    ("policer", "A link behind a policer"),
];

const TEXT: &str = "\
# Varying links and the disciplines of Linux

`cargo xtask varying` runs the scenarios in `scenarios/links` with every classless discipline of Linux that Giveway has, each with its defaults here, \
and writes `docs/varying.csv`, from which this page is made. In each scenario downloads or uploads fill the link, and a call of small packets shares \
it.

- *Used* is the share of what the link offered. A queue that runs empty when the rate rises shows there.
- *Goodput* is that of TCP over the measured link.
- *Delay* is the one-way delay of the call, propagation included, and *loss* the share of its packets that are lost.

All values are means over the three seeds of the scenario. The best value of a column is bold; differences of a few per cent may be chance.
";

/// The conclusions, which were drawn from the table as it is. Read them again when it is measured again.
const FINDINGS: &str = "
## Findings

- **A queue per flow protects the call.** With `fq_codel` and `sfq` its p99 is at most 39 ms in every scenario, and it loses at most 0.15 %. Only \
`sfb` has a lower p99 somewhere, on the Wi-Fi channel, where it carries a tenth of the traffic.
- **A long queue is full at any rate.** `fifo limit 1000p` uses 97 to 100 % of the step, the cellular link, the satellite and the cable, and the p99 of the \
call is between 0.17 s and 2.8 s there.
- **Short queues do not use what comes back at once.** On the cellular link and the satellite the disciplines that drop early use 57 to 77 % of what the \
link offers (`sfb` less), because senders need many round trips to grow again. `sfq`, whose queue has up to 127 \
packets, uses 94 % of the cellular link.
- **One queue with early drops is late when the rate falls.** At the step the p99 of the call is 0.21 s with `codel` and 0.35 s with `pie`, with means of 26 and \
27 ms: they need many drops until the senders have slowed down.
- **`sfb` with its defaults suits none of these links but that behind the policer.** It uses 2.5 to 62 % of the others. It may take a \
few flows that fill the link for flows that do not respond; this was not tested.
- **Behind a policer the discipline hardly matters**, because no queue grows: a shaper in front of it does, as in `scenarios/links/policer.toml`.
";

pub fn page(root: &Path) -> Result<String, String> {
    let rows: Vec<DisciplineMeans> = recorded::read(root)?;
    let mut page = TEXT.to_owned();
    for (name, heading) in SCENARIOS {
        let rows: Vec<&DisciplineMeans> = rows.iter().filter(|row| row.scenario == name).collect();
        page.push_str(&format!("\n## {heading}\n\n`scenarios/links/{name}.toml`\n\n{}", of_scenario(&rows)));
    }
    page.push_str(FINDINGS);
    Ok(page)
}

/// The table of a scenario.
fn of_scenario(rows: &[&DisciplineMeans]) -> String {
    let bold = |row: &DisciplineMeans,
                text: String,
                value: fn(&DisciplineMeans) -> f64,
                best: fn(f64, f64) -> f64| {
        let best = rows.iter().map(|row| value(row)).reduce(best);
        if best == Some(value(row)) { format!("**{text}**") } else { text }
    };
    let highest = |row: &DisciplineMeans, text, value| bold(row, text, value, f64::max);
    let lowest = |row: &DisciplineMeans, text, value| bold(row, text, value, f64::min);
    let columns: [Column<'_, &DisciplineMeans>; 6] = [
        ("discipline", "---", &|row| format!("`{}`", row.discipline)),
        ("used", "---:", &|row| highest(row, format!("{:.1} %", row.used_percent), |row| row.used_percent)),
        ("goodput, Mbit/s", "---:", &|row| {
            highest(row, format!("{:.2}", row.goodput_mbit), |row| row.goodput_mbit)
        }),
        ("mean delay, ms", "---:", &|row| {
            lowest(row, format!("{:.1}", row.delay_mean_ms), |row| row.delay_mean_ms)
        }),
        ("p99 delay, ms", "---:", &|row| {
            lowest(row, format!("{:.1}", row.delay_p99_ms), |row| row.delay_p99_ms)
        }),
        ("loss", "---:", &|row| lowest(row, format!("{:.2} %", row.loss_percent), |row| row.loss_percent)),
    ];
    recorded::table(&columns, rows.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_values_are_bold() {
        let row = |discipline: &str, used_percent, delay_p99_ms| DisciplineMeans {
            discipline: discipline.to_owned(),
            used_percent,
            delay_p99_ms,
            ..DisciplineMeans::default()
        };
        let (long, short) = (row("long", 99.0, 50.0), row("short", 90.0, 5.0));
        let out = of_scenario(&[&long, &short]);
        assert!(out.contains("| `long` | **99.0 %** |") && out.contains("| **5.0** |"), "{out}");
        assert!(!out.contains("**90.0 %**") && !out.contains("**50.0**"), "{out}");
    }
}
