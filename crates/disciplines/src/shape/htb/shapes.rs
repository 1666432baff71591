//! Rates, bursts and quanta of the classes of a configuration, checked.

use giveway_qdisc::{Bytes, Invalid, LinkContext, Rate, Span};

use super::tree::{PRIOS, Shape};
use super::{Class, Config};
use crate::common::classes::plan::{Planned, wrong};
use crate::common::classes::service::{in_order, on_link};
use crate::common::classes::{ClassService, Plan};

/// Picoseconds per second.
const PS: u128 = 1_000_000_000_000;
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

/// The service of a leaf: its rate, after a latency.
///
/// Over a time t a leaf k sends, at its own rate, at most R_k t + b_k and one packet L, since its bucket pays
/// for it. While leaf i has credit and a packet, the link sends only such packets of others, its
/// own, and one that was in transmission. Two limits of its wait follow, and the smaller counts:
/// - The others send no more than their buckets pay for, whatever the priorities are: the sum of (b_k + L)
///   and L, at the rate that they leave, C - sum of R_k.
/// - Only leaves of higher priority send all of that. Leaves of the same priority take turns, of q_k and a
///   packet. With F the sum of q at this priority, that is (F - q_i)(1 + 2L/q_i) and L for each, at the rate
///   that the higher ones leave; and F/q_i at this rate must be enough for R_i.
///
/// Without credit the leaf has had its rate. Its bucket must not be full while it waits, or credit is lost:
/// both the burst and the ceil's burst must cover the wait. At the beginning it may owe one packet, and the
/// last bit of a packet leaves after its transmission.
///
/// # Errors
/// The reason why there is no such service, in a sentence.
pub fn service(
    plan: &Plan<'_, Class>,
    shapes: &[Shape],
    class: usize,
    context: &LinkContext,
) -> Result<ClassService, String> {
    let (path, shape) = (plan.path(class), &shapes[class]);
    in_order(&path, plan.classes[class].written.leaf.as_deref())?;
    if plan.default.is_none() {
        let message = "packets that match no filter leave before all others: name a class in \"default\"";
        return Err(message.to_owned());
    }
    let others: Vec<&Shape> = (0..shapes.len())
        .filter(|other| plan.is_leaf(*other) && *other != class)
        .map(|other| &shapes[other])
        .collect();
    let own = u128::from(shape.rate.as_bit());
    let all = own + others.iter().map(|other| u128::from(other.rate.as_bit())).sum::<u128>();
    if all > u128::from(context.rate.as_bit()) {
        return Err(format!(
            "the leaves have rates of {all} bit/s together, and the link has {}",
            context.rate
        ));
    }
    let waits = [by_buckets(&others, context), by_turns(shape, &others, context)];
    let wait = waits.into_iter().flatten().min().unwrap_or(Span::from_ps(u64::MAX));
    // What the class earns while it waits, and a packet.
    let mtu = u128::from(context.mtu.0);
    let credit = (u128::from(wait.as_ps()) * own).div_ceil(8 * PS) + mtu;
    for (name, burst) in [("burst", shape.burst), ("cburst", shape.cburst)] {
        if u128::from(burst.0) < credit {
            return Err(format!(
                "class \"{path}\" may wait for others for {}, and then its {name} of {} bytes is full, so that \
                 credit is lost: write {name} {credit}b",
                wait.rough(),
                burst.0
            ));
        }
    }
    let latency = wait + time(mtu, own) + on_link(context.mtu, context);
    Ok(ClassService::line(path, shape.rate, latency))
}

/// Time in which bytes leave at a rate in bit/s, rounded up.
fn time(bytes: u128, rate: u128) -> Span {
    Span::from_ps(u64::try_from((8 * PS * bytes).div_ceil(rate.max(1))).unwrap_or(u64::MAX))
}

/// Bytes that leaves send at once at most, and the rate in bit/s that they leave of the link.
fn taken<'a>(leaves: impl Iterator<Item = &'a Shape>, context: &LinkContext) -> (u128, u128) {
    let (mut bursts, mut rate) = (0, u128::from(context.rate.as_bit()));
    for leaf in leaves {
        bursts += u128::from(leaf.burst.0 + context.mtu.0);
        rate = rate.saturating_sub(u128::from(leaf.rate.as_bit()));
    }
    (bursts, rate)
}

/// The longest wait of a leaf if the buckets of all others are full.
fn by_buckets(others: &[&Shape], context: &LinkContext) -> Option<Span> {
    let (bursts, rate) = taken(others.iter().copied(), context);
    (rate > 0).then(|| time(bursts + u128::from(context.mtu.0), rate))
}

/// The longest wait of a leaf among leaves of its priority, which take turns; `None` if its turns are too
/// small for its rate.
fn by_turns(shape: &Shape, others: &[&Shape], context: &LinkContext) -> Option<Span> {
    let higher = others.iter().copied().filter(|other| other.prio < shape.prio);
    let (bursts, rate) = taken(higher, context);
    let (own, mtu) = (u128::from(shape.quantum), u128::from(context.mtu.0));
    let equals = others.iter().filter(|other| other.prio == shape.prio);
    let (count, rest) =
        equals.fold((0, 0), |(count, sum), other| (count + 1, sum + u128::from(other.quantum)));
    if own == 0 || rate * own < u128::from(shape.rate.as_bit()) * (rest + own) {
        return None;
    }
    let turns = rest + (2 * rest * mtu).div_ceil(own) + (count + 2) * mtu;
    Some(time(bursts + mtu + turns, rate))
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
    warnings.extend(lost_credit(plan, shapes, context));
    warnings
}

/// A leaf that borrows much less than it could: its default burst at the ceil is full long before another
/// leaf, which may use all that there is to borrow, has had its turn. In the simulator, on a link of 1
/// Gbit/s, a class with rate 100mbit ceil 500mbit has 116 Mbit/s beside one with ceil 1gbit, and 500 Mbit/s
/// with a cburst as long as the turn.
fn lost_credit(plan: &Plan<'_, Class>, shapes: &[Shape], context: &LinkContext) -> Option<String> {
    // A class that has nearly the whole speed keeps its turn: measured for 0.89 of it, and not for 0.83.
    let is_slow = |ceil: Rate, speed: u64| u128::from(ceil.as_bit()) * 100 < u128::from(speed) * 85;
    plan.classes.iter().zip(shapes).enumerate().find_map(|(number, (planned, shape))| {
        let above = planned.parent?;
        let speed = shapes[above as usize].ceil.min(context.rate).as_bit();
        let borrows = plan.is_leaf(number) && shape.ceil > shape.rate && is_slow(shape.ceil, speed);
        if !borrows || planned.written.cburst.is_some() {
            return None;
        }
        let (other, turn) = plan.classes.iter().zip(shapes).enumerate().find_map(|(other, (them, theirs))| {
            let beside = other != number && them.parent == planned.parent && plan.is_leaf(other);
            let greedy = theirs.prio == shape.prio && !is_slow(theirs.ceil, speed);
            (beside && greedy).then_some((&them.name, theirs.quantum))
        })?;
        let turn = u128::from(turn) + u128::from(context.mtu.0);
        let earned = (turn * u128::from(shape.ceil.as_bit())).div_ceil(u128::from(speed.max(1)));
        (earned > 2 * u128::from(shape.cburst.0)).then(|| {
            format!(
                "class \"{}\": its default cburst of {} bytes is full long before \"{other}\" has had its turn, so that \
                 it borrows only a packet for each turn: write cburst {earned}b, or give \"{other}\" a quantum of {}b",
                planned.name, shape.cburst.0, context.mtu.0
            )
        })
    })
}
