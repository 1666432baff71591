//! Makes the cards of all disciplines of Linux that need no setting, and writes `docs/cards.csv`.
//! `cargo xtask docs` makes a page of it.
//!
//! Results are the same on every machine. The cards themselves stay in `target/cards`.

pub(crate) mod table;

use serde_json::Value;

use crate::recorded;
use crate::repository::{Done, Repository};
use table::QuestionVerdicts;

/// The folder of the cards, relative to the repository.
const FOLDER: &str = "target/cards";

/// Makes the cards and writes the table.
pub fn record(repository: &Repository) -> Done {
    repository.cargo(&["build", "--quiet", "--locked", "--release", "--package", "giveway-cli"])?;
    let program = repository.built("release", "giveway")?.to_string_lossy().into_owned();
    // At their defaults, as they are deployed.
    let arguments = ["evaluate", "--deployed", "--tune", "0", "--no-sensitivity", "--out", FOLDER, "--json"];
    let printed = repository.output(&program, &arguments.map(str::to_owned))?;
    let found: Value = serde_json::from_str(printed.lines().next().unwrap_or_default())
        .map_err(|error| format!("giveway evaluate prints no JSON: {error}"))?;
    let rows = found.as_array().ok_or("giveway evaluate prints no list")?;
    let rows = rows.iter().map(|value| row(value).ok_or_else(|| format!("not a row: {value}")));
    recorded::store(&repository.root, None, &rows.collect::<Result<Vec<QuestionVerdicts>, String>>()?)?;
    println!("the cards are in {FOLDER}/index.html");
    Ok(())
}

fn row(value: &Value) -> Option<QuestionVerdicts> {
    let text = |key: &str| value[key].as_str().map(str::to_owned);
    let counts = &value["counts"];
    let count = |key: &str| counts[key].as_u64().map(|count| count as u32);
    Some(QuestionVerdicts {
        discipline: text("discipline")?,
        baseline: text("baseline")?,
        question: text("question")?,
        verdict: text("verdict")?,
        better: count("better")?,
        worse: count("worse")?,
        same: count("same")?,
        undecided: count("unknown")?,
        opposite: count("flips")?,
        ratio: value["ratio"].as_f64(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_of_the_overview_is_a_row() {
        let counts = json!({ "better": 3, "worse": 0, "same": 1, "unknown": 2, "flips": 0 });
        let line = json!({
            "discipline": "pie", "baseline": "fifo", "question": "use", "verdict": "better", "counts": counts,
            "ratio": null,
        });
        let written = recorded::text(&[row(&line).unwrap()]);
        assert_eq!(written.lines().nth(1), Some("pie,fifo,use,better,3,0,1,2,0,"));
        assert_eq!(row(&json!({ "discipline": "pie" })), None);
    }
}
