//! Property tests with new random cases, and searches with many.

use std::time::SystemTime;

use crate::repository::{Done, Repository, cargo};
use crate::test_programs;

/// Runs every property test with new random cases, `rounds` times.
pub fn properties(repository: &Repository, rounds: &str) -> Done {
    let rounds: u32 = rounds.parse().map_err(|_| format!("{rounds} is not a number of rounds"))?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_err(|error| error.to_string())?;
    let tests = test_programs::with_dependency(repository, "proptest")?;
    for round in 0..rounds {
        let seed = now.as_secs() + u64::from(round);
        println!("== round {} of {rounds}, PROPTEST_RNG_SEED={seed}", round + 1);
        for (program, folder) in &tests {
            let mut test = repository.command(program);
            test.current_dir(folder).arg("--quiet").env("PROPTEST_RNG_SEED", seed.to_string());
            // The output of a passing test is not shown.
            let output = test.output().map_err(|error| format!("{program}: {error}"))?;
            if !output.status.success() {
                let [output_text, error_text] =
                    [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
                return Err(format!(
                    "{output_text}{error_text}\n{program} with PROPTEST_RNG_SEED={seed}: {}",
                    output.status
                ));
            }
        }
    }
    Ok(())
}

/// Runs the scenarios of `disciplines/tests/starvation.rs`, a million of each.
pub fn starvation(repository: &Repository) -> Done {
    // Each property has eight times the usual number of cases.
    let mut tests = repository.command(&cargo());
    tests.env("PROPTEST_CASES", "125000");
    tests.args(["test", "--package", "giveway-disciplines", "--test", "all", "starvation::"]);
    let status = tests.status().map_err(|error| format!("cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err("a flow starved".to_owned()) }
}

/// Tests the bounds of `disciplines/tests/bounds.rs` in 100,000 cases for each discipline.
pub fn bounds(repository: &Repository) -> Done {
    // Each property has eight times the usual number of cases.
    let mut tests = repository.command(&cargo());
    tests.env("PROPTEST_CASES", "12500");
    tests.args(["test", "--package", "giveway-disciplines", "--test", "all", "bounds::"]);
    let status = tests.status().map_err(|error| format!("cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err("a bound is exceeded".to_owned()) }
}
