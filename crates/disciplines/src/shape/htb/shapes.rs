//! Rates, bursts and quanta of the classes of a configuration, checked.

use giveway_qdisc::{Bytes, Invalid, LinkContext, Rate};

use super::tree::{PRIOS, Shape};
use super::{Class, Config};
use crate::common::classes::Plan;
use crate::common::classes::plan::{Planned, wrong};

/// Bounds of a quantum that follows from the rate, bytes, as in Linux.
const QUANTA: std::ops::RangeInclusive<u64> = 1000..=200_000;

/// The classes of a plan, for the schedule.
///
/// # Errors
/// The class that is not valid.
pub fn shapes(plan: &Plan<'_, Class>, config: &Config, context: &LinkContext) -> Result<Vec<Shape>, Invalid> {
    let mut shapes: Vec<Shape> = Vec::with_capacity(plan.classes.len());
    for planned in &plan.classes {
        let above =
            planned.parent.map(|above| (&*plan.classes[above as usize].name, &shapes[above as usize]));
        let shape =
            shape(planned, above, config, context).map_err(|message| wrong(&planned.name, message))?;
        shapes.push(shape);
    }
    Ok(shapes)
}

fn shape(
    planned: &Planned<'_, Class>,
    above: Option<(&str, &Shape)>,
    config: &Config,
    context: &LinkContext,
) -> Result<Shape, String> {
    let Class { rate, ceil, burst, cburst, prio, quantum, .. } = planned.written;
    let rate = rate.ok_or("it needs a rate, such as rate 5mbit")?;
    let ceil = ceil.unwrap_or(rate);
    if rate == Rate::bit(0) {
        return Err("a rate of zero never sends: write at least 1kbit".to_owned());
    }
    if ceil < rate {
        return Err(format!("its ceil {ceil} is below its rate {rate}"));
    }
    if let Some((name, above)) = above
        && ceil > above.ceil
    {
        return Err(format!("its ceil {ceil} is above the ceil {} of its parent \"{name}\"", above.ceil));
    }
    if usize::from(*prio) >= PRIOS {
        return Err(format!("prio {prio} is not between 0 and {}", PRIOS - 1));
    }
    let quantum = match quantum {
        Some(Bytes(0)) => return Err("quantum 0b never sends: write at least one packet, 1500b".to_owned()),
        Some(quantum) => quantum.0,
        None => (rate.as_bit() / 8 / u64::from(config.r2q.max(1))).clamp(*QUANTA.start(), *QUANTA.end()),
    };
    let or_usual = |given: &Option<Bytes>| given.unwrap_or(Bytes(context.mtu.0.max(1500) + 100));
    Ok(Shape {
        parent: planned.parent,
        rate,
        ceil,
        burst: or_usual(burst),
        cburst: or_usual(cburst),
        prio: *prio,
        quantum: u32::try_from(quantum).unwrap_or(u32::MAX),
    })
}

/// Warnings about the rates of classes.
pub fn warnings(plan: &Plan<'_, Class>, shapes: &[Shape], context: &LinkContext) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut below: Vec<u64> = vec![0; shapes.len()];
    let mut total = 0u64;
    for shape in shapes {
        let sum = shape.parent.map_or(&mut total, |above| &mut below[above as usize]);
        *sum = sum.saturating_add(shape.rate.as_bit());
    }
    let classes = || plan.classes.iter().zip(shapes);
    let over = classes().zip(&below).find(|((_, shape), sum)| **sum > shape.rate.as_bit());
    if let Some(((planned, shape), sum)) = over {
        warnings.push(format!(
            "the classes below \"{}\" have rates of {} together, and it has {}: they cannot all have theirs",
            planned.name,
            Rate::bit(*sum),
            shape.rate
        ));
    }
    if total > context.rate.as_bit() {
        warnings.push(format!(
            "the rates of the classes are {} together, and the link has {}",
            Rate::bit(total),
            context.rate
        ));
    }
    let is_short = |(planned, shape): &(&Planned<'_, Class>, &Shape)| {
        planned.written.classes.is_empty() && u64::from(shape.quantum) < context.mtu.0
    };
    if let Some((planned, shape)) = classes().find(is_short) {
        warnings.push(format!(
            "class \"{}\": its quantum of {} bytes is less than a packet of {}, so shares are uneven: write quantum \
             {}b",
            planned.name, shape.quantum, context.mtu.0, context.mtu.0
        ));
    }
    warnings
}
