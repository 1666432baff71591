//! Tables for the terminal: one row per discipline, numbers right-aligned, the unit in the heading.

use crate::figures::{Group, TextColumn, groups};
use crate::table::{DisciplineRow, Table};

/// The style of a table on the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// The width of the terminal, characters. Groups that do not fit are below each other.
    pub width: usize,
    /// Plain ASCII: `+-`, `us` and `-----`.
    pub ascii: bool,
    /// Adds completion times by size.
    pub detailed: bool,
}

impl Default for Style {
    fn default() -> Style {
        Style { width: 120, ascii: false, detailed: false }
    }
}

/// The longest line of a discipline's name, characters. Longer names take several lines.
const NAME_WIDTH: usize = 28;
const BETWEEN_COLUMNS: usize = 1;
const BETWEEN_GROUPS: usize = 3;

impl Table {
    /// The table as text, ending in a line break.
    pub fn render(&self, style: Style) -> String {
        let names: Vec<Vec<String>> = self.row_names().iter().map(|name| broken(name)).collect();
        let name_width = names.iter().flatten().map(|line| line.chars().count()).max().unwrap_or(0);
        let rows: Vec<&DisciplineRow> = self.rows.iter().collect();
        let groups = groups(&rows, style.ascii, style.detailed);
        let room = style.width.saturating_sub(name_width);
        let mut text = String::new();
        for block in blocks(groups, room) {
            if !text.is_empty() {
                text.push('\n');
            }
            render_block(&block, &names, name_width, style.ascii, &mut text);
        }
        text
    }
}

/// Fills blocks from left to right. A group is split only if it is wider than `room`.
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
    /// Width in characters, at least the title's.
    fn width(&self) -> usize {
        let columns: usize = self.columns.iter().map(|column| column.width + BETWEEN_COLUMNS).sum();
        (columns - BETWEEN_COLUMNS).max(self.title.chars().count())
    }

    /// The group, or a group for each column if it is too wide.
    fn fitted(self, room: usize) -> Vec<Group> {
        if BETWEEN_GROUPS + self.width() <= room {
            return vec![self];
        }
        let title = self.title;
        self.columns.into_iter().map(|column| Group { title: title.clone(), columns: vec![column] }).collect()
    }

    /// Spaces in front of the first column, so that the title fits.
    fn padding(&self) -> usize {
        let columns: usize = self.columns.iter().map(|column| column.width + BETWEEN_COLUMNS).sum();
        self.width() - (columns - BETWEEN_COLUMNS)
    }

    /// A line of the group, with a text for each column.
    fn line<'a>(&'a self, text: impl Fn(&'a TextColumn) -> &'a str) -> String {
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

/// A name as lines, broken at spaces; all but the first are indented.
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
    use crate::{Fingerprint, Metrics, Summary, Trial};

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
        "backlog_mean_packets",
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

    fn run(qdisc: &str, seed: u64, values: &[f64], factor: f64) -> (Trial, Summary) {
        let mut metrics = Metrics::default();
        for (name, value) in NAMES.iter().zip(values) {
            metrics.push(*name, Some(value * factor));
        }
        (Trial { qdisc: qdisc.into(), seed }, Summary { fingerprint: Fingerprint::EMPTY, events: 0, metrics })
    }

    #[test]
    fn one_seed_fits_a_wide_terminal() {
        let table = Table::new(&[run("fifo limit 300p", 1, &FIFO, 1.0), run("efd limit 300p", 1, &EFD, 1.0)]);
        let text = table.render(Style::default());
        assert!(text.lines().all(|line| line.chars().count() <= 120));
        insta::assert_snapshot!(text, @r"
                          link                 completion time   unfinished   sojourn time         queue
                          used goodput  Jain     p50  p95  p99                small p99  p50 p99   mean drops marks table
                             %  Mbit/s            ms   ms   ms   flows   MB          ms   ms  ms   pkts             flows
        ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────
        fifo limit 300p   98.7    9.60 0.812     431 2310 7900      12 1.40         322  120 330    187  4812     0     -
        efd limit 300p    99.1    9.71 0.874    52.3 1120 6400       3 8.20        2.10 87.4 420    171  4950     0  23.4
        ");
    }

    #[test]
    fn several_seeds_wrap_and_ascii_is_ascii() {
        let several =
            [0.9, 1.0, 1.1].map(|factor| run("fifo limit 300p", (factor * 10.0) as u64, &FIFO, factor));
        let table = Table::new(&several);
        let text = table.render(Style { width: 100, ascii: true, detailed: false });
        assert!(text.is_ascii() && text.lines().all(|line| line.len() <= 100));
        insta::assert_snapshot!(text, @r"
                          link                                               completion time
                                       used    goodput                Jain        p50       p95        p99
                                          %     Mbit/s                             ms        ms         ms
        --------------------------------------------------------------------------------------------------
        fifo limit 300p   98.7 (74.2-100.0) 9.60+-2.38 0.812 (0.610-1.000)   431+-107 2310+-574 7900+-1962

                          unfinished         sojourn time                queue
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
        let text = table.render(Style { width: 70, ascii: false, detailed: false });
        assert!(text.lines().all(|line| line.chars().count() <= 70));
        insta::assert_snapshot!(text, @r"
                                       link                 completion time
                                       used goodput  Jain     p50  p95  p99
                                          %  Mbit/s            ms   ms   ms
        ───────────────────────────────────────────────────────────────────
        fq_codel limit 10240p target   99.1    9.71 0.874    52.3 1120 6400
          5ms interval 100ms quantum
          1514b memory_limit 32mb
          noecn
        fifo                              -       -     -       -    -    -

                                       unfinished   sojourn time
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
}
