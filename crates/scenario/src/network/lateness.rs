//! Reads a lateness: how late a machine wakes up.

use std::path::Path;

use giveway_files::input;
use giveway_links::{Lateness, Wake};
use giveway_qdisc::Span;

use crate::diagnostic::Diagnostic;
use crate::fields::Reading;
use crate::hints::{clipped, listed};
use crate::tree::Node;

/// A distribution: the maximum of uniform delays, a name, or a file. `None` if it is wrong, which is reported
/// at `node`.
pub(crate) fn lateness(
    reading: &mut Reading,
    node: &Node,
    key: &str,
    written: &str,
    what: Wake,
    folder: &Path,
    files: &mut Vec<String>,
) -> Option<Lateness> {
    if let Ok(most) = written.parse::<Span>() {
        if most > Lateness::LONGEST {
            let message = format!("{key}: {most} is longer than {}", Lateness::LONGEST);
            reading.report(Diagnostic::error(node.span.clone(), message).help("write for example \"50us\""));
            return None;
        }
        return Some(Lateness::uniform(most));
    }
    if let Some(named) = Lateness::named(written, what) {
        return Some(named);
    }
    if !written.ends_with(".csv") {
        let message = format!(
            "{key}: \"{}\" is neither a time nor a file nor a known machine",
            clipped(written.to_owned())
        );
        let names = listed(&Lateness::NAMES);
        let help =
            format!("write a time such as \"50us\", a file that ends with .csv, or a machine: {names}");
        reading.report(Diagnostic::error(node.span.clone(), message).help(help));
        return None;
    }
    if !files.iter().any(|file| file == written) {
        files.push(written.to_owned());
    }
    let text = match input::read_to_string(&folder.join(written)) {
        Ok(text) => text,
        Err(error) => {
            let message = format!("{key}: {written} cannot be read: {error}");
            let help = "the path is relative to the folder of the scenario; giveway testbed \
                        --measure-timing writes such a file";
            reading.report(Diagnostic::error(node.span.clone(), message).help(help));
            return None;
        }
    };
    match Lateness::parse(&text, what) {
        Ok(lateness) => Some(lateness),
        Err(error) => {
            let line = error.line.map(|line| format!(", line {line}")).unwrap_or_default();
            let message = format!("{key}: {written}{line}: {}", clipped(error.message));
            reading.report(Diagnostic::error(node.span.clone(), message).help(error.help));
            None
        }
    }
}
