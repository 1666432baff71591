//! The table as text: one row per discipline, numbers right-aligned, the unit in the heading.

use crate::table::{Estimate, Row, Table};

/// How the table is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal. What does not fit beside each other goes below each other.
    pub width: usize,
    /// Plain ASCII: `+-`, `us` and `-----`.
    pub ascii: bool,
}

impl Default for Style {
    fn default() -> Style {
        Style { width: 120, ascii: false }
    }
}

/// A column: its heading, what it shows, and how.
struct Column {
    title: &'static str,
    metric: &'static str,
    kind: Kind,
}

/// What kind of number a column has.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// A share, shown in percent.
    Percent,
    /// 0 to 1, three decimals.
    Index,
    /// A number of things.
    Count(&'static str),
    /// A quantity with a ladder of units: how much one of the unit is, and its name.
    Ladder(&'static [(f64, &'static str)]),
}

const TIME: Kind = Kind::Ladder(&[(1e-9, "ns"), (1e-6, "µs"), (1e-3, "ms"), (1.0, "s")]);
const RATE: Kind = Kind::Ladder(&[(1.0, "bit/s"), (1e3, "kbit/s"), (1e6, "Mbit/s"), (1e9, "Gbit/s")]);
const SIZE: Kind = Kind::Ladder(&[(1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB")]);

const fn column(title: &'static str, metric: &'static str, kind: Kind) -> Column {
    Column { title, metric, kind }
}

/// Columns that belong together.
const GROUPS: [(&str, &[Column]); 6] = [
    (
        "link",
        &[
            column("used", "utilization", Kind::Percent),
            column("goodput", "goodput_bps", RATE),
            column("Jain", "jain", Kind::Index),
        ],
    ),
    (
        "response time",
        &[
            column("p50", "fct_p50_s", TIME),
            column("p95", "fct_p95_s", TIME),
            column("p99", "fct_p99_s", TIME),
        ],
    ),
    (
        "unfinished",
        &[column("", "flows_incomplete", Kind::Count("flows")), column("", "bytes_incomplete", SIZE)],
    ),
    (
        "packet delay",
        &[
            column("small p99", "small_sojourn_p99_s", TIME),
            column("p50", "sojourn_p50_s", TIME),
            column("p99", "sojourn_p99_s", TIME),
        ],
    ),
    (
        "delay of a flow",
        &[column("median", "flow_delay_p50_s", TIME), column("p95", "flow_delay_p95_s", TIME)],
    ),
    (
        "queue",
        &[
            column("mean", "queue_mean_packets", Kind::Count("pkts")),
            column("drops", "drops", Kind::Count("")),
            column("marks", "marks", Kind::Count("")),
            column("table", "flow_table_mean", Kind::Count("flows")),
        ],
    ),
];

/// The name of a discipline is broken over lines beyond this.
const NAME_WIDTH: usize = 28;
const BETWEEN_COLUMNS: usize = 1;
const BETWEEN_GROUPS: usize = 3;

/// A column with its numbers written out.
struct Written {
    heading: [String; 2],
    cells: Vec<String>,
    width: usize,
}

/// Written columns under one title.
struct Group {
    title: &'static str,
    columns: Vec<Written>,
}

impl Table {
    /// The table as text, ending in a line break.
    pub fn render(&self, style: Style) -> String {
        let names: Vec<Vec<String>> = self.rows.iter().map(|row| broken(&row.qdisc)).collect();
        let name_width = names.iter().flatten().map(|line| line.chars().count()).max().unwrap_or(0);
        // What no row has would only take room: response times where nothing is transferred, a table of flows.
        let known = |column: &&Column| {
            self.rows
                .iter()
                .any(|row| row.metric(column.metric).is_some_and(|estimate| estimate.mean.is_some()))
        };
        let shown = GROUPS.iter().filter(|(_, columns)| columns.iter().any(|column| known(&column)));
        let groups = shown.map(|(title, columns)| Group {
            title,
            columns: columns.iter().map(|column| column.write(columns, &self.rows, style.ascii)).collect(),
        });
        let room = style.width.saturating_sub(name_width);
        let mut text = String::new();
        for block in blocks(groups.collect(), room) {
            if !text.is_empty() {
                text.push('\n');
            }
            render_block(&block, &names, name_width, style.ascii, &mut text);
        }
        text
    }
}

/// Fills blocks from left to right; a group is parted only when it is wider than the room by itself.
fn blocks(groups: Vec<Group>, room: usize) -> Vec<Vec<Group>> {
    let mut blocks: Vec<Vec<Group>> = vec![Vec::new()];
    let mut used = 0;
    for group in groups.into_iter().flat_map(|group| group.fitted(room)) {
        let width = BETWEEN_GROUPS + group.width();
        if used > 0 && used + width > room {
            blocks.push(Vec::new());
            used = 0;
        }
        used += width;
        blocks.last_mut().expect("there is always a block").push(group);
    }
    blocks
}

impl Group {
    /// How wide it is; at least its title.
    fn width(&self) -> usize {
        let columns: usize = self.columns.iter().map(|column| column.width + BETWEEN_COLUMNS).sum();
        (columns - BETWEEN_COLUMNS).max(self.title.chars().count())
    }

    /// Itself, or a group per column when it is too wide.
    fn fitted(self, room: usize) -> Vec<Group> {
        if BETWEEN_GROUPS + self.width() <= room {
            return vec![self];
        }
        let title = self.title;
        self.columns.into_iter().map(|column| Group { title, columns: vec![column] }).collect()
    }

    /// What stands before its first column so that the title fits.
    fn padding(&self) -> usize {
        let columns: usize = self.columns.iter().map(|column| column.width + BETWEEN_COLUMNS).sum();
        self.width() - (columns - BETWEEN_COLUMNS)
    }

    /// One line of it, from one text per column.
    fn line<'a>(&'a self, text: impl Fn(&'a Written) -> &'a str) -> String {
        let mut line = " ".repeat(BETWEEN_GROUPS + self.padding());
        for (i, column) in self.columns.iter().enumerate() {
            if i > 0 {
                line.push_str(&" ".repeat(BETWEEN_COLUMNS));
            }
            line.push_str(&right(text(column), column.width));
        }
        line
    }
}

fn render_block(groups: &[Group], names: &[Vec<String>], name_width: usize, ascii: bool, text: &mut String) {
    let titled =
        |group: &Group| format!("{:BETWEEN_GROUPS$}{:<width$}", "", group.title, width = group.width());
    let mut lines = vec![named("", name_width, groups.iter().map(titled).collect())];
    for row in 0..2 {
        let headings = groups.iter().map(|group| group.line(|column| &column.heading[row])).collect();
        lines.push(named("", name_width, headings));
    }
    let width: usize = groups.iter().map(|group| BETWEEN_GROUPS + group.width()).sum();
    lines.push(if ascii { "-" } else { "─" }.repeat(name_width + width));
    for (row, name) in names.iter().enumerate() {
        let numbers = groups.iter().map(|group| group.line(|column| &column.cells[row])).collect();
        lines.push(named(&name[0], name_width, numbers));
        lines.extend(name[1..].iter().cloned());
    }
    for line in lines {
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

fn named(name: &str, width: usize, numbers: String) -> String {
    format!("{name:<width$}{numbers}")
}

impl Column {
    /// Columns of one kind in a group share a unit, so that they compare.
    fn write(&self, group: &[Column], rows: &[Row], ascii: bool) -> Written {
        let alike = group.iter().filter(|column| column.kind == self.kind);
        let means = alike.flat_map(|column| rows.iter().filter_map(|row| row.metric(column.metric)?.mean));
        let (scale, unit) = self.kind.unit(means);
        let estimates: Vec<Option<&Estimate>> = rows.iter().map(|row| row.metric(self.metric)).collect();
        let unit = if ascii { unit.replace('µ', "u") } else { unit.to_owned() };
        let cells: Vec<String> =
            estimates.iter().map(|estimate| self.kind.cell(*estimate, scale, ascii)).collect();
        let heading = [self.title.to_owned(), unit];
        let width = heading.iter().chain(&cells).map(|text| text.chars().count()).max().unwrap_or(0);
        Written { heading, cells, width }
    }
}

impl Kind {
    /// How much one of the unit is, and its name. The smallest number sets the unit, unless that makes the largest
    /// unreadable.
    fn unit(self, means: impl Iterator<Item = f64>) -> (f64, &'static str) {
        let ladder = match self {
            Kind::Percent => return (0.01, "%"),
            Kind::Index => return (1.0, ""),
            Kind::Count(unit) => return (1.0, unit),
            Kind::Ladder(ladder) => ladder,
        };
        let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
        for mean in means.filter(|mean| *mean > 0.0) {
            least = least.min(mean);
            most = most.max(mean);
        }
        let fits = |(one, _): &&(f64, &str)| *one <= least;
        let smallest = ladder.iter().rfind(fits).map_or(ladder[0].0, |(one, _)| *one);
        let readable = |(one, _): &&(f64, &str)| *one >= smallest && most / one < 1e5;
        let nothing_to_show = least.is_infinite();
        let found = if nothing_to_show { None } else { ladder.iter().find(readable) };
        *found.unwrap_or(if nothing_to_show { &ladder[ladder.len() / 2] } else { &ladder[ladder.len() - 1] })
    }

    /// A number as it stands in its cell: mean and half width of the interval, with the same decimals.
    fn cell(self, estimate: Option<&Estimate>, scale: f64, ascii: bool) -> String {
        let Some((estimate, mean)) = estimate.and_then(|e| e.mean.map(|mean| (e, mean / scale))) else {
            return "-".to_owned();
        };
        let decimals = self.decimals(mean);
        match estimate.ci95 {
            None => format!("{mean:.decimals$}"),
            Some(half) => {
                let sign = if ascii { "+-" } else { "±" };
                format!("{mean:.decimals$}{sign}{half:.decimals$}", half = half / scale)
            }
        }
    }

    /// Three significant digits; counts that are whole stay whole.
    fn decimals(self, value: f64) -> usize {
        match self {
            Kind::Index => 3,
            Kind::Percent => 1,
            Kind::Count(_) if value.fract() == 0.0 || value >= 1000.0 => 0,
            _ if value == 0.0 || value >= 100.0 => 0,
            _ if value >= 10.0 => 1,
            _ if value >= 1.0 => 2,
            _ => 3,
        }
    }
}

/// A name broken at its spaces; the following lines are indented.
fn broken(name: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in name.split_whitespace() {
        let line = lines.last_mut().expect("there is always a line");
        let length = line.chars().count();
        if length > 0 && length + 1 + word.chars().count() > NAME_WIDTH {
            lines.push(format!("  {word}"));
            continue;
        }
        if length > 0 {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines
}

fn right(text: &str, width: usize) -> String {
    format!("{text:>width$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cell, Fingerprint, Metrics, Summary};

    const NAMES: [&str; 15] = [
        "utilization",
        "goodput_bps",
        "jain",
        "fct_p50_s",
        "fct_p95_s",
        "fct_p99_s",
        "flows_incomplete",
        "bytes_incomplete",
        "small_sojourn_p99_s",
        "sojourn_p50_s",
        "sojourn_p99_s",
        "queue_mean_packets",
        "drops",
        "marks",
        "flow_table_mean",
    ];
    const FIFO: [f64; 15] = [
        0.987,
        9.6e6,
        0.812,
        0.431,
        2.31,
        7.9,
        12.0,
        1.4e6,
        0.322,
        0.1204,
        0.33,
        187.4,
        4812.0,
        0.0,
        f64::NAN,
    ];
    const EFD: [f64; 15] =
        [0.991, 9.71e6, 0.874, 0.0523, 1.12, 6.4, 3.0, 8.2e6, 0.0021, 0.0874, 0.42, 171.0, 4950.0, 0.0, 23.4];

    fn run(qdisc: &str, seed: u64, values: &[f64], factor: f64) -> (Cell, Summary) {
        let mut metrics = Metrics::default();
        for (name, value) in NAMES.iter().zip(values) {
            metrics.push(*name, Some(value * factor));
        }
        (Cell { qdisc: qdisc.into(), seed }, Summary { fingerprint: Fingerprint::EMPTY, events: 0, metrics })
    }

    #[test]
    fn one_seed_fits_a_wide_terminal() {
        let table = Table::new(&[run("fifo limit 300p", 1, &FIFO, 1.0), run("efd limit 300p", 1, &EFD, 1.0)]);
        let text = table.render(Style::default());
        assert!(text.lines().all(|line| line.chars().count() <= 120));
        insta::assert_snapshot!(text, @r"
                          link                 response time    unfinished   packet delay         queue
                          used goodput  Jain    p50  p95  p99                small p99  p50 p99   mean drops marks table
                             %  Mbit/s           ms   ms   ms   flows   MB          ms   ms  ms   pkts             flows
        ────────────────────────────────────────────────────────────────────────────────────────────────────────────────
        fifo limit 300p   98.7    9.60 0.812    431 2310 7900      12 1.40         322  120 330    187  4812     0     -
        efd limit 300p    99.1    9.71 0.874   52.3 1120 6400       3 8.20        2.10 87.4 420    171  4950     0  23.4
        ");
    }

    #[test]
    fn several_seeds_wrap_and_ascii_is_ascii() {
        let several =
            [0.9, 1.0, 1.1].map(|factor| run("fifo limit 300p", (factor * 10.0) as u64, &FIFO, factor));
        let table = Table::new(&several);
        let text = table.render(Style { width: 100, ascii: true });
        assert!(text.is_ascii() && text.lines().all(|line| line.len() <= 100));
        insta::assert_snapshot!(text, @r"
                          link                                 response time
                                used    goodput         Jain        p50       p95        p99
                                   %     Mbit/s                      ms        ms         ms
        ------------------------------------------------------------------------------------
        fifo limit 300p   98.7+-24.5 9.60+-2.38 0.812+-0.202   431+-107 2310+-574 7900+-1962

                          unfinished         packet delay                queue
                                             small p99     p50     p99      mean      drops marks table
                          flows         MB          ms      ms      ms      pkts                  flows
        -----------------------------------------------------------------------------------------------
        fifo limit 300p   12+-3 1.40+-0.35     322+-80 120+-30 330+-82   187+-47 4812+-1195  0+-0     -
        ");
    }

    #[test]
    fn a_narrow_terminal_and_a_long_name() {
        let name = "fq_codel limit 10240p target 5ms interval 100ms quantum 1514b memory_limit 32mb noecn";
        let table = Table::new(&[run(name, 1, &EFD, 1.0), run("fifo", 1, &[], 1.0)]);
        let text = table.render(Style { width: 70, ascii: false });
        assert!(text.lines().all(|line| line.chars().count() <= 70));
        insta::assert_snapshot!(text, @r"
                                       link                 response time
                                       used goodput  Jain    p50  p95  p99
                                          %  Mbit/s           ms   ms   ms
        ──────────────────────────────────────────────────────────────────
        fq_codel limit 10240p target   99.1    9.71 0.874   52.3 1120 6400
          5ms interval 100ms quantum
          1514b memory_limit 32mb
          noecn
        fifo                              -       -     -      -    -    -

                                       unfinished   packet delay
                                                    small p99  p50 p99
                                       flows   MB          ms   ms  ms
        ──────────────────────────────────────────────────────────────
        fq_codel limit 10240p target       3 8.20        2.10 87.4 420
          5ms interval 100ms quantum
          1514b memory_limit 32mb
          noecn
        fifo                               -    -           -    -   -

                                       queue
                                       mean drops marks table
                                       pkts             flows
        ─────────────────────────────────────────────────────
        fq_codel limit 10240p target    171  4950     0  23.4
          5ms interval 100ms quantum
          1514b memory_limit 32mb
          noecn
        fifo                              -     -     -     -
        ");
    }

    /// The smallest number sets the unit, unless the largest would have more than five digits.
    #[test]
    fn units_suit_the_column() {
        let unit = |means: &[f64]| TIME.unit(means.iter().copied()).1;
        assert_eq!(unit(&[0.0052, 0.9]), "ms");
        assert_eq!(unit(&[0.000_012, 0.35]), "ms");
        assert_eq!(unit(&[0.000_012, 0.035]), "µs");
        assert_eq!(unit(&[2.0, 9.0]), "s");
        assert_eq!(unit(&[0.0, 0.0]), "ms");
        assert_eq!(unit(&[5_000_000.0]), "s");
    }
}
