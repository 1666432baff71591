//! `--tui`: the terminal view, on the alternate screen of the terminal.

use std::io::{self, Write};

use giveway_control::{ControlApi, Controller};
use giveway_live::clock::monotonic_ns;
use giveway_program::terminal;
use giveway_watch::tui;

use giveway_program::output::own;

/// Escape codes that switch to the alternate screen of the terminal and hide the cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
/// Escape codes that show the cursor and switch back to the main screen.
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// Interval between redraws, in nanoseconds.
const REDRAW_NS: u64 = 500_000_000;

/// The terminal view of a bridge.
pub struct View {
    /// Time of the last redraw by the monotonic clock, in nanoseconds.
    drawn: u64,
}

impl View {
    /// Switches to the alternate screen.
    ///
    /// # Errors
    /// The error of the terminal.
    pub fn enter(out: &mut dyn Write) -> io::Result<View> {
        write!(out, "{}", own(ENTER))?;
        Ok(View { drawn: 0 })
    }

    /// Redraws the view if it is time for it.
    ///
    /// # Errors
    /// The error of the terminal.
    pub fn update(&mut self, controller: &Controller, out: &mut dyn Write) -> io::Result<()> {
        if monotonic_ns() <= self.drawn + REDRAW_NS {
            return Ok(());
        }
        self.drawn = monotonic_ns();
        let (width, height) = terminal::size();
        let ascii = std::env::var("TERM").is_ok_and(|term| term == "linux" || term == "vt100");
        let snapshots = controller.snapshots().unwrap_or_default();
        let lines = tui::screen(&snapshots, width, height, tui::Style { ascii });
        // Each line is cleared after its text, and the rest of the screen at the end, so that nothing
        // flickers.
        let text = lines.join(&own("\x1b[K\r\n"));
        write!(out, "{}{text}{}", own("\x1b[H"), own("\x1b[K\x1b[J"))?;
        out.flush()
    }

    /// Switches back to the main screen.
    ///
    /// # Errors
    /// The error of the terminal.
    pub fn leave(self, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "{}", own(LEAVE))
    }
}
