//! Verdicts as a matrix in colours: a row for each baseline or discipline, a column for each question.

use giveway_document::{Axis, HeatCell, HeatMap, HeatPanel, Shade};

use crate::card::{Card, Counts};
use crate::question::Question;

/// A matrix in the page of a card.
pub struct Matrix {
    /// Name within the page.
    pub id: String,
    /// Heading.
    pub title: String,
    /// The sentences below it.
    pub caption: String,
    /// The columns.
    pub questions: Vec<Question>,
    /// The names of the rows.
    pub rows: Vec<String>,
}

impl Matrix {
    /// The matrix with its cells: the counts of a row and a question, and the sentence that the mouse shows.
    pub fn with(self, cell: impl Fn(usize, Question) -> (Counts, String)) -> HeatMap {
        let mut cells = Vec::new();
        for y in 0..self.rows.len() {
            for (x, question) in self.questions.iter().enumerate() {
                let (counts, about) = cell(y, *question);
                let shade = Shade::Signed(counts.balance());
                cells.push(HeatCell { x, y, text: counts.in_two_lines(), about, shade });
            }
        }
        let words = |question: &Question| question.label().to_owned();
        HeatMap {
            id: self.id,
            title: self.title,
            caption: self.caption,
            panels: vec![HeatPanel {
                x: Axis::of(self.questions.iter().map(words).collect()),
                y: Axis::of(self.rows),
                cells,
                ..HeatPanel::default()
            }],
            columns: 1,
        }
    }
}

/// The rows of the baselines of a card.
pub fn against(card: &Card) -> Vec<String> {
    card.names[1..].iter().map(|name| format!("against {name}")).collect()
}
