//! A queue that runs a module.

use std::cell::RefCell;
use std::rc::Rc;

use giveway_qdisc::{Backlog, Cx, DropReason, LinkContext, Next, Packet, Qdisc, Rate, Time};
use wasmi::{Error, Store, TrapCode, TypedFunc};

use crate::host::{Host, REASON, Verb};
use crate::limits::Limits;
use crate::mistake::{Mistake, ModuleError};
use crate::module::Module;

/// The first mistake in a run, and the fuel of all queues. All queues of the run share it.
#[derive(Clone, Debug, Default)]
pub struct Failure(Rc<RefCell<Shared>>);

#[derive(Debug, Default)]
struct Shared {
    mistake: Option<Mistake>,
    fuel: u64,
    packets: u64,
}

impl Failure {
    /// The first mistake.
    pub fn mistake(&self) -> Option<Mistake> {
        self.0.borrow().mistake.clone()
    }

    /// True once a module made a mistake.
    pub fn is_set(&self) -> bool {
        self.0.borrow().mistake.is_some()
    }

    /// The fuel that all calls used, and the packets that arrived.
    pub fn fuel(&self) -> (u64, u64) {
        let shared = self.0.borrow();
        (shared.fuel, shared.packets)
    }

    fn set(&self, mistake: Mistake) {
        self.0.borrow_mut().mistake.get_or_insert(mistake);
    }
}

/// A discipline that runs a module. After a mistake it drops everything.
pub struct Queue<P> {
    store: Store<Host>,
    enqueue: TypedFunc<i64, ()>,
    dequeue: TypedFunc<(), i64>,
    rate_changed: Option<TypedFunc<i64, ()>>,
    limits: Limits,
    /// The fuel that the next call may use.
    fuel: u64,
    packets: Vec<Option<Packet<P>>>,
    backlog: Backlog,
    failure: Failure,
}

impl<P> Queue<P> {
    /// A queue for a link.
    ///
    /// # Errors
    /// If the module fails while it is set up.
    pub fn new(module: &Module, context: &LinkContext, failure: &Failure) -> Result<Queue<P>, ModuleError> {
        let limits = module.limits();
        let (store, instance) = module.instance(Host::new(context, limits))?;
        let checked = "the exports were checked";
        let mut queue = Queue {
            enqueue: instance.get_typed_func(&store, "enqueue").expect(checked),
            dequeue: instance.get_typed_func(&store, "dequeue").expect(checked),
            rate_changed: instance.get_typed_func(&store, "rate_changed").ok(),
            store,
            limits,
            fuel: limits.most_fuel(),
            packets: Vec::new(),
            backlog: Backlog::ZERO,
            failure: failure.clone(),
        };
        if let Ok(start) = instance.get_typed_func::<(), ()>(&queue.store, "start") {
            queue.call("start", Time::ZERO, |store| start.call(store, ()));
        }
        Ok(queue)
    }

    /// Calls a function with the fuel that is left. `None` after a mistake.
    fn call<R>(
        &mut self,
        call: &'static str,
        now: Time,
        run: impl FnOnce(&mut Store<Host>) -> Result<R, Error>,
    ) -> Option<R> {
        self.fuel = self.fuel.saturating_add(self.limits.fuel).min(self.limits.most_fuel());
        self.store.data_mut().begin(now);
        self.store.set_fuel(self.fuel).expect("the engine counts fuel");
        let result = run(&mut self.store);
        let left = self.store.get_fuel().expect("the engine counts fuel");
        self.failure.0.borrow_mut().fuel += self.fuel - left;
        self.fuel = left;
        match result {
            Ok(result) => Some(result),
            Err(error) => {
                let mistake = self.mistake(call, now, &error);
                self.failure.set(mistake);
                None
            }
        }
    }

    fn mistake(&mut self, call: &'static str, at: Time, error: &Error) -> Mistake {
        if let Some(what) = self.store.data_mut().broken.take() {
            return Mistake::Broken { call, what, at };
        }
        match error.as_trap_code() {
            Some(TrapCode::OutOfFuel) => {
                Mistake::Fuel { call, fuel: self.limits.fuel, most: self.limits.most_fuel(), at }
            }
            Some(TrapCode::GrowthOperationLimited) => {
                Mistake::Memory { call, most: self.limits.memory.0, at }
            }
            _ => Mistake::Trapped { call, why: error.to_string(), at },
        }
    }

    fn breaks(&self, call: &'static str, what: String, at: Time) {
        self.failure.set(Mistake::Broken { call, what, at });
    }

    /// Applies the drops and marks of a call.
    fn settle(&mut self, cx: &mut Cx<'_, P>) {
        let verbs = std::mem::take(&mut self.store.data_mut().verbs);
        for verb in &verbs {
            match verb {
                Verb::Drop(slot) => {
                    let packet = self.take(*slot);
                    cx.drop(packet, REASON);
                }
                Verb::Mark(slot) => {
                    if let Some(packet) = &mut self.packets[*slot as usize] {
                        cx.mark(packet);
                    }
                }
            }
        }
        self.store.data_mut().verbs = verbs;
    }

    fn take(&mut self, slot: u32) -> Packet<P> {
        let packet = self.packets[slot as usize].take().expect("the slot of a packet in the queue");
        self.store.data_mut().remove(slot);
        self.backlog.sub(packet.meta.bytes);
        packet
    }

    /// After a mistake nobody would send the packets.
    fn give_up(&mut self, cx: &mut Cx<'_, P>) {
        for packet in self.packets.iter_mut().filter_map(Option::take) {
            cx.drop(packet, DropReason::Reset);
        }
        self.backlog = Backlog::ZERO;
    }

    /// The answer of `dequeue`.
    fn answered(&mut self, answer: i64, now: Time) -> Next<P> {
        let host = self.store.data_mut();
        let wait = host.wait.take();
        if answer >= 0 {
            if let Some(slot) = host.slot_of(answer) {
                return Next::Packet(self.take(slot));
            }
            self.breaks("dequeue", format!("sends packet {answer}, which is not in the queue"), now);
            return Next::Empty;
        }
        let packets = self.backlog.packets;
        match wait {
            _ if packets == 0 => Next::Empty,
            Some(until) => Next::At(until),
            None => {
                let what =
                    format!("returns no packet, and {packets} are queued: send one, or call wait_until");
                self.breaks("dequeue", what, now);
                Next::Empty
            }
        }
    }
}

impl<P> Qdisc<P> for Queue<P> {
    fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        if self.failure.is_set() {
            cx.drop(pkt, DropReason::Reset);
            return self.give_up(cx);
        }
        let now = cx.now();
        self.failure.0.borrow_mut().packets += 1;
        self.backlog.add(pkt.meta.bytes);
        let (slot, number) = self.store.data_mut().add(pkt.meta);
        let place = slot as usize;
        if self.packets.len() <= place {
            self.packets.resize_with(place + 1, || None);
        }
        self.packets[place] = Some(pkt);
        let enqueue = self.enqueue;
        match self.call("enqueue", now, |store| enqueue.call(store, number)) {
            Some(()) => self.settle(cx),
            None => self.give_up(cx),
        }
    }

    fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P> {
        if self.failure.is_set() {
            self.give_up(cx);
            return Next::Empty;
        }
        let now = cx.now();
        let dequeue = self.dequeue;
        let Some(answer) = self.call("dequeue", now, |store| dequeue.call(store, ())) else {
            self.give_up(cx);
            return Next::Empty;
        };
        // Drops come first: the answer is about what is left.
        self.settle(cx);
        let next = self.answered(answer, now);
        if self.failure.is_set() {
            self.give_up(cx);
        }
        next
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        self.give_up(cx);
    }

    fn rate_changed(&mut self, rate: Rate, now: Time) {
        self.store.data_mut().set_rate(rate);
        if let Some(function) = self.rate_changed.filter(|_| !self.failure.is_set()) {
            self.call("rate_changed", now, |store| function.call(store, rate.as_bit() as i64));
            // A call without a context cannot drop.
            if !self.store.data().verbs.is_empty() {
                self.breaks("rate_changed", "drops or marks packets, and may not".to_owned(), now);
            }
        }
    }
}
