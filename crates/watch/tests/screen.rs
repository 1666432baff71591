//! The terminal view: what it looks like, and that it fits every terminal.

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

/// A terminal of the smallest usual size: flows are left out first, and lines end where it ends.
#[test]
fn a_small_terminal() {
    insta::assert_snapshot!(shown(60, 14, true));
}

#[test]
fn nothing_to_show() {
    assert!(screen(&[], 80, 24, Style::default()).is_empty());
    assert!(screen(&two(), 80, 0, Style::default()).is_empty());
}

proptest! {
    #[test]
    fn it_always_fits(one in snapshot(1), other in snapshot(2), width in 0..200usize, height in 0..60usize, ascii: bool) {
        let lines = screen(&[one, other], width, height, Style { ascii });
        prop_assert!(lines.len() <= height);
        for line in lines {
            prop_assert!(line.chars().count() <= width, "{line}");
            prop_assert!(!line.chars().any(char::is_control), "nothing that moves the cursor: {line:?}");
        }
    }
}
