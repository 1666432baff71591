//! `giveway book`: opens the book.

use std::io::Write;
use std::path::{Path, PathBuf};

use giveway_runner::Outcome;

use crate::error::CliError;
use crate::open::{self, Shown};
use crate::provenance;

/// Opens the book of this version in the browser. It needs no network.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Print the place of the book without opening it
    #[arg(long)]
    print: bool,
}

const EXAMPLES: &str = "\
Examples:
  giveway book
  giveway book --print

Exit codes: 0 success, 2 the book is not installed.";

/// The first page.
const INDEX: &str = "index.html";

/// Runs `giveway book`.
pub fn book(args: &Args, out: &mut dyn Write) -> Result<Outcome, CliError> {
    let program = provenance::program().ok();
    let here = std::env::current_dir().ok();
    let places = places(program.as_deref(), here.as_deref());
    let Some(index) = places.iter().map(|folder| folder.join(INDEX)).find(|index| index.is_file()) else {
        let looked: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
        return Err(CliError::Usage(format!(
            "the book is not installed: it is in none of {}. The Debian package has it, and so has the archive \
             giveway_VERSION_book.tar.gz of a release; in a clone of the repository, cargo xtask book makes it",
            looked.join(", ")
        )));
    };
    if args.print {
        writeln!(out, "{}", index.display())?;
        return Ok(Outcome::Done);
    }
    let index = index.display();
    match open::open(Path::new(&index.to_string())) {
        Shown::Opened => writeln!(out, "{index} opens in your browser")?,
        Shown::NoScreen => writeln!(out, "The book is {index}: open it in a browser")?,
        Shown::Failed(why) => writeln!(out, "The book is {index}: open it in a browser ({why})")?,
    }
    Ok(Outcome::Done)
}

/// The folders in which the book may be: next to the installed program, in the Debian package, and in
/// a clone.
fn places(program: Option<&Path>, here: Option<&Path>) -> Vec<PathBuf> {
    let beside = program.and_then(Path::parent).and_then(Path::parent).map(|root| root.join(BESIDE));
    let clone = here.map(|here| here.join("target/book"));
    let mut places: Vec<PathBuf> =
        beside.into_iter().chain([Path::new("/usr").join(BESIDE)]).chain(clone).collect();
    places.dedup();
    places
}

/// The book below the folder of an installation, as in /usr.
const BESIDE: &str = "share/doc/giveway/book";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_book_is_beside_the_program_or_in_a_clone() {
        let found = places(Some(Path::new("/opt/giveway/bin/giveway")), Some(Path::new("/home/me/clone")));
        let expected = [
            "/opt/giveway/share/doc/giveway/book",
            "/usr/share/doc/giveway/book",
            "/home/me/clone/target/book",
        ];
        assert_eq!(found, expected.map(PathBuf::from));
        let installed = places(Some(Path::new("/usr/bin/giveway")), None);
        assert_eq!(installed, [PathBuf::from("/usr/share/doc/giveway/book")]);
    }
}
