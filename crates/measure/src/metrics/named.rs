//! Names of metrics, taken apart.

use super::definitions::{Better, Definition, METRICS, Subject};

/// The parts of the name of a metric.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    /// The measured port, for a metric of one of several ports.
    pub port: Option<&'a str>,
    /// The group of sources, for a metric of a group.
    pub source: Option<&'a str>,
    /// The class of the discipline, for a metric of a class.
    pub class: Option<&'a str>,
    /// The name without port, source and class.
    pub metric: &'a str,
    /// The definition of the metric.
    pub definition: &'static Definition,
}

/// The direction in which a value of the metric with this name is better.
pub fn better(name: &str) -> Better {
    named(name).map_or(Better::Neither, |named| named.definition.better)
}

/// Parses the name of a metric; `None` if there is no such metric.
pub fn named(name: &str) -> Option<Named<'_>> {
    if let Some(rest) = name.strip_prefix("at.") {
        // Ports and sources may have dots in their names; metrics have none.
        let dots = rest.match_indices('.').map(|(at, _)| at);
        let splits = dots.map(|at| (&rest[..at], &rest[at + 1..]));
        return splits.filter_map(|(port, metric)| Some(Named { port: Some(port), ..plain(metric)? })).next();
    }
    plain(name)
}

fn plain(name: &str) -> Option<Named<'_>> {
    let (source, class, metric) = if let Some(rest) = name.strip_prefix("src.") {
        let (source, metric) = rest.rsplit_once('.')?;
        (Some(source), None, metric)
    } else if let Some(rest) = name.strip_prefix("class.") {
        let (class, metric) = rest.rsplit_once('.')?;
        (None, Some(class), metric)
    } else {
        (None, None, name)
    };
    let fits = |definition: &&Definition| {
        (definition.subject == Subject::Source) == source.is_some()
            && (definition.subject == Subject::Class) == class.is_some()
            && definition.names.iter().any(|pattern| matches(pattern, metric))
    };
    // Exact names before those with a word that depends on the run: `fct_aged_mean_s` is not of a class
    // "aged".
    let exact = METRICS.iter().filter(fits).find(|definition| definition.names.contains(&metric));
    let definition = exact.or_else(|| METRICS.iter().rev().find(fits))?;
    Some(Named { port: None, source, class, metric, definition })
}

/// True if `name` matches `pattern`, in which `*` stands for one or more characters.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((before, after)) => name
            .strip_prefix(before)
            .and_then(|rest| rest.strip_suffix(after))
            .is_some_and(|word| !word.is_empty()),
    }
}
