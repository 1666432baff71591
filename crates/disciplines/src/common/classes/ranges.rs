//! Ranges of names: "home[1-20]" is home1 to home20, as for the nodes of a scenario.

/// The most names of one range.
const MOST: u64 = 100_000;

/// The names of a range; a name without brackets is a range of one.
///
/// # Errors
/// The mistake, in a sentence.
pub fn expand(text: &str) -> Result<Vec<String>, String> {
    let Some((before, rest)) = text.split_once('[') else { return Ok(vec![text.to_owned()]) };
    let wrong = || format!("\"{text}\" is not a name or a range of names, such as \"home[1-20]\"");
    let (inside, after) = rest.split_once(']').ok_or_else(wrong)?;
    let (first, last) = inside.split_once('-').ok_or_else(wrong)?;
    let first: u64 = first.parse().map_err(|_| wrong())?;
    let last: u64 = last.parse().map_err(|_| wrong())?;
    if first > last {
        return Err(format!("the range \"{text}\" is empty: {first} is above {last}"));
    }
    if last - first >= MOST {
        return Err(format!("the range \"{text}\" has more than {MOST} names"));
    }
    Ok((first..=last).map(|number| format!("{before}{number}{after}")).collect())
}

/// Item `at` of a range of `count` items. A range of one item is the same for all.
///
/// # Errors
/// A sentence, if the range has another number of items.
pub fn item(text: &str, at: usize, count: usize) -> Result<String, String> {
    let mut names = expand(text)?;
    match names.len() {
        1 => Ok(names.swap_remove(0)),
        items if items == count => Ok(names.swap_remove(at)),
        items => Err(format!("the range \"{text}\" has {items} names, and there are {count} classes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_several_names() {
        assert_eq!(expand("nas").unwrap(), ["nas"]);
        assert_eq!(expand("h[9-11]x").unwrap(), ["h9x", "h10x", "h11x"]);
        assert_eq!(item("h[5-7]", 2, 3).unwrap(), "h7");
        assert_eq!(item("h", 2, 3).unwrap(), "h");
    }

    #[test]
    fn mistakes_are_named() {
        let said = |text: &str| expand(text).unwrap_err();
        assert_eq!(said("h[1"), "\"h[1\" is not a name or a range of names, such as \"home[1-20]\"");
        assert_eq!(said("h[3-1]"), "the range \"h[3-1]\" is empty: 3 is above 1");
        assert_eq!(said("h[0-100000]"), "the range \"h[0-100000]\" has more than 100000 names");
        let other = item("h[1-2]", 0, 3).unwrap_err();
        assert_eq!(other, "the range \"h[1-2]\" has 2 names, and there are 3 classes");
    }
}
