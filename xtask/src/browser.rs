//! A browser without a window and without a network.

use std::path::{Path, PathBuf};

use crate::repository::Repository;

/// Names of the browser: that of Debian first.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// Options of every start. No request leaves the machine.
const OPTIONS: [&str; 9] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--virtual-time-budget=30000",
];

/// An installed Chromium.
pub struct Browser<'a> {
    repository: &'a Repository,
    name: &'static str,
    /// The folder of its settings, which is removed at the end.
    profile: PathBuf,
}

impl Browser<'_> {
    /// The installed browser. Without one, prints what is not tried.
    ///
    /// # Errors
    /// If there is none in CI.
    pub fn find(repository: &Repository) -> Result<Option<Browser<'_>>, String> {
        let Some(name) = NAMES.into_iter().find(|name| repository.has(name, &["--version"])) else {
            let why = "no Chromium here: apt-get install chromium";
            if std::env::var_os("CI").is_some() {
                return Err(why.to_owned());
            }
            println!("not tried: {why}");
            return Ok(None);
        };
        let profile = std::env::temp_dir().join(format!("giveway-browser-{}", std::process::id()));
        Ok(Some(Browser { repository, name, profile }))
    }

    /// Opens a file, and returns the page as HTML after its scripts have ended. `query` follows the path.
    ///
    /// # Errors
    /// If the browser fails.
    pub fn page(&self, file: &Path, query: &str) -> Result<String, String> {
        let mut arguments = self.options();
        arguments.extend(["--dump-dom".to_owned(), format!("file://{}{query}", file.display())]);
        self.repository.output(self.name, &arguments)
    }

    fn options(&self) -> Vec<String> {
        let profile = format!("--user-data-dir={}", self.profile.display());
        OPTIONS.into_iter().map(str::to_owned).chain([profile]).collect()
    }
}

impl Drop for Browser<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}
