//! A page with all kinds of parts. Run it with
//! `cargo run -p giveway-document --example document > page.html`.

use giveway_document::{Axis, Cell, Document, Figure, Mark, Panel, Part, Point, Series, Sheet, Tone};

fn main() {
    print!("{}", document().html());
}

/// The page.
pub fn document() -> Document {
    Document {
        title: "Efficient flow tables, from memory".into(),
        subtitle: "Made-up numbers: every part that a page can have".into(),
        parts: vec![
            Part::Text(
                "The first paragraph\nof the text.\n\nThe second one, with <b>no</b> markup & no \"magic\"."
                    .into(),
            ),
            Part::List(vec!["A claim that holds.".into(), "One that does not.".into()]),
            Part::Heading("Verdicts".into()),
            Part::Table(verdicts()),
            Part::Heading("Figures".into()),
            Part::Figure(response_times()),
            Part::Figure(table_sizes()),
            Part::Figure(episodes()),
            Part::Figure(losses()),
            Part::Figure(progress()),
            Part::Figure(Figure {
                id: "none".into(),
                title: "What nobody measured".into(),
                ..Figure::default()
            }),
            Part::Details {
                summary: "The scenario".into(),
                text: "duration = \"1000 s\"\n\n[[link]]\nrate = \"10 Mbit/s\"\n".into(),
            },
        ],
    }
}

fn verdicts() -> Sheet {
    let cell = |text: &str, tone| Cell { text: text.into(), tone };
    let row = |claim: &str, figures: [&str; 2], verdict: &str, tone| {
        let [found, band] = figures.map(Cell::plain);
        vec![Cell::plain(claim), found, band, cell(verdict, tone), cell("Fig. 2, section 4", Tone::Faint)]
    };
    Sheet {
        caption: "What the paper says, and what came of it".into(),
        head: ["claim", "found", "wanted", "verdict", "where"].map(str::to_owned).into(),
        rows: vec![
            row(
                "The flow table of EFD is an order of magnitude smaller than that of LAS, at a load of 8 Mbit/s",
                ["0.05 ± 0.01", "≤ 0.1"],
                "holds",
                Tone::Good,
            ),
            row(
                "X-Protect halves the flow table of LAS",
                ["0.81", "0.25 to 0.65"],
                "does not hold",
                Tone::Bad,
            ),
            row("Nobody knows", ["-", ""], "not judged", Tone::Plain),
        ],
    }
}

fn series(name: &str, discipline: &str, points: impl IntoIterator<Item = Point>) -> Series {
    Series { name: name.into(), discipline: discipline.into(), points: points.into_iter().collect() }
}

fn axis(title: &str) -> Axis {
    Axis { title: title.into(), ..Axis::default() }
}

fn log(title: &str) -> Axis {
    Axis { logarithmic: true, ..axis(title) }
}

const DISCIPLINES: [(&str, &str, f64); 4] = [
    ("FIFO", "fifo limit 300p", 5.0),
    ("LAS", "las limit 300p", 0.8),
    ("Run2C", "run2c limit 300p", 1.5),
    ("EFD", "efd limit 300p", 1.2),
];

/// Two panels of lines with intervals on logarithmic axes. One point is not above zero.
fn response_times() -> Figure {
    let panel = |title: &str, load: f64| Panel {
        title: title.into(),
        x: log("size (MSS)"),
        y: log("mean flow completion time (s)"),
        mark: Mark::Line,
        series: DISCIPLINES
            .map(|(name, spec, slow)| {
                let sizes = (0..9).map(|at| f64::from(1 << at));
                let mut points: Vec<Point> = sizes
                    .map(|size| {
                        let time = 0.01 * slow * load * (size + if name == "FIFO" { 30.0 } else { 1.0 });
                        Point::within(size, time, time * 0.3)
                    })
                    .collect();
                if name == "LAS" {
                    points.push(Point::new(512.0, 0.0));
                }
                series(name, spec, points)
            })
            .into(),
    };
    Figure {
        id: "fig-5".into(),
        title: "Mean flow completion time by size".into(),
        caption: "Means over the seeds with their 95 % intervals.".into(),
        panels: vec![panel("load 8 Mbit/s", 1.0), panel("load 15 Mbit/s", 4.0)],
        columns: 2,
    }
}

/// Steps over time in one wide panel, with a bound that belongs to no discipline.
fn table_sizes() -> Figure {
    let wave = |high: u64, at: u64| (high * (5 + at * 7 % 11) / 10 + at * at % 5) as f64;
    let over_time = |high| (0..200).map(move |at| Point::new(at as f64 * 5.0, wave(high, at)));
    Figure {
        id: "fig-2".into(),
        title: "Flow table over time".into(),
        caption: String::new(),
        panels: vec![Panel {
            title: String::new(),
            x: Axis { domain: Some((0.0, 1000.0)), ..axis("time (s)") },
            y: axis("flows in the table"),
            mark: Mark::Steps,
            series: vec![
                series("LAS", "las limit 300p", over_time(130)),
                series("EFD", "efd limit 300p", over_time(12)),
                series("the buffer", "", [Point::new(0.0, 300.0), Point::new(1000.0, 300.0)]),
            ],
        }],
        columns: 1,
    }
}

/// Points on logarithmic axes, more than are drawn.
fn episodes() -> Figure {
    let points = (1..5000).map(|at: u64| {
        let packets = 1 + at * at % 3001;
        Point::new(packets as f64, (1 + (packets * (3 + at % 7)) % (1 + packets / 3)) as f64)
    });
    Figure {
        id: "fig-1".into(),
        title: "Fragments of a connection".into(),
        caption: "Each point is a connection.".into(),
        panels: vec![Panel {
            title: String::new(),
            x: log("packets"),
            y: log("fragments"),
            mark: Mark::Points,
            series: vec![series("", "efd limit 300p", points)],
        }],
        columns: 1,
    }
}

/// Bars with intervals, over names and over numbers, and on a logarithmic axis.
fn losses() -> Figure {
    let bars = |factor: f64| {
        DISCIPLINES
            .map(|(name, spec, slow)| {
                let loads = [(0.0, 1.0), (1.0, 4.0), (2.0, 9.0)];
                let points = loads
                    .map(|(at, load)| Point::within(at, slow * load * factor, slow * load * factor * 0.25));
                series(name, spec, points)
            })
            .into()
    };
    let loads = || Axis {
        categories: ["4 Mbit/s", "8 Mbit/s", "12 Mbit/s"].map(str::to_owned).into(),
        ..axis("load")
    };
    let panel = |title: &str, x, y, series| Panel { title: title.into(), x, y, mark: Mark::Bars, series };
    Figure {
        id: "fig-7".into(),
        title: "Loss of one stream".into(),
        caption: "Means over the seeds with their 95 % intervals.".into(),
        panels: vec![
            panel("64 kbit/s", loads(), axis("loss (%)"), bars(1.0)),
            panel("500 kbit/s", loads(), log("loss (%)"), bars(0.02)),
            panel("by number", axis("threshold (packets)"), axis("loss (%)"), bars(0.5)),
        ],
        columns: 3,
    }
}

/// Several lines of one discipline, and a panel without data.
fn progress() -> Figure {
    let line = |rate: f64, pause: f64| {
        (0..120).map(move |at| {
            let time = f64::from(at) * 2.0;
            Point::new(time, rate * (time - if time > 80.0 { pause.min(time - 80.0) } else { 0.0 }))
        })
    };
    let panel = |title: &str, discipline: &str, pause: f64| Panel {
        title: title.into(),
        x: axis("time since the start (s)"),
        y: axis("progress (MB)"),
        mark: Mark::Line,
        series: if discipline.is_empty() {
            Vec::new()
        } else {
            vec![
                series("largest", discipline, line(0.5, pause)),
                series("second", discipline, line(0.3, pause * 0.7)),
                series("third", discipline, line(0.2, 0.0)),
            ]
        },
    };
    Figure {
        id: "fig-6".into(),
        title: "Progress of the three largest transfers".into(),
        caption: "Bytes that were acknowledged.".into(),
        panels: vec![
            panel("LAS", "las limit 300p", 60.0),
            panel("EFD", "efd limit 300p", 2.0),
            panel("LARS", "", 0.0),
        ],
        columns: 2,
    }
}
