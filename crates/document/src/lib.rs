//! Pages in one file: headings, text, tables, and figures from numbers, in the style of the report of a run.
//! A page opens offline, prints, and has no clock: equal documents give equal pages, byte by byte.
//!
//! ```
//! use giveway_document::{Axis, Document, Figure, Mark, Panel, Part, Point, Series};
//!
//! let times = Series {
//!     name: "EFD".into(),
//!     discipline: "efd limit 300p".into(), // has the colour of the reports
//!     points: vec![Point::new(4.0, 0.02), Point::within(8.0, 0.05, 0.01)],
//! };
//! let page = Document {
//!     title: "Flow completion times".into(),
//!     subtitle: "ten seeds".into(),
//!     parts: vec![
//!         Part::Text("Small transfers are fast.".into()),
//!         Part::Figure(Figure {
//!             id: "fig-5".into(),
//!             title: "Flow completion time by load".into(),
//!             caption: "Means and 95 % intervals.".into(),
//!             panels: vec![Panel {
//!                 title: String::new(),
//!                 x: Axis { title: "load (Mbit/s)".into(), ..Axis::default() },
//!                 y: Axis { title: "time (s)".into(), logarithmic: true, ..Axis::default() },
//!                 mark: Mark::Line,
//!                 series: vec![times],
//!             }],
//!             columns: 1,
//!         }),
//!     ],
//! }
//! .html();
//! assert!(page.starts_with("<!DOCTYPE html>") && page.contains("Small transfers are fast."));
//! ```

#![forbid(unsafe_code)]

pub mod axis;
pub mod chart;
mod colours;
pub mod columns;
mod figure;
mod forest;

mod heat;
mod html;
mod parts;
mod sheet;
pub mod shell;
mod vision;

pub use colours::{Look, looks};
pub use giveway_text::harmless;
pub use parts::{
    Axis, Cell, Document, Figure, Forest, ForestRow, HeatCell, HeatMap, HeatPanel, Mark, Panel, Part, Point,
    Series, Shade, Sheet, Sign, Tone, VerdictCell, Verdicts,
};
