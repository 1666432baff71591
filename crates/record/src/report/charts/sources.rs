//! The traffic sources that charts over time show, and their colours, which are the same in all of them.

use giveway_document::chart::{Key, Swatch};

use crate::report::read::{Folder, SharePoint};

/// The largest number of sources with their own colour. The other sources are drawn as one.
pub(super) const MAX_SOURCES: usize = 7;
/// The name of the other sources together.
pub(super) const OTHERS: &str = "others";

/// Colours of sources, none of them a discipline's: P. Tol, "Colour Schemes" (2021), the bright scheme.
const COLOURS: [&str; MAX_SOURCES + 1] =
    ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#ee8866", "#bbbbbb"];

/// The sources that sent anything, in the order of the scenario. If there are many, only those that sent
/// most, and "others".
pub(super) fn sources<'a>(folder: &Folder, points: impl Iterator<Item = &'a SharePoint>) -> Vec<String> {
    let mut sent: Vec<(String, u64)> = Vec::new();
    for name in &folder.manifest.measured.sources {
        if !sent.iter().any(|(known, _)| known == name) {
            sent.push((name.clone(), 0));
        }
    }
    for point in points {
        match sent.iter_mut().find(|(known, _)| *known == point.source) {
            Some((_, total)) => *total += point.bytes,
            None => sent.push((point.source.clone(), point.bytes)),
        }
    }
    sent.retain(|(_, total)| *total > 0);
    if sent.len() <= MAX_SOURCES + 1 {
        return sent.into_iter().map(|(name, _)| name).collect();
    }
    let mut totals: Vec<u64> = sent.iter().map(|(_, total)| *total).collect();
    totals.sort_unstable_by(|a, b| b.cmp(a));
    let least = totals[MAX_SOURCES - 1];
    let large = sent.into_iter().filter(|(_, total)| *total >= least).take(MAX_SOURCES).map(|(name, _)| name);
    large.chain([OTHERS.to_owned()]).collect()
}

/// The colours of the sources. Grey is for "others".
pub(super) fn colours(sources: &[String]) -> Vec<&'static str> {
    let colour = |(at, name): (usize, &String)| COLOURS[if name == OTHERS { MAX_SOURCES } else { at }];
    sources.iter().enumerate().map(colour).collect()
}

/// The key of the sources that `shown` accepts.
pub(super) fn key(sources: &[String], shown: impl Fn(&String) -> bool) -> Key {
    let colours = colours(sources);
    let entries = sources.iter().zip(colours).filter(|(name, _)| shown(name));
    Key::of("source", entries.map(|(name, colour)| Swatch::coloured(name, colour)).collect())
}
