//! `giveway sweep query`: SQL over the data set of a sweep. DuckDB answers it, through the Python package.

use std::path::PathBuf;
use std::process::Command;

use giveway_runner::Outcome;

use crate::error::CliError;

/// Prints the result of a query in SQL over the data set of a sweep.
///
/// The tables are trials and failed; a query such as `describe trials` lists their columns. DuckDB answers
/// it, so this command needs the Python package with it: pip install "giveway[duckdb]". A query reads and
/// writes no other files.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Folder of a sweep
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Query
    #[arg(value_name = "SQL")]
    sql: String,
    /// Write a CSV or Parquet file, by its ending, instead of printing
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print CSV instead of a table
    #[arg(long, conflicts_with = "out")]
    csv: bool,
}

const EXAMPLES: &str = "\
Examples:
  giveway sweep query sweeps/rates 'select discipline, avg(fct_p95_s) from trials group by all'
  giveway sweep query sweeps/rates 'select * from failed' --csv
  giveway sweep query sweeps/rates 'select * from trials' --out trials.csv

Exit codes: 0 success, 1 the Python package is not installed, 2 the query or the folder is wrong.";

/// Runs `giveway sweep query`: the command of the Python package has the same flags.
pub fn query(args: &Args) -> Result<Outcome, CliError> {
    let mut command = Command::new("python3");
    // Without the working folder in the path of modules.
    command.args(["-P", "-m", "giveway", "query"]).arg(&args.dir).arg(&args.sql);
    if let Some(file) = &args.out {
        command.arg("--out").arg(file);
    }
    if args.csv {
        command.arg("--csv");
    }
    let installed = Command::new("python3").args(["-P", "-c", "import giveway, duckdb"]).output();
    if !installed.is_ok_and(|output| output.status.success()) {
        return Err(CliError::Unavailable(
            "a query needs the Python package with DuckDB: pip install \"giveway[duckdb]\"; DuckDB alone reads \
             DIR/trials/*.parquet, with union_by_name = true"
                .to_owned(),
        ));
    }
    match command.status()?.code() {
        Some(0) => Ok(Outcome::Done),
        Some(2) => Err(CliError::Reported(Outcome::Wrong)),
        _ => Err(CliError::Reported(Outcome::Failed)),
    }
}
