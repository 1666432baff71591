//! Delays over time as text: a line of blocks for each traffic source of each discipline.

use std::fmt::Write as _;

use crate::figures::{RATE, TIME};
use crate::rows::{DelayRow, DelaySummary};
use crate::terminal::Style;

/// Delays over time of several disciplines with one seed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DelayPlot {
    /// The seed.
    pub seed: u64,
    /// The delays of each discipline, with its specification.
    pub runs: Vec<(String, Vec<DelayRow>)>,
}

/// The largest number of sources that have lines.
const MAX_SOURCES: usize = 4;

/// The longest name of a source, characters. Longer names are cut off.
const NAME_WIDTH: usize = 16;

/// The width of a number with its unit and the space in front of it, characters: "  100 Mbit/s".
const NUMBER_WIDTH: usize = 12;

/// The name of the line of the link.
const LINK_RATE: &str = "link rate";

/// Minimum number of columns of a line, however narrow the terminal.
const FEWEST: usize = 10;

/// Delays whose highest mean is more than this many times the lowest have a logarithmic scale.
const SPREAD: f64 = 8.0;

const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII: [char; 8] = ['_', '.', '-', ':', '=', '+', '*', '#'];

/// A line of the plot: a value for each column, and the texts at both ends.
struct Line {
    name: String,
    columns: Vec<Option<f64>>,
    mean: String,
    most: String,
}

/// The heights of blocks.
struct Scale {
    least: f64,
    most: f64,
    is_logarithmic: bool,
}

impl DelayPlot {
    /// The plot as text, ending in a line break: the first measured port, and one-way delays if the backend
    /// knows them, otherwise sojourn times. All disciplines have the same scale. The line of a link that
    /// varies shows its rate.
    pub fn render(&self, style: Style) -> String {
        let Some(port) = self.rows().next().map(|row| row.port.as_str()) else {
            return "No delays over time: they are measured in simulated networks.\n".to_owned();
        };
        let at_port: Vec<&DelayRow> = self.rows().filter(|row| row.port == port).collect();
        let one_way = at_port.iter().any(|row| row.one_way.is_some());
        let shown = |row: &DelayRow| if one_way { row.one_way } else { row.sojourn };
        let mut sources: Vec<&str> = Vec::new();
        for row in at_port.iter().filter(|row| shown(row).is_some()) {
            if !sources.contains(&row.source.as_str()) {
                sources.push(&row.source);
            }
        }
        let more = sources.len().saturating_sub(MAX_SOURCES);
        sources.truncate(MAX_SOURCES);
        let room = Room::of(&sources, style);
        let parts = self.runs.iter().map(|(qdisc, rows)| {
            let of_source = |source: &&str| {
                let mine = rows.iter().filter(|row| row.port == port && row.source == **source);
                line(source, &mine.map(shown).collect::<Vec<_>>(), room.columns, style)
            };
            (qdisc.as_str(), sources.iter().map(of_source).collect::<Vec<Line>>())
        });
        let parts: Vec<(&str, Vec<Line>)> = parts.collect();
        let whole = self.runs.iter().find(|(_, rows)| !rows.is_empty());
        let link = whole.and_then(|(_, rows)| rate(rows, port, room.columns, style));

        let cells = || parts.iter().flat_map(|(_, lines)| lines).flat_map(|line| &line.columns);
        let scale = Scale::of(cells().flatten().copied());
        let what = if one_way { "One-way delay" } else { "Sojourn time" };
        let span = at_port.iter().map(|row| row.span).max().unwrap_or_default();
        let about = format!(
            "{what} over time at {port}, mean over {} each, seed {}. {}{}.",
            seconds(span.as_s()),
            self.seed,
            scale.sentence(style.ascii),
            if cells().any(Option::is_none) { "; blank: no packet arrived" } else { "" },
        );
        let begin = at_port.iter().map(|row| row.time).min().unwrap_or_default();
        let ends = at_port.iter().map(|row| row.time + row.span).max().unwrap_or_default();
        let mut text = wrapped(&about, style.width);
        text.push('\n');
        text.push_str(&room.lines((begin.as_s(), ends.as_s()), &parts, link.as_ref(), &scale, style));
        if more > 0 {
            let _ =
                writeln!(text, "{more} more sources: the report draws seven, and delays.parquet has all.");
        }
        text
    }

    fn rows(&self) -> impl Iterator<Item = &DelayRow> {
        self.runs.iter().flat_map(|(_, rows)| rows)
    }
}

/// The room for lines.
struct Room {
    /// The width of names, with two spaces in front.
    names: usize,
    /// Maximum number of blocks of a line.
    columns: usize,
    /// True if there is room for numbers behind the blocks, which a narrow terminal has not.
    has_numbers: bool,
}

impl Room {
    fn of(sources: &[&str], style: Style) -> Room {
        let longest = sources.iter().map(|name| name.chars().count().min(NAME_WIDTH)).max().unwrap_or(0);
        let names = 2 + longest.max(LINK_RATE.len());
        let beside = style.width.saturating_sub(names + 1);
        let has_numbers = beside >= FEWEST + 2 * NUMBER_WIDTH;
        let columns = if has_numbers { beside - 2 * NUMBER_WIDTH } else { beside.max(FEWEST) };
        Room { names, columns, has_numbers }
    }

    /// The axis of time, the lines of each discipline, and the line of the link.
    fn lines(
        &self,
        (begin_s, end_s): (f64, f64),
        parts: &[(&str, Vec<Line>)],
        link: Option<&Line>,
        scale: &Scale,
        style: Style,
    ) -> String {
        let (begin, end) = (seconds(begin_s), seconds(end_s));
        let all = parts.iter().flat_map(|(_, lines)| lines).chain(link);
        let width = all.map(|line| line.columns.len()).max().unwrap_or(0).max(begin.len() + 1 + end.len());
        let name_width = self.names;
        let mut text = String::new();
        let mut put = |name: &str, drawn: &str, mean: &str, most: &str| {
            let mut line = format!("{name:<name_width$} {drawn:<width$}");
            if self.has_numbers {
                let _ = write!(line, "{mean:>NUMBER_WIDTH$}{most:>NUMBER_WIDTH$}");
            }
            let _ = writeln!(text, "{}", line.trim_end());
        };
        put("", &format!("{begin}{end:>0$}", width - begin.len()), "mean", "max");
        for (qdisc, lines) in parts {
            put(&cut(qdisc, style.width, style.ascii), "", "", "");
            for line in lines {
                put(&line.name, &scale.draw(&line.columns, style.ascii), &line.mean, &line.most);
            }
        }
        if let Some(line) = link {
            let most = line.columns.iter().flatten().copied().fold(0.0, f64::max);
            let scale = Scale { least: 0.0, most, is_logarithmic: false };
            put(&line.name, &scale.draw(&line.columns, style.ascii), &line.mean, &line.most);
        }
        text
    }
}

/// The line of a source with these delays.
fn line(source: &str, all: &[Option<DelaySummary>], room: usize, style: Style) -> Line {
    let together = |some: &[Option<DelaySummary>]| some.iter().copied().flatten().reduce(DelaySummary::and);
    let columns = columns(all, room, |some| together(some).map(|delay| delay.mean_s));
    let whole = together(all);
    let text = |value: Option<f64>| value.map_or("-".to_owned(), |s| TIME.text(s, style.ascii));
    Line {
        name: format!("  {}", cut(source, NAME_WIDTH, style.ascii)),
        columns,
        mean: text(whole.map(|delay| delay.mean_s)),
        most: text(whole.map(|delay| delay.max_s)),
    }
}

/// The line of the link's rate, if it varies.
fn rate(rows: &[DelayRow], port: &str, room: usize, style: Style) -> Option<Line> {
    let mut rates: Vec<(f64, f64)> = Vec::new();
    let mut latest = None;
    for row in rows.iter().filter(|row| row.port == port && latest.replace(row.time) != Some(row.time)) {
        rates.push((row.rate?.as_bit() as f64, row.span.as_s()));
    }
    let mean = |some: &[(f64, f64)]| {
        let (bits, seconds) =
            some.iter().fold((0.0, 0.0), |sum, (rate, span)| (sum.0 + rate * span, sum.1 + span));
        (seconds > 0.0).then(|| bits / seconds)
    };
    let columns = columns(&rates, room, mean);
    let most = columns.iter().flatten().copied().fold(0.0, f64::max);
    let text = |value: f64| RATE.text(value, style.ascii);
    Some(Line { name: LINK_RATE.to_owned(), columns, mean: text(mean(&rates)?), most: text(most) })
}

/// At most `room` values, each of consecutive items.
fn columns<T>(items: &[T], room: usize, value: impl Fn(&[T]) -> Option<f64>) -> Vec<Option<f64>> {
    let number = items.len().min(room);
    (0..number).map(|at| value(&items[at * items.len() / number..(at + 1) * items.len() / number])).collect()
}

impl Scale {
    /// A scale for these values: logarithmic if they differ much, otherwise from zero.
    fn of(values: impl Iterator<Item = f64>) -> Scale {
        let positive = values.filter(|value| *value > 0.0);
        let (least, most) = positive
            .fold((f64::INFINITY, 0.0_f64), |(least, most), value| (value.min(least), value.max(most)));
        let is_logarithmic = most > SPREAD * least;
        // Four decades are enough.
        Scale { least: if is_logarithmic { least.max(most * 1e-4) } else { 0.0 }, most, is_logarithmic }
    }

    /// The meaning of the lowest and the highest block.
    fn sentence(&self, ascii: bool) -> String {
        let [lowest, .., highest] = if ascii { ASCII } else { BLOCKS };
        let (least, most) = (TIME.text(self.least, ascii), TIME.text(self.most, ascii));
        let logarithmic = if self.is_logarithmic { ", logarithmic" } else { "" };
        format!("From {lowest} {least} to {highest} {most}{logarithmic}")
    }

    /// A block for each value, and a space where there is none.
    fn draw(&self, values: &[Option<f64>], ascii: bool) -> String {
        let blocks = if ascii { ASCII } else { BLOCKS };
        let height = |value: f64| match self.is_logarithmic {
            true => libm::log10(value.max(self.least) / self.least) / libm::log10(self.most / self.least),
            false => value / self.most.max(f64::MIN_POSITIVE),
        };
        let block = |value: f64| blocks[((height(value) * 8.0) as usize).min(7)];
        values.iter().map(|value| value.map_or(' ', block)).collect()
    }
}

fn seconds(s: f64) -> String {
    // Runs of a fabric last milliseconds.
    if s > 0.0 && s < 0.1 {
        format!("{} ms", (s * 1e4).round() / 10.0)
    } else {
        format!("{} s", (s * 1e3).round() / 1e3)
    }
}

/// A name of at most `most` characters.
fn cut(name: &str, most: usize, ascii: bool) -> String {
    if name.chars().count() <= most {
        return name.to_owned();
    }
    let sign = if ascii { "~" } else { "…" };
    name.chars().take(most.saturating_sub(1)).chain(sign.chars()).collect()
}

/// A text as lines of at most `width` characters, broken at spaces.
fn wrapped(text: &str, width: usize) -> String {
    let (mut lines, mut length) = (String::new(), 0);
    for word in text.split(' ') {
        let more = word.chars().count();
        if length > 0 && length + 1 + more > width {
            lines.push('\n');
            length = 0;
        } else if length > 0 {
            lines.push(' ');
            length += 1;
        }
        lines.push_str(word);
        length += more;
    }
    lines + "\n"
}

#[cfg(test)]
mod tests {
    use giveway_qdisc::{Rate, Span, Time};

    use super::*;

    /// Ten stretches of a second. The delay of the download is `base` ms, and doubles each second. The call
    /// has a tenth of it, and no packets in the fifth second. The rate of the link falls from 10 Mbit/s to 1.
    fn rows(base: f64, varies: bool) -> Vec<DelayRow> {
        let row = |at: u64, source: &str, ms: f64| DelayRow {
            time: Time::s(5 + at),
            span: Span::s(1),
            port: "uplink".into(),
            source: source.into(),
            sojourn: None,
            one_way: (source != "call" || at != 4).then_some(DelaySummary {
                packets: 100,
                mean_s: ms / 1e3,
                max_s: 2.0 * ms / 1e3,
            }),
            rate: varies.then(|| Rate::mbit(10 - at)),
        };
        let both = |at: u64| {
            let ms = base * f64::from(1 << at);
            [row(at, "download", ms), row(at, "call", ms / 10.0)]
        };
        (0..10).flat_map(both).collect()
    }

    #[test]
    fn a_plot_has_a_line_for_each_source_of_each_discipline() {
        let runs =
            vec![("fifo limit 500p".to_owned(), rows(2.0, true)), ("codel".to_owned(), rows(0.5, true))];
        let text = DelayPlot { seed: 3, runs }.render(Style::default());
        insta::assert_snapshot!(text, @r"
        One-way delay over time at uplink, mean over 1 s each, seed 3. From ▁ 102 µs to █ 1.02 s, logarithmic; blank: no packet
        arrived.

                    5 s   15 s        mean         max
        fifo limit 500p
          download  ▃▄▄▅▅▆▇▇██      205 ms      2.05 s
          call      ▁▂▂▃ ▄▅▅▆▇     22.4 ms      205 ms
        codel
          download  ▂▂▃▄▄▅▅▆▇▇     51.2 ms      512 ms
          call      ▁▁▁▂ ▃▃▄▅▅     5.59 ms     51.2 ms
        link rate   ██▇▆▅▅▄▃▂▁ 5.50 Mbit/s 10.0 Mbit/s
        ");
    }

    /// Similar delays have a linear scale. On 30 columns there is room for the name and ten blocks, and none
    /// for numbers.
    #[test]
    fn a_narrow_plot_in_ascii() {
        let steady = |rows: Vec<DelayRow>| {
            let calls = rows.into_iter().filter(|row| row.source == "call");
            let flat = |row: DelayRow| DelayRow {
                source: "a call with a long name".to_owned(),
                one_way: None,
                sojourn: Some(DelaySummary {
                    packets: 1,
                    mean_s: (row.time.as_s() + 3.0) * 1e-5,
                    max_s: 2e-4,
                }),
                ..row
            };
            calls.map(flat).collect::<Vec<_>>()
        };
        let runs = vec![("fifo limit 500p and many other words".to_owned(), steady(rows(1.0, false)))];
        let plot = DelayPlot { seed: 1, runs };
        let text = plot.render(Style { width: 30, ascii: true, detailed: false });
        assert!(text.is_ascii() && text.lines().all(|line| line.len() <= 30));
        insta::assert_snapshot!(text, @r"
        Sojourn time over time at
        uplink, mean over 1 s each,
        seed 1. From _ 0 ms to # 170
        us.

                           5 s   15 s
        fifo limit 500p and many othe~
          a call with a l~ :==++**###
        ");
    }

    #[test]
    fn without_delays_there_is_a_sentence() {
        let nothing = DelayPlot { seed: 1, runs: vec![("fifo".into(), Vec::new())] };
        assert_eq!(
            nothing.render(Style::default()),
            "No delays over time: they are measured in simulated networks.\n"
        );
    }
}
