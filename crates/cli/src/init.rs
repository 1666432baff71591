//! `giveway init`: writes a first scenario.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use clap::{ValueEnum, ValueHint};

use crate::error::CliError;
use crate::{Outcome, show};

/// Writes a commented first scenario, which runs as it is.
///
/// Its comments say what each line is for and what to change. An existing file is not replaced.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// File to write
    #[arg(value_name = "FILE", default_value = "scenario.toml", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Network of the scenario
    #[arg(long, value_enum, default_value_t = Kind::Home)]
    kind: Kind,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
}

const EXAMPLES: &str = "\
Examples:
  giveway init home.toml
  giveway init fabric.toml --kind datacenter

Exit codes: 0 success, 2 the file exists or cannot be written.";

/// First networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// A home whose upload, pages and call share one line
    Home,
    /// A provider that shapes subscribers with three plans
    Isp,
    /// A fat tree of 16 hosts with short and long transfers
    Datacenter,
    /// A switch of 16 ports with several arbiters
    Switch,
}

impl Kind {
    /// The scenario. The word FILE in its comments stands for its file.
    fn template(self) -> &'static str {
        match self {
            Kind::Home => include_str!("init/home.toml"),
            Kind::Isp => include_str!("init/isp.toml"),
            Kind::Datacenter => include_str!("init/datacenter.toml"),
            Kind::Switch => include_str!("init/switch.toml"),
        }
    }
}

/// Runs `giveway init`.
pub fn init(args: &Args, out: &mut dyn Write) -> Result<Outcome, CliError> {
    let file = &args.file;
    let word = shell_word(file);
    let text = args.kind.template().replace("FILE", &word);
    let mut options = OpenOptions::new();
    options.write(true);
    match args.force {
        true => options.create(true).truncate(true),
        false => options.create_new(true),
    };
    if let Err(error) = options.open(file).and_then(|mut opened| opened.write_all(text.as_bytes())) {
        let place = file.display();
        return Err(CliError::Usage(match error.kind() {
            ErrorKind::AlreadyExists => format!(
                "{place} exists. Nothing was changed. Name another file, or add --force to replace it"
            ),
            _ => format!("cannot write {place}: {error}"),
        }));
    }
    show::message(&format!("wrote {}; its comments say what to change", file.display()));
    writeln!(out, "giveway run {word}")?;
    Ok(Outcome::Done)
}

/// The path as a word of a command line.
fn shell_word(path: &Path) -> String {
    let path = path.display().to_string();
    // A name that begins with a dash would be a flag.
    let path = if path.starts_with('-') { format!("./{path}") } else { path };
    let plain = |c: char| c.is_alphanumeric() || "._/-+".contains(c);
    if path.chars().all(plain) { path } else { format!("'{}'", path.replace('\'', "'\\''")) }
}
