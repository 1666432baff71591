//! An arbiter in a fabric.

use crate::arbiter::{Arbiter, Demand, Matching};
use crate::notes::Notes;

/// An arbiter in a fabric, which skips reports of arrivals if the arbiter does not need them.
pub(crate) struct ArbiterHandle<const W: usize> {
    arbiter: Box<dyn Arbiter<W>>,
    /// Result of [`Arbiter::listens`], kept because there is a report for each packet and few arbiters need
    /// it.
    listens: bool,
}

impl<const W: usize> ArbiterHandle<W> {
    pub fn new(arbiter: Box<dyn Arbiter<W>>) -> ArbiterHandle<W> {
        ArbiterHandle { listens: arbiter.listens(), arbiter }
    }

    /// Calls [`Arbiter::on_arrival`] if the arbiter needs it.
    #[inline]
    pub fn on_arrival(&mut self, input: usize, output: usize) {
        if self.listens {
            self.arbiter.on_arrival(input, output);
        }
    }

    /// Calls [`Arbiter::decide`].
    #[inline]
    pub fn decide(&mut self, demand: &Demand<'_, W>, matching: &mut Matching<W>, notes: &mut Notes) {
        self.arbiter.decide(demand, matching, notes);
    }

    /// Calls [`Arbiter::pointers`].
    pub fn pointers(&self, visit: &mut dyn FnMut(&'static str, &[u16])) {
        self.arbiter.pointers(visit);
    }
}
