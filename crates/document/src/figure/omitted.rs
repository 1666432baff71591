//! Points that a figure does not draw, and the sentences about them in its caption.

/// The numbers of points that are not drawn, over all panels of a figure.
#[derive(Default)]
pub(super) struct Omitted {
    /// Points that are not finite, or that belong to no category.
    pub(super) unknown: usize,
    /// Points of zero or less on a logarithmic axis.
    pub(super) no_logarithm: usize,
    /// Points outside the domain of an axis.
    pub(super) beyond: usize,
    /// Intervals that start at or below zero on a logarithmic axis.
    pub(super) cut: usize,
    /// For each panel with too many points, the number of drawn points and of all points.
    pub(super) thinned: Option<(usize, usize)>,
}

impl Omitted {
    pub(super) fn sentences(&self) -> Vec<String> {
        let counted = |count: usize| match count {
            1 => "One point".to_owned(),
            _ => format!("{count} points"),
        };
        let (is, has, lies) = (["are", "is"], ["have", "has"], ["lie", "lies"]);
        let verb = |count: usize, both: [&'static str; 2]| both[usize::from(count == 1)];
        let mut sentences = Vec::new();
        if let Some((drawn, all)) = self.thinned {
            sentences.push(format!("{drawn} of {all} points are drawn, thinned evenly from left to right."));
        }
        if self.no_logarithm > 0 {
            let count = self.no_logarithm;
            sentences.push(format!(
                "{} of zero or less {} no place on a logarithmic axis and {} omitted.",
                counted(count),
                verb(count, has),
                verb(count, is)
            ));
        }
        if self.beyond > 0 {
            let count = self.beyond;
            sentences.push(format!("{} {} outside the axes.", counted(count), verb(count, lies)));
        }
        if self.cut > 0 {
            sentences.push("Intervals that reach down to zero end at the logarithmic axis.".to_owned());
        }
        if self.unknown > 0 {
            let count = self.unknown;
            sentences.push(format!("{} without a value {} omitted.", counted(count), verb(count, is)));
        }
        sentences
    }
}
