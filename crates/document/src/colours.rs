//! One colour per kind of discipline, project-wide. The same kind with other parameters has the same hue,
//! lighter or darker, and another dash.

use giveway_measure::{Fingerprint, kind};

use crate::vision;

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

/// Dashes, in the order of use. The gaps of an upper line show the lines below it.
const DASHES: [&[u32]; 8] =
    [&[], &[7, 3], &[2, 3], &[10, 3, 2, 3], &[5, 5], &[12, 4], &[8, 2, 2, 2, 2, 2], &[3, 2]];

/// Shades of the first, second, third... discipline of a kind: the share of white (positive) or black, in
/// percent.
const SHADES: [i32; 5] = [0, 35, -30, 55, -50];

/// The looks of these disciplines, in their order. The colour of the first of a kind depends only on the
/// kind. Every discipline has its own dash, so that lines at the same place are both visible; if there are
/// more disciplines than dashes, those with the same dash have colours that are not alike.
pub fn looks(specs: &[&str]) -> Vec<Look> {
    let before = |at: usize| specs[..at].iter().filter(|other| kind(other) == kind(specs[at])).count();
    let mut looks: Vec<Look> = Vec::new();
    for at in 0..specs.len() {
        let colour = shaded(colour(kind(specs[at])), SHADES[before(at) % SHADES.len()]);
        let users = |dash: &[u32]| looks.iter().filter(|look| look.dash == dash).collect::<Vec<_>>();
        let unlike = |look: &&Look| vision::difference(&look.colour, &colour) >= vision::ALIKE;
        let free = DASHES.iter().find(|dash| users(dash).is_empty());
        let shared = || DASHES.iter().find(|dash| users(dash).iter().all(unlike));
        let dash = free.or_else(shared).unwrap_or(&DASHES[at % DASHES.len()]).to_vec();
        looks.push(Look { colour, dash });
    }
    looks
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
        Look { colour: shaded(&self.colour, SHADES[nth % SHADES.len()]), dash: DASHES[nth].to_vec() }
    }

    /// The look of a line without a discipline, such as a bound: a colour of the page, unlike the colours of
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
            let [red, green, blue] = vision::linear(colour);
            let luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
            assert!((0.13..0.33).contains(&luminance), "{kind}: {luminance}");
        }
    }

    /// The kinds that are compared most often. `pie` and `efd` had a difference of 6 under deuteranopia, and
    /// `fifo` and `drr` of 10.
    #[test]
    fn the_usual_disciplines_are_distinguished_with_deuteranopia() {
        let usual = ["fifo", "fq_codel", "cake", "pie", "drr", "efd", "codel", "red", "las"];
        for (at, one) in usual.iter().enumerate() {
            for other in &usual[..at] {
                let difference = vision::difference(colour(one), colour(other));
                assert!(difference >= vision::ALIKE, "{one} and {other}: {difference}");
            }
        }
    }

    /// Lines that coincide are visible by their dashes, whatever their colours.
    #[test]
    fn up_to_eight_lines_have_dashes_of_their_own() {
        let kinds: Vec<&str> = table().map(|(kind, _)| kind).collect();
        let dashes: BTreeSet<Vec<u32>> = looks(&kinds[..8]).into_iter().map(|look| look.dash).collect();
        assert_eq!(dashes.len(), 8);
        // With more of them, no two with the same dash are alike.
        let twelve = looks(&kinds[..12]);
        for (at, one) in twelve.iter().enumerate() {
            for other in twelve[..at].iter().filter(|other| other.dash == one.dash) {
                assert!(vision::difference(&one.colour, &other.colour) >= vision::ALIKE, "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn a_kind_keeps_its_colour_and_its_variants_their_hue() {
        let alone = looks(&["efd limit 300p"]);
        let among = looks(&["fifo", "efd", "efd limit 9p", "unheard of"]);
        assert_eq!(alone[0].colour, among[1].colour);
        assert_eq!(among[2].colour, shaded(&among[1].colour, SHADES[1]));
        assert_eq!(among[3].colour, looks(&["unheard something"])[0].colour, "the same on every machine");
    }
}
