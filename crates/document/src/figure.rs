//! Figures: panels, a legend, and a caption.

pub(crate) mod legend;
mod omitted;
mod panel;

use serde::Serialize;

use self::legend::{Legend, Looks};
use self::omitted::Omitted;
use crate::parts::Figure;
use crate::shell::{Plots, Swatch};

/// The width of the page, the space between panels, and the heights of panels for each number of panels in a
/// row; pixels.
const WIDTH: usize = 960;

const BETWEEN: usize = 24;

const HEIGHTS: [u32; 4] = [400, 330, 280, 240];

#[derive(Serialize)]
pub(crate) struct FigureView {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) caption: String,
    pub(crate) columns: usize,
    /// The key of colours; empty for a single series without a name.
    pub(crate) key: Vec<Swatch>,
    pub(crate) panels: Vec<PanelView>,
    /// The reason for an empty chart; empty if there is a chart.
    pub(crate) words: String,
}

#[derive(Serialize)]
pub(crate) struct PanelView {
    /// The name of the plot.
    pub(crate) id: String,
    pub(crate) title: String,
    /// The description for readers who do not see the chart.
    pub(crate) label: String,
    /// The reason for an empty chart; empty if there is a chart.
    pub(crate) words: String,
}

impl Figure {
    pub(crate) fn view(&self, place: &str, looks: &Looks, plots: &mut Plots) -> FigureView {
        let legend = Legend::of(self, looks);
        let mut omitted = Omitted::default();
        let columns = self.columns.clamp(1, HEIGHTS.len()).min(self.panels.len().max(1));
        let size = ((WIDTH - BETWEEN * (columns - 1)) / columns, HEIGHTS[columns - 1]);
        let mut panels: Vec<PanelView> = Vec::new();
        for (at, panel) in self.panels.iter().enumerate() {
            let id = format!("{place}-panel{}", at + 1);
            let label = [self.title.as_str(), panel.title.as_str()]
                .into_iter()
                .filter(|title| !title.is_empty())
                .collect::<Vec<_>>()
                .join(": ");
            let words = match panel.plot(&legend, size, &mut omitted) {
                Some((spec, data)) => {
                    plots.add(&id, &label, spec, data);
                    ""
                }
                None => "There are no data for this panel.",
            };
            panels.push(PanelView { id, title: panel.title.clone(), label, words: words.to_owned() });
        }
        let empty = panels.iter().all(|panel| !panel.words.is_empty());
        let caption = [self.caption.clone()].into_iter().filter(|caption| !caption.is_empty());
        FigureView {
            id: self.id.clone(),
            title: self.title.clone(),
            caption: caption.chain(omitted.sentences()).collect::<Vec<_>>().join(" "),
            columns,
            key: legend.key(),
            panels: if empty { Vec::new() } else { panels },
            words: if empty { "There are no data for this figure.".to_owned() } else { String::new() },
        }
    }
}
