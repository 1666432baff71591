//! Frames in pieces: cut before the queue, joined before they are looked at.
//!
//! A direction may cut what it takes to the link, so that the discipline sees no packet that is longer than Φ, and may join what comes in, when
//! another one has cut it: [`wire::fragment`] says how. Both are for Ethernet; a TUN interface has no room for a type.
//!
//! - A fragment is a packet to the discipline: it is charged its own length, counted as that of its frame is, and has the flow, class,
//!   reservation and mark of its frame.
//! - A frame of which not all fragments find a room in the pool is dropped whole: the others would be sent for nothing.
//! - A fragment that the discipline drops takes its frame with it: what is left of it is dropped as well (`together.rs`).

mod together;

use qdisc::hash::SipHasher;
use qdisc::{Streams, Time};
use wire::fragment::{Counts, Cutter, ETHER_TYPE, Reassembly, Size, Taken};

use crate::device::Arrival;
pub(crate) use together::{Groups, Together};

/// What a direction does with fragments, to begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Cuts frames to this size.
    pub cut: Option<Size>,
    /// Joins fragments that come in.
    pub join: bool,
    /// The EtherType of fragments, those that go and those that come.
    pub ether_type: u16,
}

impl Settings {
    /// Nothing.
    pub fn none() -> Settings {
        Settings { cut: None, join: false, ether_type: ETHER_TYPE }
    }
}

/// What came of it. Counters begin at the start and are never set back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fragments {
    /// Frames are cut to this size.
    pub size: Option<Size>,
    /// Fragments that come in are joined.
    pub joins: bool,
    /// Frames that were cut.
    pub cut: u64,
    /// Fragments that they were cut into.
    pub pieces: u64,
    /// Fragments that were not offered to the discipline, because it had dropped one of the same frame.
    pub spared: u64,
    /// Frames that are longer than the size and passed whole, because they are not IP or need more than 127 fragments.
    pub whole: u64,
    /// What became of fragments that came.
    pub joined: Counts,
    /// Fragments that wait for others.
    pub waiting: u64,
}

/// The cutting and joining of a direction.
pub(crate) struct Work {
    settings: Settings,
    cutter: Cutter,
    /// `None` in the hands of an arrival, too.
    joiner: Option<Box<Joiner>>,
    longest: usize,
    hasher: SipHasher,
    counted: Fragments,
    /// What joiners counted that were put away.
    earlier: Counts,
}

impl Work {
    /// For frames of at most `longest` bytes. Without Ethernet it does nothing, whatever it is told.
    pub(crate) fn new(
        settings: Settings,
        ethernet: bool,
        longest: usize,
        first: u32,
        streams: &Streams,
    ) -> Work {
        let nothing = Settings { cut: None, join: false, ..settings };
        let mut keys = streams.within("fragments").rng();
        let mut work = Work {
            settings: nothing,
            cutter: Cutter::new(settings.cut.unwrap_or(Size::PUBLISHED[1]), settings.ether_type, first),
            joiner: None,
            longest: if ethernet { longest } else { 0 },
            hasher: SipHasher::new(keys.word(), keys.word()),
            counted: Fragments::default(),
            earlier: Counts::default(),
        };
        work.cut_to(settings.cut);
        work.join(settings.join);
        work
    }

    /// Cuts to this size from now on, or not at all.
    pub(crate) fn cut_to(&mut self, size: Option<Size>) {
        self.settings.cut = size.filter(|_| self.longest > 0);
        if let Some(size) = self.settings.cut {
            self.cutter.set_size(size);
        }
    }

    /// Joins from now on, or no longer. What waits then is given up.
    pub(crate) fn join(&mut self, join: bool) {
        self.settings.join = join && self.longest > 0;
        match (self.settings.join, &mut self.joiner) {
            (true, None) => {
                self.joiner =
                    Some(Box::new(Joiner::new(self.settings.ether_type, self.longest, self.hasher)));
            }
            (false, Some(joiner)) => {
                joiner.reassembly.expire(Time::NEVER);
                self.earlier = sum(&self.earlier, joiner.reassembly.counts());
                self.joiner = None;
            }
            _ => {}
        }
    }

    /// The joiner, to be given back.
    #[inline]
    pub(crate) fn take_joiner(&mut self) -> Option<Box<Joiner>> {
        self.joiner.take()
    }
    /// Gives it back.
    #[inline]
    pub(crate) fn give_joiner(&mut self, joiner: Box<Joiner>) {
        self.joiner = Some(joiner);
    }

    /// Whether it joins.
    pub(crate) fn joins(&self) -> bool {
        self.settings.join
    }

    /// Whether it cuts.
    pub(crate) fn cuts(&self) -> bool {
        self.settings.cut.is_some()
    }

    /// How a frame is to be cut, if it is.
    #[inline]
    pub(crate) fn plan(&mut self, frame: &[u8]) -> Option<wire::fragment::Cut> {
        self.settings.cut?;
        match self.cutter.plan(frame) {
            wire::fragment::Plan::Short => None,
            wire::fragment::Plan::Whole => {
                self.counted.whole += 1;
                None
            }
            wire::fragment::Plan::Cut(cut) => Some(cut),
        }
    }

    /// A frame was cut, and so many of its fragments offered.
    #[inline]
    pub(crate) fn was_cut(&mut self, offered: usize, count: usize) {
        self.counted.cut += 1;
        self.counted.pieces += count as u64;
        self.counted.spared += (count - offered) as u64;
    }

    /// Time begins anew.
    pub(crate) fn rebase(&mut self, then: Time) {
        if let Some(joiner) = &mut self.joiner {
            joiner.reassembly.rebase(then);
        }
    }

    /// How it stands.
    pub(crate) fn tell(&mut self, now: Time) -> Fragments {
        let mut told = Fragments {
            size: self.settings.cut,
            joins: self.settings.join,
            joined: self.earlier,
            ..self.counted
        };
        if let Some(joiner) = &mut self.joiner {
            joiner.reassembly.expire(now);
            told.joined = sum(&self.earlier, joiner.reassembly.counts());
            told.waiting = joiner.reassembly.waiting();
        }
        told
    }
}

/// Joins what comes in.
pub(crate) struct Joiner {
    reassembly: Reassembly,
    /// For frames whose tag has to be put back.
    tagged: Box<[u8]>,
}

impl Joiner {
    /// For frames of at most `longest` bytes.
    pub(crate) fn new(ether_type: u16, longest: usize, hasher: SipHasher) -> Joiner {
        let settings = wire::fragment::Settings::new(ether_type, longest);
        Joiner {
            reassembly: Reassembly::new(settings, hasher),
            // Longer ones are no fragments: there is no need to look at them.
            tagged: vec![0; longest].into_boxed_slice(),
        }
    }

    /// Takes a frame that came in, if it is a fragment.
    #[inline]
    pub(crate) fn take(&mut self, arrival: &Arrival<'_>, now: Time) -> Taken<'_> {
        let whole = arrival.whole();
        if whole == arrival.bytes.len() {
            return self.reassembly.take(arrival.bytes, now);
        }
        let Some(tagged) = self.tagged.get_mut(..whole) else { return Taken::Other };
        arrival.write(tagged);
        self.reassembly.take(tagged, now)
    }
}

fn sum(a: &Counts, b: &Counts) -> Counts {
    Counts {
        fragments: a.fragments + b.fragments,
        joined: a.joined + b.joined,
        packets: a.packets + b.packets,
        given_up: a.given_up + b.given_up,
        lost: std::array::from_fn(|why| a.lost[why] + b.lost[why]),
    }
}
