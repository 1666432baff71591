//! Short names of disciplines, as long as needed to distinguish them.

/// Returns a short name for each specification: the first word if it is unique; otherwise the first word with
/// the parameters that differ; otherwise the whole specification.
///
/// ```
/// let short = giveway_measure::short_names(&["fq_codel target 5ms", "fifo limit 50p", "fifo limit 10p"]);
/// assert_eq!(short, ["fq_codel", "fifo limit 50p", "fifo limit 10p"]);
/// ```
pub fn short_names(specs: &[&str]) -> Vec<String> {
    specs.iter().map(|spec| short(spec, specs)).collect()
}

/// The kind of a discipline: the first word of its specification.
pub fn kind(spec: &str) -> &str {
    spec.split_whitespace().next().unwrap_or_default()
}

fn short(spec: &str, all: &[&str]) -> String {
    let others: Vec<&str> =
        all.iter().copied().filter(|other| kind(other) == kind(spec) && *other != spec).collect();
    if others.is_empty() {
        return kind(spec).to_owned();
    }
    let words: Vec<&str> = spec.split_whitespace().collect();
    let others: Vec<Vec<&str>> = others.iter().map(|other| other.split_whitespace().collect()).collect();
    // Words can be compared only if the same parameters have the same positions.
    if others.iter().any(|other| other.len() != words.len()) {
        return spec.to_owned();
    }
    let differs = |at: usize| others.iter().any(|other| other[at] != words[at]);
    // A value is shown with the word before it, the name of its parameter.
    let shown = (1..words.len()).filter(|at| differs(*at) || (at + 1 < words.len() && differs(at + 1)));
    [words[0]].into_iter().chain(shown.map(|at| words[at])).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_apart_and_no_more() {
        let efd = ["efd limit 300p threshold 20p", "efd limit 300p threshold 40p", "drr limit 300p"];
        assert_eq!(short_names(&efd), ["efd threshold 20p", "efd threshold 40p", "drr"]);
        let uneven = ["fifo", "fifo limit 10p"];
        assert_eq!(short_names(&uneven), uneven);
        assert_eq!(short_names(&["fifo", "fifo"]), ["fifo", "fifo"]);
        assert_eq!(short_names(&["tbf rate 1mbit child (fifo limit 5p)"]), ["tbf"]);
        assert_eq!(short_names(&[""]), [""]);
    }
}
