//! Runs the scenarios with links that vary with all disciplines that Linux has, and writes
//! `docs/varying.csv`. `cargo xtask docs` makes a page of it.
//!
//! The scenarios come from `scenarios/links`, in their long form. Results are the same on every machine.

pub(crate) mod table;

use serde_json::Value;

use crate::recorded;
use crate::repository::{Done, Repository};
use table::DisciplineMeans;

/// The scenarios, in the order of the page.
const SCENARIOS: [&str; 6] = ["step", "lte", "satellite", "cable", "wifi", "policer"];

/// The disciplines of Linux that need no classes, with the defaults of Giveway. A queue of 1,000 packets is
/// the default of Linux.
const DISCIPLINES: [&str; 10] = [
    "fifo limit 1000p",
    "fifo limit 100p",
    "sfq",
    "red",
    "ared",
    "choke",
    "sfb",
    "codel limit 1000p",
    "pie",
    "fq_codel",
];

/// Runs everything and writes the table.
pub fn record(repository: &Repository) -> Done {
    repository.cargo(&["build", "--quiet", "--locked", "--release", "--package", "giveway-cli"])?;
    let program = repository.built("release", "giveway")?.to_string_lossy().into_owned();
    let mut rows = Vec::new();
    let compared = format!("disciplines={}", serde_json::json!(DISCIPLINES));
    for scenario in SCENARIOS {
        let file = format!("scenarios/links/{scenario}.toml");
        let arguments = ["run", "--quiet", "--json", "--set", &compared, &file].map(str::to_owned);
        let printed = repository.output(&program, &arguments)?;
        let found: Value = serde_json::from_str(printed.lines().next().unwrap_or_default())
            .map_err(|error| format!("giveway run prints no JSON: {error}"))?;
        let results = found["results"].as_array().ok_or("giveway run prints no results")?;
        for (result, discipline) in results.iter().zip(DISCIPLINES) {
            let row = row(scenario, discipline, &result["metrics"])?;
            println!("{row:?}");
            rows.push(row);
        }
    }
    recorded::store(&repository.root, None, &rows)
}

fn row(scenario: &str, discipline: &str, metrics: &Value) -> Result<DisciplineMeans, String> {
    let mean = |metric: &str| {
        metrics[metric]["mean"].as_f64().ok_or_else(|| format!("{scenario}, {discipline}: no {metric}"))
    };
    Ok(DisciplineMeans {
        scenario: scenario.to_owned(),
        discipline: discipline.to_owned(),
        used_percent: 100.0 * mean("utilization")?,
        goodput_mbit: mean("goodput_bps")? / 1e6,
        delay_mean_ms: 1e3 * mean("voice_delay_mean_s")?,
        delay_p99_ms: 1e3 * mean("voice_delay_p99_s")?,
        loss_percent: 100.0 * mean("voice_loss")?,
    })
}
