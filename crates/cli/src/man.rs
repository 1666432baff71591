//! `giveway man`: writes the manual pages of all commands.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Command, ValueHint};
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, roman};

use crate::error::CliError;
use crate::{Outcome, provenance, show};

/// Writes the manual pages of all commands into a folder: giveway.1, and one for each command.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Folder to write to; it is created if it does not exist
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    dir: PathBuf,
    /// Replace files of the same names that are not manual pages of Giveway
    #[arg(long)]
    force: bool,
}

const EXAMPLES: &str = "\
Examples:
  giveway man ~/.local/share/man/man1    # then: man giveway-run
  giveway man man && man -l man/giveway-compare.1

Exit codes: 0 success, 2 another file has the name of a page, or the folder cannot be written.";

/// The first line of each page.
const MARK: &str = ".\\\" A manual page of Giveway, written by `giveway man`.\n";

/// Runs `giveway man`. `program` is the definition of the whole command line.
pub fn man(args: &Args, program: Command, out: &mut dyn Write) -> Result<Outcome, CliError> {
    let pages = pages(program)?;
    let unwritable = |path: &Path| {
        let path = path.display().to_string();
        move |error: io::Error| CliError::Usage(format!("cannot write {path}: {error}"))
    };
    fs::create_dir_all(&args.dir).map_err(unwritable(&args.dir))?;
    // All names are checked before the first page is written.
    for (name, _) in &pages {
        let path = args.dir.join(name);
        let foreign = fs::read(&path).is_ok_and(|known| !known.starts_with(MARK.as_bytes()));
        if foreign && !args.force {
            return Err(CliError::Usage(format!(
                "{} exists and is not a manual page of Giveway. Nothing was changed. Name another folder, or add --force to replace it",
                path.display()
            )));
        }
    }
    for (name, text) in &pages {
        let path = args.dir.join(name);
        fs::write(&path, text).map_err(unwritable(&path))?;
    }
    show::message(&format!("wrote {} pages", pages.len()));
    writeln!(out, "man -l {}", args.dir.join("giveway.1").display())?;
    Ok(Outcome::Done)
}

/// The pages: name of the file, and text.
fn pages(program: Command) -> io::Result<Vec<(String, String)>> {
    let mut program = program.disable_help_subcommand(true);
    program.build();
    let mut pages = Vec::new();
    collect(&program, None, &mut pages)?;
    Ok(pages)
}

/// Adds the pages of a command and its subcommands. `above` is the name of the page above it.
fn collect(command: &Command, above: Option<&str>, pages: &mut Vec<(String, String)>) -> io::Result<()> {
    let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
    let mut text = MARK.as_bytes().to_vec();
    let man = Man::new(command.clone());
    let version = format!("Giveway {}", env!("CARGO_PKG_VERSION"));
    let title = [&*name.to_uppercase(), "1", &date(), &version, "Giveway"].map(str::to_owned);
    Roff::new().control("TH", title.iter().map(String::as_str)).to_writer(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    let below: Vec<&Command> = command.get_subcommands().filter(|command| !command.is_hide_set()).collect();
    if !below.is_empty() {
        man.render_subcommands_section(&mut text)?;
    }
    examples(command).to_writer(&mut text)?;
    see_also(above, &name, &below).to_writer(&mut text)?;
    // clap_mangen ends a line twice before the values of a flag.
    let text = String::from_utf8_lossy(&text).replace("\n.br\n\n.br\n", "\n.sp\n");
    pages.push((format!("{name}.1"), text));
    below.into_iter().try_for_each(|command| collect(command, Some(&name), pages))
}

/// The date of the pages: today, or the value of the variable `SOURCE_DATE_EPOCH`, with which packagers build
/// the same pages at any time.
fn date() -> String {
    provenance::now().chars().take("2026-01-01".len()).collect()
}

/// The section of the examples, which are commands in indented lines, and of the sentences after them.
fn examples(command: &Command) -> Roff {
    let mut roff = Roff::new();
    let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let mut code = false;
    for line in text.lines() {
        let indented = line.strip_prefix("  ");
        if indented.is_some() != code {
            code = !code;
            if code {
                roff.control("RS", ["4"]).control("nf", []);
            } else {
                roff.control("fi", []).control("RE", []);
            }
        }
        match (indented, line) {
            (Some(command), _) => roff.text([roman(command)]),
            (None, "Examples:") => roff.control("SH", ["EXAMPLES"]),
            (None, "") => &mut roff,
            (None, sentence) => match sentence.strip_prefix("Exit codes: ") {
                Some(codes) => roff.control("SH", ["EXIT STATUS"]).text([roman(codes)]),
                None => roff.control("PP", []).text([roman(sentence)]),
            },
        };
    }
    if code {
        roff.control("fi", []).control("RE", []);
    }
    roff
}

/// The section of the other pages: the one above, and those below.
fn see_also(above: Option<&str>, name: &str, below: &[&Command]) -> Roff {
    let below = below.iter().map(|command| format!("{name}-{}", command.get_name()));
    let names: Vec<String> = above.map(str::to_owned).into_iter().chain(below).collect();
    let mut roff = Roff::new();
    let mut line: Vec<Inline> = Vec::new();
    for (at, name) in names.iter().enumerate() {
        if at > 0 {
            line.push(roman(", "));
        }
        line.extend([bold(name), roman("(1)")]);
    }
    roff.control("SH", ["SEE ALSO"]).text(line);
    roff
}
