//! The charts. A chart is a Vega-Lite specification and its data. Its caption describes a good result. A
//! chart without data is left out.

mod bursts;
mod completion;
mod contest;
mod crossbar;
mod delay;
mod drops;
mod frame;
mod glance;
mod over_time;
mod queue;
mod shares;
mod sources;

use giveway_document::chart::Chart;

use self::frame::MAX_PORTS;
use super::error::ReportError;
use super::read::Folder;

pub(super) use crossbar::by_load;
pub(super) use frame::Disciplines;
pub(super) use glance::{FIGURES, charts as glance, noun, per_port};

/// The charts of one folder, in the order of the page, and sentences about those that the run is too short
/// for.
pub(super) fn of_folder(
    folder: &Folder,
    disciplines: &Disciplines,
) -> Result<(Vec<Chart>, Vec<String>), ReportError> {
    let measured = &folder.manifest.measured;
    if let Some(contest) = &measured.contest {
        return Ok((contest::charts(folder, disciplines, contest), Vec::new()));
    }
    let ports: Vec<&str> = measured.ports.iter().map(String::as_str).take(MAX_PORTS).collect();
    if measured.slot_s.is_some() {
        let mut charts = delay::charts(folder, disciplines, &ports)?;
        charts.extend(crossbar::charts(folder, disciplines)?);
        return Ok((charts, Vec::new()));
    }
    let mut charts = completion::charts(folder, disciplines)?;
    charts.extend(delay::charts(folder, disciplines, &ports)?);
    charts.extend(over_time::charts(folder, disciplines, &ports)?);
    charts.extend(queue::charts(folder, disciplines, &ports)?);
    charts.extend(shares::charts(folder, disciplines, &ports)?);
    charts.extend(drops::charts(folder, disciplines, &ports)?);
    let (bursts, missing) = bursts::charts(folder, disciplines, &ports);
    charts.extend(bursts);
    Ok((charts, missing))
}

/// The measured ports without their own charts.
pub(super) fn ports_left_out(folder: &Folder) -> &[String] {
    let measured = &folder.manifest.measured;
    // A matrix shows all of them.
    if measured.contest.is_some() { &[] } else { measured.ports.get(MAX_PORTS..).unwrap_or_default() }
}
