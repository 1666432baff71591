//! The functions that a module may import, and what they know.

use giveway_qdisc::{Bytes, DropReason, Ecn, LinkContext, Meta, Rate, Rng, Span, Streams, Time};
use wasmi::{Caller, Engine, Error, Linker, StoreLimits, StoreLimitsBuilder};

use crate::limits::Limits;

/// The module of all imports.
pub const MODULE: &str = "giveway";

/// The names of all imports.
pub const OFFERED: &[&str] = &[
    "now",
    "wait_until",
    "drop",
    "mark",
    "rate",
    "mtu",
    "random",
    "bytes",
    "arrived",
    "flow",
    "source",
    "destination",
    "traffic_class",
    "dscp",
    "ecn",
    "is_short",
    "offset",
    "remaining",
    "reserved",
];

/// The low bits of the number of a packet are its slot; the others count packets, so that no number is used
/// twice.
const SLOT_BITS: u32 = 24;

/// A verb of a module, which takes effect after its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Drops the packet in a slot.
    Drop(u32),
    /// Marks the packet in a slot.
    Mark(u32),
}

/// A packet of the queue, as the module knows it.
#[derive(Clone, Copy)]
struct Known {
    number: i64,
    meta: Meta,
}

/// The state of the imports.
pub struct Host {
    now: Time,
    rate: Rate,
    mtu: Bytes,
    rng: Rng,
    slots: Vec<Option<Known>>,
    free: Vec<u32>,
    count: u64,
    /// The drops and marks of the call, in order.
    pub verbs: Vec<Verb>,
    /// The time until which the call holds packets back.
    pub wait: Option<Time>,
    /// The breach of the contract that ended the call.
    pub broken: Option<String>,
    /// The limits of memory.
    pub limiter: StoreLimits,
}

impl Host {
    /// The host of a queue at a link.
    pub fn new(context: &LinkContext, limits: Limits) -> Host {
        // One memory, and a table for calls through pointers.
        let limiter = StoreLimitsBuilder::new()
            .memory_size(usize::try_from(limits.memory.0).unwrap_or(usize::MAX))
            .table_elements(10_000)
            .instances(1)
            .memories(1)
            .tables(4)
            .trap_on_grow_failure(true)
            .build();
        Host {
            now: Time::ZERO,
            rate: context.rate,
            mtu: context.mtu,
            rng: context.streams.rng(),
            slots: Vec::new(),
            free: Vec::new(),
            count: 0,
            verbs: Vec::new(),
            wait: None,
            broken: None,
            limiter,
        }
    }

    /// A host of no link, to check a module.
    pub fn outside(limits: Limits) -> Host {
        let context = LinkContext::new(Rate::mbit(10), Streams::new(0));
        Host::new(&context, limits)
    }

    /// Starts a call.
    pub fn begin(&mut self, now: Time) {
        self.now = now;
        self.wait = None;
        self.verbs.clear();
    }

    /// The rate of the link from now on.
    pub fn set_rate(&mut self, rate: Rate) {
        self.rate = rate;
    }

    /// Adds a packet. Returns its slot and its number.
    pub fn add(&mut self, meta: Meta) -> (u32, i64) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        });
        let number = (self.count << SLOT_BITS) as i64 | i64::from(slot);
        self.count += 1;
        self.slots[slot as usize] = Some(Known { number, meta });
        (slot, number)
    }

    /// Frees a slot.
    pub fn remove(&mut self, slot: u32) {
        self.slots[slot as usize] = None;
        self.free.push(slot);
    }

    /// The slot of a packet that is in the queue.
    pub fn slot_of(&self, number: i64) -> Option<u32> {
        let slot = number as u32 & ((1 << SLOT_BITS) - 1);
        let known = self.slots.get(slot as usize)?.as_ref()?;
        (known.number == number && !self.verbs.contains(&Verb::Drop(slot))).then_some(slot)
    }

    fn meta(&mut self, number: i64) -> Result<Meta, Error> {
        match self.slot_of(number) {
            Some(slot) => Ok(self.slots[slot as usize].as_ref().expect("the slot is used").meta),
            None => Err(self.breaks(format!("asks about packet {number}, which is not in the queue"))),
        }
    }

    fn breaks(&mut self, what: String) -> Error {
        let error = Error::new(what.clone());
        self.broken = Some(what);
        error
    }
}

/// The reason of the drops of modules. Which one a module would choose changes nothing in a judgement.
pub const REASON: DropReason = DropReason::Policy;

/// The imports.
pub fn linker(engine: &Engine) -> Linker<Host> {
    let mut linker = Linker::new(engine);
    of_the_link(&mut linker).and_then(|()| of_a_packet(&mut linker)).expect("no name is defined twice");
    linker
}

type Defined = Result<(), wasmi::errors::LinkerError>;

/// Nanoseconds, as modules count.
fn ns(time: Time) -> i64 {
    (time.as_ps() / 1000) as i64
}

fn of_the_link(linker: &mut Linker<Host>) -> Defined {
    linker.func_wrap(MODULE, "now", |caller: Caller<'_, Host>| ns(caller.data().now))?;
    linker.func_wrap(MODULE, "rate", |caller: Caller<'_, Host>| caller.data().rate.as_bit() as i64)?;
    linker.func_wrap(MODULE, "mtu", |caller: Caller<'_, Host>| caller.data().mtu.0 as i32)?;
    linker.func_wrap(MODULE, "random", |mut caller: Caller<'_, Host>| caller.data_mut().rng.word() as i64)?;
    linker.func_wrap(MODULE, "wait_until", |mut caller: Caller<'_, Host>, at: i64| -> Result<(), Error> {
        let host = caller.data_mut();
        let until = u64::try_from(at).ok().and_then(|at| at.checked_mul(1000)).map(Span::from_ps);
        match until.map(|since| Time::ZERO + since) {
            Some(until) if until > host.now => {
                host.wait = Some(until);
                Ok(())
            }
            _ => Err(host.breaks(format!("waits until {at} ns, which is not in the future"))),
        }
    })?;
    linker.func_wrap(MODULE, "drop", |mut caller: Caller<'_, Host>, number: i64| -> Result<(), Error> {
        let host = caller.data_mut();
        match host.slot_of(number) {
            Some(slot) => {
                host.verbs.push(Verb::Drop(slot));
                Ok(())
            }
            None => Err(host.breaks(format!("drops packet {number}, which is not in the queue"))),
        }
    })?;
    linker.func_wrap(MODULE, "mark", |mut caller: Caller<'_, Host>, number: i64| -> Result<i32, Error> {
        let host = caller.data_mut();
        let meta = host.meta(number)?;
        if meta.ecn == Ecn::NotCapable {
            return Ok(0);
        }
        let slot = host.slot_of(number).expect("it has metadata");
        host.verbs.push(Verb::Mark(slot));
        Ok(1)
    })?;
    Ok(())
}

fn of_a_packet(linker: &mut Linker<Host>) -> Defined {
    /// An import that reads the metadata of a packet.
    macro_rules! getters {
        ($($name:literal: $kind:ty = |$meta:ident| $value:expr;)*) => {
            $(linker.func_wrap(
                MODULE,
                $name,
                |mut caller: Caller<'_, Host>, number: i64| -> Result<$kind, Error> {
                    let $meta = caller.data_mut().meta(number)?;
                    Ok($value)
                },
            )?;)*
        };
    }
    getters! {
        "bytes": i32 = |meta| meta.bytes as i32;
        "arrived": i64 = |meta| ns(meta.arrived);
        "flow": i64 = |meta| meta.flow.0 as i64;
        "source": i32 = |meta| i32::from(meta.from);
        "destination": i32 = |meta| i32::from(meta.to);
        "traffic_class": i32 = |meta| i32::from(meta.class);
        "dscp": i32 = |meta| i32::from(meta.header.dscp().number());
        "ecn": i32 = |meta| field(meta.ecn);
        "is_short": i32 = |meta| i32::from(meta.header.is_short());
        "offset": i64 = |meta| i64::from(meta.offset);
        "remaining": i64 = |meta| i64::from(meta.remaining);
        "reserved": i64 = |meta| meta.reserved.as_bit() as i64;
    }
    Ok(())
}

/// The ECN field as on the wire: RFC 3168, section 5.
fn field(ecn: Ecn) -> i32 {
    match ecn {
        Ecn::NotCapable => 0b00,
        Ecn::Ect1 => 0b01,
        Ecn::Ect0 => 0b10,
        Ecn::Marked => 0b11,
    }
}
