//! The parts of the name of a metric, and its label.

use giveway_qdisc::units;

use super::definitions::{Better, Definition, Label, METRICS, Subject, Unit};
use super::statistic::Statistic;

/// The parts of the name of a metric.
#[derive(Clone, Copy, Debug)]
pub struct MetricName<'a> {
    /// The measured port, for a metric of one of several ports.
    pub port: Option<&'a str>,
    /// The group of sources, for a metric of a group.
    pub source: Option<&'a str>,
    /// The class of the discipline, for a metric of a class.
    pub class: Option<&'a str>,
    /// The name without port, source and class.
    pub metric: &'a str,
    /// The word that stands for `*` in its definition; empty without one.
    pub word: &'a str,
    /// The statistic; `None` for a single value, such as a share.
    pub statistic: Option<Statistic>,
    /// The texts about it.
    pub texts: Label,
    /// The definition of the metric.
    pub definition: &'static Definition,
}

impl MetricName<'_> {
    /// The noun in sentences and titles, without the statistic: "sojourn time of small packets".
    pub fn noun(&self) -> String {
        let mut noun = self.texts.noun.replace('*', &readable(self.word));
        let of = [(self.source, " of "), (self.class, " of the class "), (self.port, " at ")];
        for (name, joint) in of {
            noun.extend(name.into_iter().flat_map(|name| [joint, name]));
        }
        noun
    }

    /// The label in sentences: "99th percentile of the sojourn times of small packets".
    pub fn label(&self) -> String {
        self.statistic.map_or_else(|| self.noun(), |statistic| statistic.of(&self.noun()))
    }

    /// The heading of a column under a title: "small p99". A mean has no separate word next to others.
    pub fn short_label(&self) -> String {
        let short = self.texts.short;
        let added = self.statistic.filter(|_| self.definition.names.len() > 1 || short.is_empty());
        match added {
            Some(statistic) if short.is_empty() => statistic.short(),
            None | Some(Statistic::Count | Statistic::Mean) => short.to_owned(),
            Some(statistic) => format!("{short} {}", statistic.short()),
        }
    }
}

/// The label of the metric with this name in sentences; the name itself if there is no such metric.
///
/// ```
/// use giveway_measure::label;
///
/// assert_eq!(label("fct_p99_s"), "99th percentile of the flow completion times");
/// assert_eq!(label("src.call.loss"), "packet loss of call");
/// ```
pub fn label(name: &str) -> String {
    named(name).map_or_else(|| name.to_owned(), |named| named.label())
}

/// The direction in which a value of the metric with this name is better.
pub fn better(name: &str) -> Better {
    named(name).map_or(Better::Neither, |named| named.definition.better)
}

/// The heading of the column of a metric under a title; the name itself if there is no such metric.
pub fn short_label(name: &str) -> String {
    named(name).map_or_else(|| name.to_owned(), |named| named.short_label())
}

/// Parses the name of a metric; `None` if there is no such metric.
pub fn named(name: &str) -> Option<MetricName<'_>> {
    if let Some(rest) = name.strip_prefix("at.") {
        // Ports and sources may have dots in their names; metrics have none.
        let dots = rest.match_indices('.').map(|(at, _)| at);
        let splits = dots.map(|at| (&rest[..at], &rest[at + 1..]));
        return splits
            .filter_map(|(port, metric)| Some(MetricName { port: Some(port), ..plain(metric)? }))
            .next();
    }
    plain(name)
}

/// The endings of metrics that may be left out.
const ENDINGS: [&str; 4] = ["", "_s", "_bps", "_bytes"];

/// The metric of this name, whose unit may be left out: `fct_p99_s` for `fct_p99`. `None` if there is none.
pub fn completed(name: &str) -> Option<String> {
    ENDINGS.iter().map(|ending| format!("{name}{ending}")).find(|name| named(name).is_some())
}

/// The metric that was probably meant by a name that is none, with the port, the source or the class of that
/// name; `None` if no metric is similar.
///
/// ```
/// use giveway_measure::nearest;
///
/// assert_eq!(nearest("fct_p59_s").as_deref(), Some("fct_p50_s"));
/// assert_eq!(nearest("src.call.dely_p95_s").as_deref(), Some("src.call.delay_p95_s"));
/// assert_eq!(nearest("apples"), None);
/// ```
pub fn nearest(name: &str) -> Option<String> {
    if let Some(whole) = completed(name) {
        return Some(whole);
    }
    let (of, metric) = name.rsplit_once('.').map_or(("", name), |(of, metric)| (of, metric));
    let subject = match of {
        of if of.starts_with("src.") => Some(Subject::Source),
        of if of.starts_with("class.") => Some(Subject::Class),
        _ => None,
    };
    let is_of = |definition: &&Definition| match subject {
        None => !matches!(definition.subject, Subject::Source | Subject::Class),
        subject => Some(definition.subject) == subject,
    };
    let names = METRICS.iter().filter(is_of).flat_map(|definition| definition.names.iter().copied());
    let near = units::nearest(metric, names.filter(|name| !name.contains('*')))?;
    Some(if of.is_empty() { near.to_owned() } else { format!("{of}.{near}") })
}

fn plain(name: &str) -> Option<MetricName<'_>> {
    let (source, class, metric) = if let Some(rest) = name.strip_prefix("src.") {
        let (source, metric) = rest.rsplit_once('.')?;
        (Some(source), None, metric)
    } else if let Some(rest) = name.strip_prefix("class.") {
        let (class, metric) = rest.rsplit_once('.')?;
        (None, Some(class), metric)
    } else {
        (None, None, name)
    };
    let of_subject = |definition: &&Definition| {
        (definition.subject == Subject::Source) == source.is_some()
            && (definition.subject == Subject::Class) == class.is_some()
    };
    let patterns = METRICS.iter().filter(of_subject).flat_map(|definition| {
        definition.names.iter().enumerate().map(move |(place, pattern)| (definition, place, *pattern))
    });
    // Exact names before those with a word that depends on the run: `fct_aged_mean_s` is not of a class
    // "aged".
    let exact = patterns.clone().find(|(_, _, pattern)| *pattern == metric).map(|found| (found, ""));
    let fitting = || {
        let fits = |found: (_, _, &'static str)| Some((found, word_of(found.2, metric)?));
        patterns.rev().find_map(fits)
    };
    let ((definition, place, pattern), word) = exact.or_else(fitting)?;
    let counts = matches!(definition.unit, Unit::Packets | Unit::Flows).then_some(Statistic::Count);
    let statistic = Statistic::in_name(pattern).or_else(|| Statistic::of_word(word)).or(counts);
    let texts = definition.labels[place.min(definition.labels.len() - 1)];
    Some(MetricName { port: None, source, class, metric, word, statistic, texts, definition })
}

/// The word of `name` that stands for `*` in `pattern`, one or more characters.
fn word_of<'a>(pattern: &str, name: &'a str) -> Option<&'a str> {
    let (before, after) = pattern.split_once('*')?;
    name.strip_prefix(before)?.strip_suffix(after).filter(|word| !word.is_empty())
}

/// A word of a name for people: "in the class up to 30 kB" for `le30kB`, and a space for `_`.
fn readable(word: &str) -> String {
    match size_class(word) {
        Some(class) if word.starts_with("le") => format!("in the class {class}"),
        Some(class) => class,
        None => word.replace('_', " "),
    }
}

/// A class of sizes for people: "up to 30 kB" for `le30kB`, and "above 3 MB" for `gt3MB`. `None` for other
/// words.
pub(crate) fn size_class(word: &str) -> Option<String> {
    let (sign, edge) = match word.split_at_checked(2)? {
        ("le", edge) => ("up to", edge),
        ("gt", edge) => ("above", edge),
        _ => return None,
    };
    let digits = edge.trim_end_matches(char::is_alphabetic);
    Some(format!("{sign} {digits} {}", &edge[digits.len()..]))
}
