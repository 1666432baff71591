//! The terminal view: its text, and its size on every terminal.

use crate::support::{snapshot, two};
use giveway_watch::Style;
use giveway_watch::tui::screen;
use proptest::prelude::*;

fn shown(width: usize, height: usize, ascii: bool) -> String {
    screen(&two(), width, height, Style { ascii }).join("\n")
}

#[test]
fn two_directions() {
    insta::assert_snapshot!(shown(100, 40, false));
}

/// On a small terminal, flows are left out first, and lines are cut to its width.
#[test]
fn a_small_terminal() {
    insta::assert_snapshot!(shown(60, 14, true));
}

#[test]
fn without_snapshots_or_height_there_are_no_lines() {
    assert!(screen(&[], 80, 24, Style::default()).is_empty());
    assert!(screen(&two(), 80, 0, Style::default()).is_empty());
}

proptest! {
    #[test]
    fn lines_always_fit_the_terminal(one in snapshot(1), other in snapshot(2), width in 0..200usize, height in 0..60usize, ascii: bool) {
        let lines = screen(&[one, other], width, height, Style { ascii });
        prop_assert!(lines.len() <= height);
        for line in lines {
            prop_assert!(line.chars().count() <= width, "{line}");
            prop_assert!(!line.chars().any(char::is_control), "control characters could move the cursor: {line:?}");
        }
    }
}
