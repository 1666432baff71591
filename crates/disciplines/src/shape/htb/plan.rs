//! The classes of a configuration, checked, with all ranges written out.

use std::collections::BTreeMap;

use giveway_qdisc::{Bytes, Hosts, Invalid, LinkContext, Rate};

use super::tree::{LEVELS, PRIOS, Shape};
use super::{Class, Config};
use crate::common::classes::filter::Fields;
use crate::common::classes::{Classifier, ranges};

/// Most classes of a tree.
const MOST: usize = 200_000;
/// Bounds of a quantum that follows from the rate, bytes, as in Linux.
const QUANTA: std::ops::RangeInclusive<u64> = 1000..=200_000;

/// A class.
#[derive(Clone, Debug)]
pub struct Planned<'a> {
    /// As it was written, for all classes of a range.
    pub written: &'a Class,
    /// Its own name.
    pub name: String,
    /// Its place in the schedule.
    pub shape: Shape,
    /// 1 for classes directly at the link.
    pub depth: u16,
    /// Filters of the classes above and its own, joined.
    filters: Vec<Fields>,
    /// Number of the class above among all of its range, and their number.
    copy: (usize, usize),
}

/// All classes: parents before children, and children of one parent after each other.
#[derive(Debug)]
pub struct Plan<'a> {
    /// The classes by number.
    pub classes: Vec<Planned<'a>>,
    /// The filters, with the classes of their packets.
    pub classifier: Classifier,
    /// Class of packets that no filter matches.
    pub default: Option<u32>,
    /// Warnings, each in a sentence.
    pub warnings: Vec<String>,
}

impl<'a> Plan<'a> {
    /// The classes of a configuration at a link.
    ///
    /// # Errors
    /// The parameter that is not valid.
    pub fn new(config: &'a Config, context: &LinkContext) -> Result<Plan<'a>, Invalid> {
        let wrong = |message: String| Invalid::new("classes", message);
        let mut plan =
            Plan { classes: Vec::new(), classifier: Classifier::default(), default: None, warnings: Vec::new() };
        plan.add(&config.classes, None, config, context)?;
        // The list grows while it is read: children come after all classes of the level above.
        let mut at = 0;
        while at < plan.classes.len() {
            let inner = plan.classes[at].written;
            if !inner.classes.is_empty() {
                plan.add(&inner.classes, Some(at), config, context)?;
            }
            at += 1;
        }
        plan.default = plan.named(config.default.as_deref())?;
        let mut hidden = BTreeMap::new();
        for (class, planned) in plan.classes.iter().enumerate() {
            if !planned.written.classes.is_empty() {
                continue;
            }
            for fields in &planned.filters {
                if !plan.classifier.push(*fields, class as u32) {
                    hidden.entry(planned.written.name.as_str()).or_insert_with(|| planned.name.clone());
                }
            }
            if planned.filters.is_empty() && plan.default != Some(class as u32) {
                return Err(wrong(format!(
                    "no packet can be in class \"{}\": write a filter, as in match [(class 1)], or name it as the \
                     default",
                    planned.name
                )));
            }
        }
        plan.warnings.extend(hidden.values().map(|name| {
            format!("class \"{name}\": an earlier filter takes all packets of one of its filters")
        }));
        if plan.default.is_none() && !plan.classes.is_empty() {
            plan.warnings.push(
                "packets that match no filter leave at the rate of the link, before all others: name a class in \
                 \"default\""
                    .to_owned(),
            );
        }
        plan.warn_of_rates(context);
        Ok(plan)
    }

    /// Appends the classes of a list, all below the class `above`.
    fn add(
        &mut self,
        list: &'a [Class],
        above: Option<usize>,
        config: &Config,
        context: &LinkContext,
    ) -> Result<(), Invalid> {
        let (part, parts) = above.map_or((0, 1), |above| self.classes[above].copy);
        let mut names: BTreeMap<String, ()> = BTreeMap::new();
        for written in list {
            let all = ranges::expand(&written.name).map_err(|message| Invalid::new("classes", message))?;
            let class = |message: String| Invalid::new("classes", format!("class \"{}\": {message}", written.name));
            if all.len() != 1 && all.len() % parts != 0 {
                return Err(class(format!(
                    "{} classes cannot be divided among {parts} classes above: use a multiple of {parts}",
                    all.len()
                )));
            }
            // One name is repeated below each class of a range; more names are divided among them.
            let (each, count) = if all.len() == 1 { (1, parts) } else { (all.len() / parts, all.len()) };
            for copy in part * each..(part + 1) * each {
                if self.classes.len() == MOST {
                    return Err(class(format!("a tree has at most {MOST} classes")));
                }
                let name = if all.len() == 1 { &all[0] } else { &all[copy] };
                if names.insert(name.clone(), ()).is_some() {
                    return Err(class(format!("there are two classes \"{name}\" here: rename one")));
                }
                let planned =
                    self.planned(written, name.clone(), above, (copy, count), config, context).map_err(class)?;
                self.classes.push(planned);
            }
        }
        Ok(())
    }

    fn planned(
        &self,
        written: &'a Class,
        name: String,
        above: Option<usize>,
        copy: (usize, usize),
        config: &Config,
        context: &LinkContext,
    ) -> Result<Planned<'a>, String> {
        if name.is_empty() {
            return Err("a class needs a name".to_owned());
        }
        let parent = above.map(|above| &self.classes[above]);
        let rate = written.rate.ok_or("it needs a rate, such as rate 5mbit")?;
        let ceil = written.ceil.unwrap_or(rate);
        if rate == Rate::bit(0) {
            return Err("a rate of zero never sends: write at least 1kbit".to_owned());
        }
        if ceil < rate {
            return Err(format!("its ceil {ceil} is below its rate {rate}"));
        }
        if let Some(parent) = parent
            && ceil > parent.shape.ceil
        {
            let above = parent.shape.ceil;
            return Err(format!("its ceil {ceil} is above the ceil {above} of its parent \"{}\"", parent.name));
        }
        if usize::from(written.prio) >= PRIOS {
            return Err(format!("prio {} is not between 0 and {}", written.prio, PRIOS - 1));
        }
        if !written.classes.is_empty() && written.leaf.is_some() {
            return Err("a class with classes below has no discipline of its own: remove \"leaf\"".to_owned());
        }
        let depth = parent.map_or(1, |parent| parent.depth + 1);
        if usize::from(depth) > LEVELS {
            return Err(format!("a tree has at most {LEVELS} levels"));
        }
        let quantum = match written.quantum {
            Some(Bytes(0)) => return Err("quantum 0b never sends: write at least one packet, 1500b".to_owned()),
            Some(quantum) => quantum.0,
            None => (rate.as_bit() / 8 / u64::from(config.r2q.max(1))).clamp(*QUANTA.start(), *QUANTA.end()),
        };
        let burst = |given: Option<Bytes>| given.unwrap_or(Bytes(context.mtu.0.max(1500) + 100));
        Ok(Planned {
            written,
            name,
            shape: Shape {
                parent: above.map(|above| above as u32),
                rate,
                ceil,
                burst: burst(written.burst),
                cburst: burst(written.cburst),
                prio: written.prio,
                quantum: u32::try_from(quantum).unwrap_or(u32::MAX),
            },
            depth,
            filters: filters(written, copy, parent, &context.hosts)?,
            copy,
        })
    }

    /// Number of the leaf with this name or path.
    fn named(&self, wanted: Option<&str>) -> Result<Option<u32>, Invalid> {
        let Some(wanted) = wanted else { return Ok(None) };
        let leaves = || (0..self.classes.len()).filter(|at| self.classes[*at].written.classes.is_empty());
        let found: Vec<usize> =
            leaves().filter(|at| self.classes[*at].name == wanted || self.path(*at) == wanted).collect();
        let message = match found[..] {
            [one] => return Ok(Some(one as u32)),
            [] if self.classes.iter().any(|class| class.name == wanted) => {
                format!("class \"{wanted}\" has classes below: name one of them")
            }
            [] => {
                let names: Vec<String> = leaves().map(|at| self.classes[at].name.clone()).take(1000).collect();
                let near = giveway_qdisc::units::nearest(wanted, names.iter().map(String::as_str));
                let help = near.map_or_else(
                    || format!("there are {}", names.iter().take(8).cloned().collect::<Vec<_>>().join(", ")),
                    |near| format!("did you mean \"{near}\"?"),
                );
                format!("unknown class \"{wanted}\"; {help}")
            }
            [first, ..] => {
                format!("there are {} classes \"{wanted}\": write a path, \"{}\"", found.len(), self.path(first))
            }
        };
        Err(Invalid::new("default", message))
    }

    /// Names of the class and those above it.
    pub fn path(&self, class: usize) -> String {
        let planned = &self.classes[class];
        match planned.shape.parent {
            Some(above) => format!("{}/{}", self.path(above as usize), planned.name),
            None => planned.name.clone(),
        }
    }

    fn warn_of_rates(&mut self, context: &LinkContext) {
        let mut below: Vec<u64> = vec![0; self.classes.len()];
        let mut total = 0u64;
        for planned in &self.classes {
            let sum = planned.shape.parent.map_or(&mut total, |above| &mut below[above as usize]);
            *sum = sum.saturating_add(planned.shape.rate.as_bit());
        }
        let over = self.classes.iter().zip(&below).find(|(planned, below)| **below > planned.shape.rate.as_bit());
        if let Some((planned, below)) = over {
            self.warnings.push(format!(
                "the classes below \"{}\" have rates of {} together, and it has {}: they cannot all have theirs",
                planned.name,
                Rate::bit(*below),
                planned.shape.rate
            ));
        }
        if total > context.rate.as_bit() {
            self.warnings.push(format!(
                "the rates of the classes are {} together, and the link has {}",
                Rate::bit(total),
                context.rate
            ));
        }
        let slow = self.classes.iter().find(|planned| {
            planned.written.classes.is_empty() && u64::from(planned.shape.quantum) < context.mtu.0
        });
        if let Some(planned) = slow {
            self.warnings.push(format!(
                "class \"{}\": its quantum of {} bytes is less than a packet of {}, so shares are uneven: write \
                 quantum {}b",
                planned.name, planned.shape.quantum, context.mtu.0, context.mtu.0
            ));
        }
    }
}

/// The filters of a class, each joined with each of the class above.
fn filters(
    written: &Class,
    (copy, count): (usize, usize),
    parent: Option<&Planned<'_>>,
    hosts: &Hosts,
) -> Result<Vec<Fields>, String> {
    let own = written.filters.iter().map(|filter| filter.resolved(copy, count, hosts));
    let own: Vec<Fields> = own.collect::<Result<_, _>>()?;
    let above = parent.map_or(&[][..], |parent| &parent.filters);
    if own.is_empty() || above.is_empty() {
        return Ok(if own.is_empty() { above.to_vec() } else { own });
    }
    let joined: Vec<Fields> =
        own.iter().flat_map(|one| above.iter().filter_map(|other| one.and(*other))).collect();
    if joined.is_empty() {
        return Err("no packet matches its filters and those of its parent".to_owned());
    }
    Ok(joined)
}
