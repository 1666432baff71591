//! Makes one picture: runs its commands in a separate folder, and takes the figure from the report.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::list::Picture;
use super::svg;
use crate::browser::Browser;
use crate::program::{self, Profile};
use crate::repository::{Done, Repository};

/// Folders of the repository that commands use.
const USED: [&str; 3] = ["scenarios", "examples", "papers"];

/// Makes pictures. Commands that several pictures have in common run once.
pub struct Making<'a> {
    repository: &'a Repository,
    browser: &'a Browser<'a>,
    /// The folder of the program.
    program: PathBuf,
    /// The folder of all results.
    folder: PathBuf,
    /// The folder of the results of commands that have run.
    ran: RefCell<BTreeMap<Vec<String>, PathBuf>>,
}

impl Making<'_> {
    /// Prepares an empty folder.
    ///
    /// # Errors
    /// If it cannot be written, or the program is not built.
    pub fn new<'a>(repository: &'a Repository, browser: &'a Browser<'a>) -> Result<Making<'a>, String> {
        let program = program::program(repository, Profile::Debug)?;
        if !program.is_file() {
            return Err(format!("{} does not exist: cargo build --package giveway-cli", program.display()));
        }
        let program = program.parent().expect("a file is in a folder").to_owned();
        let folder = repository.target()?.join("pictures");
        let _ = fs::remove_dir_all(&folder);
        Ok(Making { repository, browser, program, folder, ran: RefCell::default() })
    }

    /// The bytes of a picture.
    ///
    /// # Errors
    /// If a command fails, the report has no such figure, or the browser fails.
    pub fn make(&self, picture: &Picture) -> Result<Vec<u8>, String> {
        let explain = |error: String| format!("{}: {error}", picture.name);
        let folder = self.results(picture).map_err(explain)?;
        let report = folder.join(&picture.report);
        match (&picture.figure, picture.page) {
            (Some(figure), _) => {
                svg::take(self.browser, &report, figure).map(String::into_bytes).map_err(explain)
            }
            (None, size) => {
                let file = folder.join(picture.file());
                self.browser.picture(&report, size.unwrap_or_default(), &file).map_err(explain)?;
                fs::read(&file).map_err(|error| explain(format!("{}: {error}", file.display())))
            }
        }
    }

    /// The folder with the results of a picture's commands.
    fn results(&self, picture: &Picture) -> Result<PathBuf, String> {
        if let Some(folder) = self.ran.borrow().get(&picture.commands) {
            return Ok(folder.clone());
        }
        let folder = self.folder.join(&picture.name);
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        for used in USED {
            let link = std::os::unix::fs::symlink(self.repository.root.join(used), folder.join(used));
            link.map_err(|error| format!("{used}: {error}"))?;
        }
        picture.commands.iter().try_for_each(|command| self.run(command, &folder))?;
        self.ran.borrow_mut().insert(picture.commands.clone(), folder.clone());
        Ok(folder)
    }

    fn run(&self, command: &str, folder: &Path) -> Done {
        let path = format!("{}:{}", self.program.display(), std::env::var("PATH").unwrap_or_default());
        let mut shell = self.repository.command("sh");
        shell.args(["-e", "-c", command]).current_dir(folder).env("PATH", path).env("NO_COLOR", "1");
        let output = shell.output().map_err(|error| format!("sh: {error}"))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(format!("{command}: {}", String::from_utf8_lossy(&output.stderr))),
        }
    }
}
