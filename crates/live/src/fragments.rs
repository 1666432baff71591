//! Fragmentation: frames are cut before the queue, and joined before they are parsed.
//!
//! A direction may cut frames, so that the discipline gets no packet longer than the fragment size Φ, and may
//! join the fragments that another bridge has cut; [`giveway_wire::fragment`] defines the format. Both are
//! for Ethernet: packets of a TUN interface have no EtherType.
//!
//! - A fragment is a packet to the discipline. Its length is counted by the rules for whole frames, and it
//!   has the flow, class, reservation and ECN codepoint of its frame.
//! - A whole frame is dropped if the pool has too few free buffers for its fragments: a part of a frame is
//!   useless.
//! - When the discipline drops a fragment, the other fragments of the frame are dropped, too (`groups.rs`).

mod groups;

use giveway_qdisc::hash::SipHasher;
use giveway_qdisc::{Streams, Time};
use giveway_watch::Fragments;
use giveway_wire::fragment::{Counts, Cutter, ETHER_TYPE, Reassembly, Size, Taken};

pub(crate) use self::groups::{FragmentGroups, PartialFrameDiscard};
use crate::device::Arrival;

/// Initial configuration of cutting and joining.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Size into which frames are cut; `None` to cut none.
    pub cut: Option<Size>,
    /// True to join incoming fragments.
    pub join: bool,
    /// EtherType of outgoing and incoming fragments.
    pub ether_type: u16,
}

impl Settings {
    /// Neither cuts nor joins.
    pub fn none() -> Settings {
        Settings { cut: None, join: false, ether_type: ETHER_TYPE }
    }
}

/// Cuts and joins the frames of a direction.
pub(crate) struct Work {
    settings: Settings,
    cutter: Cutter,
    /// `None` if fragments are not joined, and while an arrival uses it.
    joiner: Option<Box<Joiner>>,
    longest: usize,
    hasher: SipHasher,
    counted: Fragments,
    /// Counters of earlier joiners.
    earlier: Counts,
}

impl Work {
    /// Creates the cutting and joining for frames of at most `longest` bytes. `first` is the number of the
    /// first frame that is cut. Without Ethernet no frame is cut or joined.
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

    /// Sets the size into which frames are cut; `None` to cut none.
    pub(crate) fn cut_to(&mut self, size: Option<Size>) {
        self.settings.cut = size.filter(|_| self.longest > 0);
        if let Some(size) = self.settings.cut {
            self.cutter.set_size(size);
        }
    }

    /// Starts or stops joining. A stop discards the fragments of incomplete frames.
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

    /// Takes the joiner; return it with [`Work::give_joiner`].
    #[inline]
    pub(crate) fn take_joiner(&mut self) -> Option<Box<Joiner>> {
        self.joiner.take()
    }
    /// Returns the joiner.
    #[inline]
    pub(crate) fn give_joiner(&mut self, joiner: Box<Joiner>) {
        self.joiner = Some(joiner);
    }

    /// True if fragments are joined.
    pub(crate) fn joins(&self) -> bool {
        self.settings.join
    }

    /// True if frames are cut.
    pub(crate) fn cuts(&self) -> bool {
        self.settings.cut.is_some()
    }

    /// Plans the cuts of a frame; `None` if it passes whole.
    #[inline]
    pub(crate) fn plan(&mut self, frame: &[u8]) -> Option<giveway_wire::fragment::Cut> {
        self.settings.cut?;
        match self.cutter.plan(frame) {
            giveway_wire::fragment::Plan::Short => None,
            giveway_wire::fragment::Plan::Whole => {
                self.counted.whole += 1;
                None
            }
            giveway_wire::fragment::Plan::Cut(cut) => Some(cut),
        }
    }

    /// Counts a frame that was cut into `count` fragments, of which `offered` were offered to the discipline.
    #[inline]
    pub(crate) fn record_cut(&mut self, offered: usize, count: usize) {
        self.counted.cut += 1;
        self.counted.pieces += count as u64;
        self.counted.spared += (count - offered) as u64;
    }

    /// Restarts the clock: the time `then` becomes zero.
    pub(crate) fn rebase(&mut self, then: Time) {
        if let Some(joiner) = &mut self.joiner {
            joiner.reassembly.rebase(then);
        }
    }

    /// State and counters at `now`.
    pub(crate) fn snapshot(&mut self, now: Time) -> Fragments {
        let mut snapshot = Fragments {
            size: self.settings.cut,
            joins: self.settings.join,
            joined: self.earlier,
            ..self.counted
        };
        if let Some(joiner) = &mut self.joiner {
            joiner.reassembly.expire(now);
            snapshot.joined = sum(&self.earlier, joiner.reassembly.counts());
            snapshot.waiting = joiner.reassembly.waiting();
        }
        snapshot
    }
}

/// Joins incoming fragments.
pub(crate) struct Joiner {
    reassembly: Reassembly,
    /// Buffer for frames whose VLAN tag is inserted again.
    tagged: Box<[u8]>,
}

impl Joiner {
    /// Creates a joiner for frames of at most `longest` bytes.
    pub(crate) fn new(ether_type: u16, longest: usize, hasher: SipHasher) -> Joiner {
        let settings = giveway_wire::fragment::Settings::new(ether_type, longest);
        Joiner {
            reassembly: Reassembly::new(settings, hasher),
            // A longer frame cannot be a fragment.
            tagged: vec![0; longest].into_boxed_slice(),
        }
    }

    /// Accepts an incoming frame if it is a fragment.
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
        lost: std::array::from_fn(|reason| a.lost[reason] + b.lost[reason]),
    }
}
