//! Ranges of names: "home[1-20]" is home1 to home20, as for the nodes of a scenario.

/// Maximum number of names in one range.
const MAX: u64 = 200_000;

/// A range, taken apart.
struct Range<'a> {
    before: &'a str,
    after: &'a str,
    first: u64,
    /// Number of names.
    count: usize,
}

impl Range<'_> {
    /// A range; `None` for a name without brackets.
    fn read(text: &str) -> Result<Option<Range<'_>>, String> {
        let Some((before, rest)) = text.split_once('[') else { return Ok(None) };
        let wrong = || format!("\"{text}\" is not a name or a range of names, such as \"home[1-20]\"");
        let (inside, after) = rest.split_once(']').ok_or_else(wrong)?;
        let (first, last) = inside.split_once('-').ok_or_else(wrong)?;
        let first: u64 = first.parse().map_err(|_| wrong())?;
        let last: u64 = last.parse().map_err(|_| wrong())?;
        if first > last {
            return Err(format!("the range \"{text}\" is empty: {first} is above {last}"));
        }
        if last - first >= MAX {
            return Err(format!("the range \"{text}\" has more than {MAX} names"));
        }
        Ok(Some(Range { before, after, first, count: (last - first + 1) as usize }))
    }

    fn name(&self, at: usize) -> String {
        format!("{}{}{}", self.before, self.first + at as u64, self.after)
    }
}

/// The names of a range; a name without brackets is a range of one.
///
/// # Errors
/// The mistake, in a sentence.
pub fn expand(text: &str) -> Result<Vec<String>, String> {
    Ok(match Range::read(text)? {
        None => vec![text.to_owned()],
        Some(range) => (0..range.count).map(|at| range.name(at)).collect(),
    })
}

/// The place of a class of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy {
    /// Its number among all classes of the range.
    pub at: usize,
    /// The number of classes of the range.
    pub count: usize,
    /// The number of classes of the range with the same class above.
    pub each: usize,
}

impl Copy {
    /// The only class of its name.
    pub const ONLY: Copy = Copy { at: 0, count: 1, each: 1 };

    /// The item of another range for this class: of a range with one item for each class, or with one for
    /// each class below the same one. A range of one item is the same for all.
    ///
    /// # Errors
    /// A sentence, if the range has another number of items.
    pub fn of(self, text: &str) -> Result<String, String> {
        let Some(range) = Range::read(text)? else { return Ok(text.to_owned()) };
        match range.count {
            1 => Ok(range.name(0)),
            items if items == self.count => Ok(range.name(self.at)),
            items if items == self.each => Ok(range.name(self.at % self.each)),
            items => {
                Err(format!("the range \"{text}\" has {items} names, and there are {} classes", self.count))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_several_names() {
        assert_eq!(expand("nas").unwrap(), ["nas"]);
        assert_eq!(expand("h[9-11]x").unwrap(), ["h9x", "h10x", "h11x"]);
        // The fifth of six, of which three are below each of two classes.
        let copy = Copy { at: 4, count: 6, each: 3 };
        assert_eq!(copy.of("h[5-10]").unwrap(), "h9");
        assert_eq!(copy.of("h[5-7]").unwrap(), "h6");
        assert_eq!(copy.of("h").unwrap(), "h");
    }

    #[test]
    fn mistakes_are_named() {
        let said = |text: &str| expand(text).unwrap_err();
        assert_eq!(said("h[1"), "\"h[1\" is not a name or a range of names, such as \"home[1-20]\"");
        assert_eq!(said("h[3-1]"), "the range \"h[3-1]\" is empty: 3 is above 1");
        assert_eq!(said("h[0-200000]"), "the range \"h[0-200000]\" has more than 200000 names");
        let other = Copy { count: 3, ..Copy::ONLY }.of("h[1-2]").unwrap_err();
        assert_eq!(other, "the range \"h[1-2]\" has 2 names, and there are 3 classes");
    }
}
