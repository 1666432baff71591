//! Opens a page in the browser of the user.

use std::path::Path;
use std::process::{Command, Stdio};

/// The result of an attempt.
pub enum Shown {
    /// The browser has been asked.
    Opened,
    /// This session has no screen.
    NoScreen,
    /// There is no program that opens pages, or it failed.
    Failed(String),
}

/// Opens a page.
pub fn open(page: &Path) -> Shown {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let has_screen = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    if !cfg!(target_os = "macos") && !has_screen {
        return Shown::NoScreen;
    }
    // Programs may ask for the folder of a relative path.
    let page = std::path::absolute(page).unwrap_or_else(|_| page.to_owned());
    let asked = Command::new(program).arg(page).stdout(Stdio::null()).stderr(Stdio::null()).status();
    match asked {
        Ok(status) if status.success() => Shown::Opened,
        Ok(status) => Shown::Failed(format!("{program}: {status}")),
        Err(error) => Shown::Failed(format!("{program}: {error}")),
    }
}
