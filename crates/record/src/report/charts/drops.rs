//! Drops by reason.

use giveway_document::axis::PLAIN;
use giveway_document::chart::{Chart, Key, Plot, Swatch};
use giveway_document::columns::number;
use giveway_qdisc::DropReason;
use serde_json::json;

use super::frame::{Disciplines, at_port, data, over_seeds};
use crate::report::error::ReportError;
use crate::report::read::{Folder, Link};

/// The colour and the label of a reason.
const fn appearance(why: DropReason) -> (&'static str, &'static str) {
    match why {
        DropReason::Overlimit => ("#4477aa", "buffer full"),
        DropReason::Pushout => ("#66ccee", "pushed out"),
        DropReason::Early => ("#ccbb44", "early, at arrival"),
        DropReason::Congested => ("#ee8866", "early, at departure"),
        DropReason::FlowLimit => ("#aa3377", "limit of a flow"),
        DropReason::TooLarge => ("#882255", "too large"),
        DropReason::NoClass => ("#999933", "no class"),
        DropReason::Policy => ("#228833", "policy"),
        DropReason::Reset => ("#332288", "reset"),
        DropReason::Wire => ("#bbbbbb", "lost on the wire"),
        DropReason::Unreachable => ("#ee6677", "no route"),
    }
}

pub(super) fn charts(
    folder: &Folder,
    disciplines: &Disciplines,
    ports: &[&str],
) -> Result<Vec<Chart>, ReportError> {
    let read = |spec| Ok((spec, folder.links(spec)?));
    let links = folder.disciplines().into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(ports.iter().filter_map(|port| chart(folder, disciplines, port, &links)).collect())
}

/// The drops at a port; `None` if no packet was dropped there.
fn chart(
    folder: &Folder,
    disciplines: &Disciplines,
    port: &str,
    links: &[(&str, Vec<Vec<Link>>)],
) -> Option<Chart> {
    let title = at_port("Drops by reason", port, folder);
    let mean = |seeds: &[Vec<Link>], why: DropReason| {
        let of_port = seeds.iter().flatten().filter(|link| link.port == port);
        let counts: Vec<u64> = of_port.filter_map(|link| Some(link.drops?[why as usize])).collect();
        counts.iter().sum::<u64>() as f64 / counts.len().max(1) as f64
    };
    let mut columns: Vec<_> = ["discipline", "reason", "place", "packets"].map(|name| (name, vec![])).into();
    let mut totals: Vec<_> = ["discipline", "packets"].map(|name| (name, vec![])).into();
    for (spec, seeds) in links {
        let all: f64 = DropReason::ALL.into_iter().map(|why| mean(seeds, why)).sum();
        let cells = [json!(disciplines.name(spec)), number(all)];
        totals.iter_mut().zip(cells).for_each(|((_, column), cell)| column.push(cell));
    }
    let mut reasons: Vec<DropReason> = Vec::new();
    for why in DropReason::ALL {
        for (spec, seeds) in links {
            let packets = mean(seeds, why);
            if packets == 0.0 {
                continue;
            }
            if !reasons.contains(&why) {
                reasons.push(why);
            }
            let cells = [
                json!(disciplines.name(spec)),
                json!(appearance(why).1),
                json!(why as usize),
                number(packets),
            ];
            columns.iter_mut().zip(cells).for_each(|((_, column), cell)| column.push(cell));
        }
    }
    if reasons.is_empty() {
        return None;
    }
    let caption = format!(
        "Packets lost within the measurement interval, mean per run ({}). A queue slows TCP down by dropping packets, so zero drops is \
         not the aim. Few and early drops are good, and none of flows that send less than their share. Marks (ECN) are not \
         drops; the table counts them.",
        over_seeds(folder)
    );
    let names: Vec<&str> = links.iter().map(|(spec, _)| disciplines.name(spec)).collect();
    let (colours, words): (Vec<&str>, Vec<&str>) = reasons.iter().map(|why| appearance(*why)).unzip();
    // Each discipline has its row, also one without drops.
    let y = json!({
        "field": "discipline", "type": "nominal", "title": null, "sort": names, "scale": { "domain": names },
        "axis": { "labelLimit": 260, "ticks": false, "labelPadding": 8, "domain": false, "grid": false },
    });
    let x = json!({ "field": "packets", "type": "quantitative", "title": "packets per run",
                    "axis": { "format": PLAIN, "tickCount": 7 } });
    let mut stacked = x.clone();
    stacked["stack"] = json!("zero");
    let spec = json!({
        "height": 30 * names.len(),
        "layer": [
            { "data": { "name": "drops" }, "mark": { "type": "bar", "height": { "band": 0.7 } },
              "encoding": {
                "y": y, "x": stacked,
                "order": { "field": "place", "type": "quantitative" },
                "color": { "field": "reason", "type": "nominal", "title": null,
                           "scale": { "domain": words, "range": colours }, "legend": null },
                "tooltip": [{ "field": "discipline" }, { "field": "reason" },
                            { "field": "packets", "title": "packets per run" }],
              } },
            { "data": { "name": "totals" },
              "mark": { "type": "text", "align": "left", "dx": 5, "color": "var(--soft)", "aria": false },
              "encoding": { "y": y, "x": x, "text": { "field": "packets", "type": "quantitative", "format": PLAIN } } },
        ],
    });
    let entries = words.iter().zip(&colours).map(|(reason, colour)| Swatch::coloured(reason, colour));
    Some(Chart {
        title,
        caption,
        keys: vec![Key::of("reason", entries.collect())],
        panels: vec![Plot { spec, ..Plot::default() }],
        data: data([("drops", columns), ("totals", totals)]),
        ..Chart::default()
    })
}
