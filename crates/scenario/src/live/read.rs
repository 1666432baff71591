//! Reads the test bed of a scenario file.

use super::contender::{self, Contender};
use super::limits::{self, Emulated, MTU};
use super::model::Live;
use crate::diagnostic::{Diagnostic, Severity};
use crate::fields::Reading;
use crate::file::ScenarioFile;
use crate::network;
use crate::schedule::{self, Schedule};
use crate::tree::Node;

/// Reads a scenario on a test bed. Returns `None` if anything in the file is wrong.
pub(crate) fn read(reading: &mut Reading, file: &ScenarioFile<'_>) -> Option<(Live, Schedule)> {
    schedule::refuse_cooldown(reading, file, "a test bed");
    let mut root = file.root.clone();
    let kernels = contender::take_kernel(reading, &mut root);
    let without = ScenarioFile { root: &root, ..*file };
    let (network, schedule) = network::read_as(reading, &without, "a scenario on a test bed")?;
    if let Some(node) = file.root.get("disciplines").filter(|node| node.items().len() == kernels.len()) {
        // The network has a placeholder for the disciplines of the kernel. The user did not write it, so
        // warnings about it are removed.
        let about = |found: &Diagnostic| found.severity == Severity::Warning && found.span == node.span;
        reading.diagnostics.retain(|found| !about(found));
    }
    let Emulated { near, far, forward, reverse, tcp } =
        limits::check(reading, (&root, file.folder), &network)?;
    for (number, _) in &kernels {
        if forward.varies || reverse.varies {
            let place = file.root.get("disciplines").map(Node::items).and_then(|nodes| nodes.get(*number));
            let message = "the rate of a discipline in the kernel is constant";
            let wrong = Diagnostic::error(place.map_or(0..0, |node| node.span.clone()), message);
            reading.report(wrong.help("write a constant rate, or a discipline of giveway list"));
        }
    }
    let written = file.root.get("disciplines").map_or(&[][..], Node::items);
    let ours = network.disciplines.len();
    let compared = contender::order(reading, written, ours, &kernels, forward.rate, MTU);
    if reading.failed() {
        return None;
    }
    let live = Live { compared, near, far, forward, reverse, tcp, network };
    for (contender, node) in live.compared.iter().zip(written) {
        let in_kernel = !matches!(contender, Contender::Ours(_));
        if in_kernel && live.reverse_in_kernel().is_none() {
            let message = "the reverse direction has a discipline that Linux does not have";
            let wrong = Diagnostic::error(node.span.clone(), message);
            reading.report(wrong.help(
                "leave out the qdisc of the reverse direction, or compare disciplines of giveway list",
            ));
        }
    }
    (!reading.failed()).then_some((live, schedule))
}
