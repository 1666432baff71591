//! Figures: panels, a legend, and a caption.

pub(crate) mod legend;
mod omitted;
mod panel;

use serde_json::Map;

use self::legend::{Legend, Looks};
use self::omitted::Omitted;
use crate::chart::{Chart, Plot};
use crate::parts::{Figure, Panel};

/// The heights of panels for each number of panels in a row, pixels.
const HEIGHTS: [u32; 4] = [340, 280, 240, 200];

impl Figure {
    /// The figure as a chart. `place` is its anchor if it has none.
    pub(crate) fn chart(&self, place: &str, looks: &Looks) -> Chart {
        let legend = Legend::of(self, looks);
        let mut omitted = Omitted::default();
        let columns = self.columns.clamp(1, HEIGHTS.len()).min(self.panels.len().max(1));
        let plot = |panel: &Panel| match panel.plot(&legend, HEIGHTS[columns - 1], &mut omitted) {
            Some((spec, data)) => Plot { title: panel.title.clone(), spec, data, ..Plot::default() },
            None => {
                let words = "There are no data for this panel.".to_owned();
                Plot { title: panel.title.clone(), words, ..Plot::default() }
            }
        };
        let panels: Vec<Plot> = self.panels.iter().map(plot).collect();
        let empty = panels.iter().all(|panel| !panel.words.is_empty());
        let caption = [self.caption.clone()].into_iter().filter(|caption| !caption.is_empty());
        Chart {
            id: if self.id.is_empty() { place.to_owned() } else { self.id.clone() },
            title: self.title.clone(),
            caption: caption.chain(omitted.sentences()).collect::<Vec<_>>().join(" "),
            keys: legend.key().into_iter().collect(),
            columns,
            panels: if empty { Vec::new() } else { panels },
            data: Map::new(),
            sheet: None,
        }
    }
}
