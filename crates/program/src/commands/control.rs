//! The flags of `giveway live control`.

use std::path::PathBuf;

/// Changes a running `giveway live`, or prints its state.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Control socket (--control of `giveway live`)
    #[arg(value_name = "SOCKET")]
    pub socket: PathBuf,
    /// The request
    #[command(subcommand)]
    pub request: Request,
}

/// A request to a running `giveway live`.
#[derive(clap::Subcommand)]
pub enum Request {
    /// Print the state, as JSON
    Show,
    /// Print all reservations, as JSON (--reserve)
    Reservations,
    /// Change a setting
    Set {
        /// rate, qdisc, delay, jitter, loss, fragment or reassemble, or one of these with -reverse for the
        /// other direction
        name: String,
        /// New value, as for the flag of `giveway live` with this name
        value: String,
    },
    /// Send the backlog and exit
    Stop,
}

const EXAMPLES: &str = "\
Examples:
  giveway live control /run/giveway.sock show | jq '.directions[0].sojourn_s'
  giveway live control /run/giveway.sock set rate 8mbit
  giveway live control /run/giveway.sock set qdisc-reverse \"fq_codel limit 500p\"
  giveway live control /run/giveway.sock reservations | jq '.[] | [.flow, .rate_bps]'
  giveway live control /run/giveway.sock stop";
