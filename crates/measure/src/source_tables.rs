//! The table of the goodput of each traffic source.

use crate::figures::NumberStyle;
use crate::level_tables::aligned;
use crate::table::{DisciplineRow, Estimate, Table};
use crate::terminal::Style;

/// Maximum number of sources with a column each. Of more, the extremes are shown.
const MAX: usize = 8;

impl Table {
    /// The goodput of each traffic source as text, a row for each discipline. Empty with fewer than two
    /// sources.
    pub fn render_sources(&self, style: Style) -> String {
        let mut sources: Vec<&str> = Vec::new();
        for (source, _) in self.rows.iter().flat_map(goodputs) {
            if !sources.contains(&source) {
                sources.push(source);
            }
        }
        if sources.len() < 2 {
            return String::new();
        }
        let kind = NumberStyle::of("goodput_bps");
        let all = self.rows.iter().flat_map(goodputs).filter_map(|(_, estimate)| estimate.mean);
        let (scale, unit) = kind.unit(all);
        let cell = |estimate: Option<&Estimate>| kind.cell(estimate, scale, style.ascii);
        let many = sources.len() > MAX;
        let head = if many { vec!["least", "median", "most"] } else { sources.clone() };
        let mut rows: Vec<Vec<String>> =
            vec![std::iter::once("").chain(head).map(str::to_owned).collect::<Vec<String>>()];
        for (row, name) in self.rows.iter().zip(self.row_names()) {
            let mut found: Vec<(&str, &Estimate)> = goodputs(row).collect();
            let cells: Vec<String> = if many {
                found.sort_by(|a, b| a.1.mean.unwrap_or_default().total_cmp(&b.1.mean.unwrap_or_default()));
                let places = [0, found.len() / 2, found.len().saturating_sub(1)];
                places.map(|place| cell(found.get(place).map(|(_, estimate)| *estimate))).into()
            } else {
                let of = |source: &&str| found.iter().find(|(known, _)| known == source);
                sources.iter().map(|source| cell(of(source).map(|(_, estimate)| *estimate))).collect()
            };
            rows.push(std::iter::once(name).chain(cells).collect());
        }
        let count = if many { format!("{} sources", sources.len()) } else { "each source".to_owned() };
        format!("\ngoodput of {count}, {unit}\n{}", aligned(&rows))
    }
}

/// The goodput of each source that a discipline measured.
fn goodputs(row: &DisciplineRow) -> impl Iterator<Item = (&str, &Estimate)> {
    let goodput = |(name, estimate): &'_ (String, Estimate)| {
        name.starts_with("src.") && name.ends_with(".goodput_bps") && estimate.mean.is_some()
    };
    row.metrics.iter().filter(move |metric| goodput(metric)).filter_map(|(name, estimate)| {
        Some((name.strip_prefix("src.")?.strip_suffix(".goodput_bps")?, estimate))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fingerprint, Metrics, Summary, Trial};

    /// Two seeds with this number of sources, of which each gets its number in Mbit/s.
    fn table(sources: u64) -> Table {
        let run = |seed: u64| {
            let mut metrics = Metrics::default();
            for source in 1..=sources {
                let goodput = source as f64 * 1e6 + seed as f64 * 1e4;
                metrics.push(format!("src.s.{source}.goodput_bps"), Some(goodput));
            }
            metrics.push("src.idle.goodput_bps", None);
            (
                Trial { qdisc: "fifo limit 100p".into(), seed },
                Summary { fingerprint: Fingerprint::EMPTY, events: 0, metrics },
            )
        };
        Table::new(&[run(1), run(2)])
    }

    const STYLE: Style = Style { width: 100, ascii: true, detailed: false };

    #[test]
    fn each_source_has_a_column() {
        assert_eq!(table(1).render_sources(STYLE), "");
        insta::assert_snapshot!(table(2).render_sources(STYLE), @r"
        goodput of each source, Mbit/s
                                s.1         s.2
        fifo limit 100p  1.01+-0.06  2.02+-0.06
        ");
    }

    #[test]
    fn of_many_sources_the_extremes_are_shown() {
        insta::assert_snapshot!(table(30).render_sources(STYLE), @r"
        goodput of 30 sources, Mbit/s
                              least     median       most
        fifo limit 100p  1.01+-0.06  16.0+-0.1  30.0+-0.1
        ");
    }
}
