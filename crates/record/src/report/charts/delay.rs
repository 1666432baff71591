//! Distributions of sojourn times: of small packets, and on a switch of each class of packets.

use giveway_document::axis::{PLAIN, logarithmic};
use giveway_document::chart::{Chart, Plot};
use giveway_document::columns::number;
use giveway_measure::Packets;
use serde_json::json;

use super::frame::{Disciplines, at_port, data, hover, over_seeds};
use crate::report::error::ReportError;
use crate::report::read::{DelayPoint, Folder};

/// A discipline, and a list of points for each of its seeds.
type Seeds<'a> = (&'a str, Vec<Vec<DelayPoint>>);

pub(super) fn charts(
    folder: &Folder,
    disciplines: &Disciplines,
    ports: &[&str],
) -> Result<Vec<Chart>, ReportError> {
    let read = |spec| Ok((spec, folder.delays(spec)?));
    let delays = folder.disciplines().into_iter().map(read).collect::<Result<Vec<Seeds<'_>>, _>>()?;
    let subjects = ports.iter().flat_map(|port| match folder.manifest.measured.slot_s {
        Some(slot_s) => Subject::classes(port, slot_s),
        None => Subject::small(folder, port, &delays).into_iter().collect(),
    });
    Ok(subjects.filter_map(|subject| chart(folder, disciplines, &subject, &delays)).collect())
}

/// The packets of a chart, and the words for their times.
struct Subject<'a> {
    port: &'a str,
    packets: Packets,
    title: String,
    /// A sentence about the packets.
    about: String,
    /// The name of the times.
    noun: &'static str,
    /// The unit of the axis, and its length in seconds.
    unit: (&'static str, f64),
}

impl<'a> Subject<'a> {
    /// The small packets of a port; without small packets, all packets; `None` without packets.
    fn small(folder: &Folder, port: &'a str, delays: &[Seeds<'_>]) -> Option<Subject<'a>> {
        let of_port = || points(delays).filter(|point| point.port == port);
        of_port().next()?;
        let most = folder.manifest.measured.small_packet_bytes;
        let (packets, what, about) = if of_port().any(|point| point.packets == Packets::Small) {
            let about = format!("up to {most} bytes: calls, games, name look-ups, acknowledgements.");
            (Packets::Small, "small packets", format!("Sojourn times at the port of packets {about}"))
        } else {
            let about = format!("none of them is as small as {most} bytes.");
            (Packets::All, "packets", format!("Sojourn times at the port of all packets; {about}"))
        };
        let title = at_port(&format!("Sojourn time of {what}"), port, folder);
        Some(Subject { port, packets, title, about, noun: "sojourn time", unit: ("ms", 1e-3) })
    }

    /// The classes of the packets of a switch, whose times are recorded at one port.
    fn classes(port: &'a str, slot_s: f64) -> Vec<Subject<'a>> {
        let class = |packets, what: &str, about: &str| Subject {
            port,
            packets,
            title: format!("Wait of {what} packets"),
            about: format!(
                "The wait of {about} from their arrival to the end of their crossing, without the time of the crossing itself."
            ),
            noun: "wait",
            unit: ("slots", slot_s),
        };
        vec![
            class(Packets::Small, "short", "short packets, which have one cell,"),
            class(Packets::Large, "long", "long packets"),
        ]
    }
}

/// All points of these disciplines.
fn points<'a>(delays: &'a [Seeds<'_>]) -> impl Iterator<Item = &'a DelayPoint> {
    delays.iter().flat_map(|(_, seeds)| seeds).flatten()
}

/// The distribution of these times; `None` if no packet had any.
fn chart(
    folder: &Folder,
    disciplines: &Disciplines,
    subject: &Subject<'_>,
    delays: &[Seeds<'_>],
) -> Option<Chart> {
    let (unit, one_s) = subject.unit;
    let own = points(delays).filter(|point| point.port == subject.port && point.packets == subject.packets);
    let longest = own.map(|point| point.delay_s).fold(0.0, f64::max) / one_s;
    if longest == 0.0 {
        return None;
    }
    // Four decades below the longest. Shorter times are drawn at this floor.
    let floor = libm::pow(10.0, libm::log10(longest).ceil() - 4.0);
    let mut columns: Vec<_> =
        ["discipline", "share", "longer", "low", "median", "high"].map(|name| (name, vec![])).into();
    for (spec, seeds) in delays {
        for (share, low, median, high) in band(seeds, subject) {
            let drawn = |delay_s: f64| number((delay_s / one_s).max(floor));
            let longer = 1.0 - share;
            let cells = [
                json!(disciplines.name(spec)),
                number(share),
                // No time exceeds the longest, and a logarithmic axis has no zero.
                if longer > 1e-9 { number(longer) } else { json!(null) },
                drawn(low),
                drawn(median),
                drawn(high),
            ];
            columns.iter_mut().zip(cells).for_each(|((_, column), cell)| column.push(cell));
        }
    }
    let (noun, seeds) = (subject.noun, folder.manifest.seeds.len());
    let over_all_seeds = if seeds > 1 {
        format!("Lines are medians over {seeds} seeds. Bands reach from the lowest seed to the highest.")
    } else {
        format!("One run ({}).", over_seeds(folder))
    };
    let caption = format!(
        "{} First: the share of packets with at most this {noun}. A line far to the left is good. Second: the share of \
         packets with a longer {noun}. A line that falls early is good, because the slowest packets determine the \
         quality of a call or the end of a transfer. {over_all_seeds} Each line has up to 123 points; times below {} {unit} are drawn at this value.",
        subject.about,
        number(floor)
    );
    let x = |field| {
        let mut x = json!({ "field": field, "type": "quantitative", "title": format!("{noun} ({unit})") });
        logarithmic(&mut x, floor, longest, PLAIN);
        x
    };
    let panel = |y: serde_json::Value, title: &str| {
        let band = json!({
            "mark": { "type": "area", "orient": "horizontal", "opacity": 0.18 },
            "encoding": { "x": x("low"), "x2": { "field": "high" }, "y": y, "color": disciplines.colour() },
        });
        let line = json!({
            "mark": "line",
            "encoding": { "x": x("median"), "y": y, "order": { "field": "share", "type": "quantitative" },
                          "color": disciplines.colour(), "strokeDash": disciplines.dash(),
                          "strokeWidth": disciplines.line_width() },
        });
        let over = hover(&x("median"), &y, &[("discipline", "discipline")]);
        let layers = if seeds > 1 { vec![band, line, over] } else { vec![line, over] };
        let spec = json!({
            "data": { "name": "delay" }, "height": 280, "layer": layers,
            "transform": [{ "filter": format!("isValid(datum.{})", y["field"].as_str().unwrap_or("share")) }],
        });
        Plot { title: title.to_owned(), spec, ..Plot::default() }
    };
    let share = json!({ "field": "share", "type": "quantitative", "title": "share of packets, at most",
                        "scale": { "domain": [0, 1] }, "axis": { "format": "~%", "tickCount": 5 } });
    let longer = json!({ "field": "longer", "type": "quantitative", "title": "share of packets, longer than",
                         "scale": { "type": "log", "domain": [0.0001, 1] },
                         "axis": { "format": "~%", "values": [1, 0.1, 0.01, 0.001, 0.0001] } });
    let specs: Vec<&str> = delays.iter().map(|(spec, _)| *spec).collect();
    Some(Chart {
        title: subject.title.clone(),
        caption,
        keys: vec![disciplines.key(&specs, true)],
        columns: 2,
        panels: vec![panel(share, "Up to a time"), panel(longer, "The slowest packets")],
        data: data([("delay", columns)]),
        ..Chart::default()
    })
}

/// Times for each share, in seconds: the lowest, the median and the highest of the seeds.
fn band(seeds: &[Vec<DelayPoint>], subject: &Subject<'_>) -> Vec<(f64, f64, f64, f64)> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    let own = |point: &&DelayPoint| point.port == subject.port && point.packets == subject.packets;
    for point in seeds.iter().flatten().filter(own) {
        points.push((point.share, point.delay_s));
    }
    points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let shares = points.chunk_by(|a, b| a.0 == b.0);
    let band = |seeds: &[(f64, f64)]| {
        let (low, median, high) = (seeds[0], seeds[(seeds.len() - 1) / 2], seeds[seeds.len() - 1]);
        (low.0, low.1, median.1, high.1)
    };
    shares.map(band).collect()
}
