//! One colour per kind of discipline, project-wide. The same kind with other parameters has the same hue,
//! lighter or darker, and another dash.

use giveway_measure::{Fingerprint, kind};

/// The table of colours. It is data, because the code names no discipline.
const TABLE: &str = include_str!("../assets/colours.txt");

/// The colour and the dash of a discipline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// The colour as `#rrggbb`.
    pub colour: String,
    /// Lengths of dash and gap in pixels; empty for a solid line.
    pub dash: Vec<u32>,
}

/// Dashes of the first, second, third... discipline of a kind.
const DASHES: [&[u32]; 5] = [&[], &[6, 3], &[2, 2], &[8, 3, 2, 3], &[12, 4]];

/// Shades of the first, second, third... discipline of a kind: the share of white (positive) or black, in
/// percent.
const SHADES: [i32; 5] = [0, 35, -30, 55, -50];

/// The looks of these disciplines, in their order. The colour of the first of a kind depends only on the
/// kind.
pub fn looks(specs: &[&str]) -> Vec<Look> {
    let before = |at: usize| specs[..at].iter().filter(|other| kind(other) == kind(specs[at])).count();
    (0..specs.len())
        .map(|at| {
            let nth = before(at) % DASHES.len();
            Look { colour: shaded(colour(kind(specs[at])), SHADES[nth]), dash: DASHES[nth].to_vec() }
        })
        .collect()
}

impl Look {
    /// Number of different variants of a look.
    pub(crate) const VARIANTS: usize = DASHES.len();

    /// The look of the second, third... line of one discipline in a figure: the same hue with another shade
    /// and dash. Number 0 is the look itself.
    pub(crate) fn variant(&self, number: usize) -> Look {
        let nth = number % DASHES.len();
        if nth == 0 {
            return self.clone();
        }
        Look { colour: shaded(&self.colour, SHADES[nth]), dash: DASHES[nth].to_vec() }
    }

    /// The look of a line without a discipline, such as a bound: a colour of the page, unlike those of
    /// disciplines.
    pub(crate) fn neutral(number: usize) -> Look {
        const COLOURS: [&str; 3] = ["var(--ink)", "var(--soft)", "var(--faint)"];
        Look {
            colour: COLOURS[number % COLOURS.len()].to_owned(),
            dash: DASHES[number % DASHES.len()].to_vec(),
        }
    }
}

/// The colour of a kind: its own in the table, or one that its name chooses from the table.
fn colour(kind: &str) -> &'static str {
    let known = table().find(|(name, _)| *name == kind);
    let (_, colour) = known.unwrap_or_else(|| {
        let number = Fingerprint::of(kind).number() as usize;
        table().nth(number % table().count()).expect("the table is not empty")
    });
    colour
}

/// The kinds and colours of the table.
fn table() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(' ')).map(|(name, colour)| (name, colour.trim()))
}

/// A colour with white or black mixed in.
fn shaded(colour: &str, percent: i32) -> String {
    let channel = |at: usize| i32::from_str_radix(&colour[at..at + 2], 16).expect("the table has colours");
    let towards = if percent > 0 { 255 } else { 0 };
    let mixed = |at| {
        let value = channel(at);
        value + (towards - value) * percent.abs() / 100
    };
    format!("#{:02x}{:02x}{:02x}", mixed(1), mixed(3), mixed(5))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_table_has_one_colour_for_each_kind() {
        let kinds: BTreeSet<&str> = table().map(|(kind, _)| kind).collect();
        let colours: BTreeSet<&str> = table().map(|(_, colour)| colour).collect();
        assert_eq!((kinds.len(), colours.len()), (table().count(), table().count()));
        for (kind, colour) in table() {
            let hex = colour.len() == 7 && colour[1..].chars().all(|c| c.is_ascii_hexdigit());
            assert!(colour.starts_with('#') && hex, "{kind}: {colour}");
        }
    }

    /// Relative luminance as in WCAG 2.2. A contrast of 2.7 against white is (1 + 0.05)/(L + 0.05), so L is
    /// at most 0.33; against the dark page (L = 0.009) it follows from L of at least 0.11.
    #[test]
    fn every_colour_stands_out_on_both_pages() {
        for (kind, colour) in table() {
            let linear = |at: usize| {
                let share = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
                if share <= 0.04045 { share / 12.92 } else { libm::pow((share + 0.055) / 1.055, 2.4) }
            };
            let luminance = 0.2126 * linear(1) + 0.7152 * linear(3) + 0.0722 * linear(5);
            assert!((0.13..0.33).contains(&luminance), "{kind}: {luminance}");
        }
    }

    #[test]
    fn a_kind_keeps_its_colour_and_its_variants_their_hue() {
        let alone = looks(&["efd limit 300p"]);
        let among = looks(&["fifo", "efd", "efd limit 9p", "unheard of"]);
        assert_eq!(alone[0], among[1]);
        assert_eq!((among[2].colour.as_str(), among[2].dash.as_slice()), ("#e39659", [6, 3].as_slice()));
        assert_eq!(among[3], looks(&["unheard something"])[0], "the same on every machine");
    }
}
