//! The charts. A chart is a Vega-Lite specification and its data, or a sentence if there are no data. Its
//! caption describes a good result.

mod bursts;
mod completion;
mod contest;
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

pub(super) use frame::Disciplines;
pub(super) use glance::charts as glance;

/// The charts of one folder, in the order of the page.
pub(super) fn of_folder(folder: &Folder, disciplines: &Disciplines) -> Result<Vec<Chart>, ReportError> {
    if let Some(contest) = &folder.manifest.measured.contest {
        return Ok(contest::charts(folder, disciplines, contest));
    }
    let mut charts = completion::charts(folder, disciplines)?;
    let ports: Vec<&str> =
        folder.manifest.measured.ports.iter().map(String::as_str).take(MAX_PORTS).collect();
    charts.extend(delay::charts(folder, disciplines, &ports)?);
    charts.extend(over_time::charts(folder, disciplines, &ports)?);
    charts.extend(queue::charts(folder, disciplines, &ports)?);
    charts.extend(shares::charts(folder, disciplines, &ports)?);
    charts.extend(drops::charts(folder, disciplines, &ports)?);
    charts.extend(bursts::charts(folder, disciplines, &ports));
    Ok(charts)
}

/// The measured ports without their own charts.
pub(super) fn ports_left_out(folder: &Folder) -> &[String] {
    let measured = &folder.manifest.measured;
    // A matrix shows all of them.
    if measured.contest.is_some() { &[] } else { measured.ports.get(MAX_PORTS..).unwrap_or_default() }
}
