//! The classes of a configuration, with all ranges written out and their filters resolved.

use std::collections::BTreeMap;

use giveway_qdisc::units::nearest;
use giveway_qdisc::{Hosts, Invalid, Meta};

use super::filter::Fields;
use super::{Classifier, Filter, ranges};
use crate::Spec;

/// Maximum number of classes in a tree.
const MAX: usize = 200_000;
/// Maximum number of levels in a tree.
pub const LEVELS: usize = 8;

/// A class as it is written, of any discipline.
pub trait ClassConfig: Sized {
    /// Its name, or a range of names.
    fn name(&self) -> &str;
    /// Its filters.
    fn filters(&self) -> &[Filter];
    /// The discipline of a leaf.
    fn leaf(&self) -> Option<&Spec>;
    /// The classes below.
    fn classes(&self) -> &[Self];
}

/// A class of a tree.
#[derive(Clone, Debug)]
pub struct Planned<'a, C> {
    /// As it was written, for all classes of a range.
    pub written: &'a C,
    /// Its own name.
    pub name: String,
    /// Number of the class above.
    pub parent: Option<u32>,
    /// 1 for classes directly at the link.
    pub level: u16,
    /// Filters of the classes above and its own, joined.
    filters: Vec<Fields>,
    /// Its place in its range.
    copy: ranges::Copy,
}

/// All classes: parents before children, and children of one parent after each other.
#[derive(Debug)]
pub struct Plan<'a, C> {
    /// The classes by number.
    pub classes: Vec<Planned<'a, C>>,
    /// The filters, with the classes of their packets.
    pub classifier: Classifier,
    /// Class of packets that no filter matches.
    pub default: Option<u32>,
    /// Warnings about filters, each in a sentence.
    pub warnings: Vec<String>,
}

impl<'a, C: ClassConfig> Plan<'a, C> {
    /// The classes of these lists. `default` is the name or the path of the class of all other packets.
    ///
    /// # Errors
    /// The parameter that is not valid: "classes" or "default".
    pub fn new(list: &'a [C], default: Option<&str>, hosts: &Hosts) -> Result<Plan<'a, C>, Invalid> {
        let mut plan = Plan {
            classes: Vec::new(),
            classifier: Classifier::default(),
            default: None,
            warnings: Vec::new(),
        };
        plan.add(list, None, hosts)?;
        // The list grows while it is read: children come after all classes of the level above.
        let mut at = 0;
        while at < plan.classes.len() {
            let below = plan.classes[at].written.classes();
            if !below.is_empty() {
                plan.add(below, Some(at), hosts)?;
            }
            at += 1;
        }
        plan.default = plan.named(default)?;
        plan.filter()?;
        Ok(plan)
    }

    /// True for a class without classes below.
    pub fn is_leaf(&self, class: usize) -> bool {
        self.classes[class].written.classes().is_empty()
    }

    /// The class of packets like this one.
    pub fn class_of(&self, like: &Meta) -> Option<u32> {
        self.classifier.class(like, None).or(self.default)
    }

    /// Names of the class and those above it.
    pub fn path(&self, class: usize) -> String {
        let planned = &self.classes[class];
        match planned.parent {
            Some(above) => format!("{}/{}", self.path(above as usize), planned.name),
            None => planned.name.clone(),
        }
    }

    /// Appends the classes of a list, all below the class `above`.
    fn add(&mut self, list: &'a [C], above: Option<usize>, hosts: &Hosts) -> Result<(), Invalid> {
        let (part, parts) = above.map_or((0, 1), |above| {
            let copy = self.classes[above].copy;
            (copy.at, copy.count)
        });
        let level = above.map_or(1, |above| self.classes[above].level + 1);
        let mut names: BTreeMap<String, ()> = BTreeMap::new();
        for written in list {
            let all = ranges::expand(written.name()).map_err(|message| Invalid::new("classes", message))?;
            let class = |message: String| wrong(written.name(), message);
            if usize::from(level) > LEVELS {
                return Err(class(format!("a tree has at most {LEVELS} levels")));
            }
            if !written.classes().is_empty() && written.leaf().is_some() {
                let message = "a class with classes below cannot have a discipline: remove \"leaf\"";
                return Err(class(message.to_owned()));
            }
            if all.len() != 1 && all.len() % parts != 0 {
                return Err(class(format!(
                    "{} classes cannot be divided among {parts} classes above: use a multiple of {parts}",
                    all.len()
                )));
            }
            // One name is repeated below each class of a range; more names are divided among them.
            let (each, count) = if all.len() == 1 { (1, parts) } else { (all.len() / parts, all.len()) };
            for at in part * each..(part + 1) * each {
                if self.classes.len() == MAX {
                    return Err(class(format!("a tree has at most {MAX} classes")));
                }
                let name = if all.len() == 1 { &all[0] } else { &all[at] };
                if name.is_empty() || name.contains('/') {
                    return Err(class("a class needs a name, without \"/\"".to_owned()));
                }
                if names.insert(name.clone(), ()).is_some() {
                    return Err(class(format!("there are two classes \"{name}\" here: rename one")));
                }
                let copy = ranges::Copy { at, count, each };
                let filters = joined(written, copy, above.map(|above| &self.classes[above]), hosts);
                let (filters, parent) = (filters.map_err(class)?, above.map(|above| above as u32));
                self.classes.push(Planned { written, name: name.clone(), parent, level, filters, copy });
            }
        }
        Ok(())
    }

    /// Collects the filters of the leaves.
    fn filter(&mut self) -> Result<(), Invalid> {
        let mut hidden = BTreeMap::new();
        for class in 0..self.classes.len() {
            if !self.is_leaf(class) {
                continue;
            }
            let Planned { written, name, filters, .. } = &self.classes[class];
            for fields in filters {
                if !self.classifier.push(*fields, class as u32) {
                    hidden.entry(written.name()).or_insert_with(|| name.clone());
                }
            }
            if filters.is_empty() && self.default != Some(class as u32) {
                let help = "write a filter, as in match [(class 1)], or name it as the default";
                return Err(Invalid::new("classes", format!("no packet can be in class \"{name}\": {help}")));
            }
        }
        self.warnings.extend(hidden.values().map(|name| {
            format!("class \"{name}\": an earlier filter takes all packets of one of its filters")
        }));
        Ok(())
    }

    /// Number of the leaf with this name or path.
    fn named(&self, wanted: Option<&str>) -> Result<Option<u32>, Invalid> {
        let Some(wanted) = wanted else { return Ok(None) };
        let leaves = || (0..self.classes.len()).filter(|at| self.is_leaf(*at));
        let found: Vec<usize> =
            leaves().filter(|at| self.classes[*at].name == wanted || self.path(*at) == wanted).collect();
        let message = match found[..] {
            [one] => return Ok(Some(one as u32)),
            [] if self.classes.iter().any(|class| class.name == wanted) => {
                format!("class \"{wanted}\" has classes below: name one of them")
            }
            [] => {
                let names: Vec<&str> = leaves().map(|at| self.classes[at].name.as_str()).take(1000).collect();
                let help = match nearest(wanted, names.iter().copied()) {
                    Some(near) => format!("did you mean \"{near}\"?"),
                    None if names.is_empty() => "there are no classes: name them in \"classes\"".to_owned(),
                    None => format!("there are {}", names[..names.len().min(8)].join(", ")),
                };
                format!("unknown class \"{wanted}\"; {help}")
            }
            [first, ..] => {
                format!(
                    "there are {} classes \"{wanted}\": write a path, \"{}\"",
                    found.len(),
                    self.path(first)
                )
            }
        };
        Err(Invalid::new("default", message))
    }
}

/// An error about a class.
pub fn wrong(class: &str, message: impl std::fmt::Display) -> Invalid {
    Invalid::new("classes", format!("class \"{class}\": {message}"))
}

/// The filters of a class, each joined with each of the class above.
fn joined<C: ClassConfig>(
    written: &C,
    copy: ranges::Copy,
    parent: Option<&Planned<'_, C>>,
    hosts: &Hosts,
) -> Result<Vec<Fields>, String> {
    let own = written.filters().iter().map(|filter| filter.resolved(copy, hosts));
    let own: Vec<Fields> = own.collect::<Result<_, _>>()?;
    let above = parent.map_or(&[][..], |parent| &parent.filters);
    if own.is_empty() || above.is_empty() {
        return Ok(if own.is_empty() { above.to_vec() } else { own });
    }
    let joined: Vec<Fields> =
        own.iter().flat_map(|one| above.iter().filter_map(|other| one.and(*other))).collect();
    if joined.is_empty() {
        return Err("no packet matches both its filters and its parent's".to_owned());
    }
    Ok(joined)
}
