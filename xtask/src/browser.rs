//! A browser without a window and without a network.

use std::path::{Path, PathBuf};

use crate::repository::{Done, Repository};

/// Names of the browser, Debian's first.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// Options of every start. No request leaves the machine.
const OPTIONS: [&str; 10] = [
    "--headless",
    "--hide-scrollbars",
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
        // Without a size the window has that of the last one.
        let mut arguments = self.options((800, 1000));
        arguments.extend(["--dump-dom".to_owned(), format!("file://{}{query}", file.display())]);
        self.repository.output(self.name, &arguments)
    }

    /// Opens a file, and writes a picture of its top as PNG.
    ///
    /// # Errors
    /// If the browser fails.
    pub fn picture(&self, file: &Path, size: (u32, u32), to: &Path) -> Done {
        let mut arguments = self.options(size);
        arguments.extend([format!("--screenshot={}", to.display()), format!("file://{}", file.display())]);
        self.repository.output(self.name, &arguments).map(drop)
    }

    /// The options for a window of this width and height.
    fn options(&self, (width, height): (u32, u32)) -> Vec<String> {
        let profile = format!("--user-data-dir={}", self.profile.display());
        let window = format!("--window-size={width},{height}");
        OPTIONS.into_iter().map(str::to_owned).chain([profile, window]).collect()
    }
}

impl Drop for Browser<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}
