//! Least Attained Recent Service: LAS with a memory that decays, which bounds the time for which a flow is
//! locked out.
//!
//! # Principles
//! - As in LAS, the bytes that a flow has sent rank its packets, and the lowest rank goes first. But this
//!   volume decays: it is multiplied by a factor β for each second that passes.
//! - One parameter sets the decay: `lockout` is the longest time that one flow can block another. A new flow
//!   that sends C bytes per second blocks a flow of volume V for ln(1 + λV/C)/λ, with λ = -ln β. No flow
//!   builds up more than C/λ at the rate of the link, so that is at most ln 2/λ: the time in which a volume
//!   halves. So β is 2^(-1/`lockout`) per second.
//! - Packets must stay in order, and volumes change while they wait. A tag from the decayed volume on arrival
//!   would be wrong: after more decay, the flow's next packet could have a smaller tag and overtake.
//! - All volumes decay by the same factor, so their order never changes. Ranks are therefore computed as if
//!   old bytes kept their size and new bytes counted more: log₂ V + t/`lockout` never falls from packet to
//!   packet, and a queue in the order of such ranks never needs an update.
//! - With `lockout 0s` there is no decay: LAS, packet for packet.
//! - When the queue is full, the highest rank is dropped, and its bytes are subtracted from the flow's
//!   volume.
//!
//! # Deviations
//! - The EFD paper, which compares with it, gives no β. The default of two seconds is a choice made here.
//! - β applies per second and continuously: the only reading by which the bound is a time.
//! - Volumes and ranks are kept as logarithms in fixed point. The fraction has 27 bits at the shortest
//!   `lockout`, 1 ms, one more for each doubling, and at most 40: precision grows with what can be sent in
//!   that time. At 2 s (38 bits) a packet of 64 bytes still counts next to 10 TB.
//! - Entries are forgotten as by LAS here, not earlier: after full decay the rank of a flow is hardly above a
//!   new one's.
//! - Only the abstract of the paper was available; other choices are as documented here.
//!
//! # Cost
//! - As LAS: two table look-ups per packet, O(1) for a packet that arrives behind all others and O(log n)
//!   otherwise; and a power and a logarithm per arrival.
//! - 64 bytes per flow of the last half minute, in a table that is half full; 8 to 24 more per packet than a
//!   fifo.
//!
//! # References
//! - M. Heusse, G. Urvoy-Keller, A. Duda, T. Brown, "Least Attained Recent Service for Packet Scheduling over
//!   Wireless LANs", WoWMoM 2010.
//! - J. Chen, M. Heusse, G. Urvoy-Keller, "EFD: An Efficient Low-Overhead Scheduler", NETWORKING 2011:
//!   sections 2, 5.3 and 5.4.

use giveway_qdisc::blocks::Memory;
use giveway_qdisc::{
    Backlog, Cx, FlowTable, Invalid, Limit, LinkContext, Next, Packet, Properties, Qdisc, Span,
};
use giveway_qdisc::{Time, check_limit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Discipline;
use crate::common::served::{Served, small_table};

/// Parameters of `lars`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Capacity, in packets or in bytes.
    pub limit: Limit,
    /// Longest time for which one flow can block another, in which volumes halve; at least 1ms. Zero: volumes
    /// do not decay, as in LAS.
    pub lockout: Span,
    /// Time between visits of the table that forget flows. Zero: never.
    pub sweep: Span,
    /// Silence after which a visit forgets a flow.
    pub idle: Span,
    /// Largest number of flows in the table, unless more flows have packets queued.
    pub flows: u32,
}

impl Default for Config {
    fn default() -> Config {
        let memory = Memory::default();
        Config {
            limit: Limit::Packets(300),
            lockout: Span::s(2),
            sweep: memory.sweep,
            idle: memory.idle,
            flows: memory.flows as u32,
        }
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str =
        "least attained recent service: LAS whose memory decays, with a bound on the lock-out";
    type Qdisc<P: 'static> = Lars<P>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<Lars<P>, Invalid> {
        check_limit("limit", self.limit, context.mtu)?;
        let memory = Memory::checked(self.sweep, self.idle, self.flows)?;
        Ok(Lars { decay: Decay::new(self.lockout)?, served: Served::new(self.limit, memory) })
    }

    fn properties(&self, _: &LinkContext) -> Properties {
        Properties::plain(self.limit)
    }

    fn variants() -> Vec<Config> {
        let plain = Config::default();
        vec![
            Config { limit: Limit::Packets(5), lockout: SHORTEST, ..plain.clone() },
            Config {
                limit: Limit::Bytes(6000),
                lockout: Span::ZERO,
                sweep: Span::ms(20),
                idle: Span::ms(30),
                ..plain.clone()
            },
            Config { limit: Limit::Packets(20), lockout: Span::ms(50), sweep: Span::ZERO, flows: 3, ..plain },
        ]
    }

    fn warnings(&self, context: &LinkContext) -> Vec<String> {
        let mut warnings = Vec::new();
        let packet = context.rate.time_for(context.mtu.0);
        if !self.lockout.is_zero() && self.lockout < packet * 10 {
            warnings.push(format!(
                "lockout {} is shorter than ten of the largest packets at {}: past service is forgotten almost at once",
                self.lockout, context.rate
            ));
        }
        if self.idle < self.lockout {
            warnings.push(format!(
                "idle {} is shorter than lockout {}: flows are forgotten before half of their volume has decayed",
                self.idle, self.lockout
            ));
        }
        warnings.extend(small_table(self.flows, self.limit));
        warnings
    }
}

/// The queue and the table.
pub struct Lars<P> {
    decay: Decay,
    served: Served<P>,
}

impl<P> Qdisc<P> for Lars<P> {
    #[inline]
    fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        let (bytes, now) = (pkt.bytes(), cx.now());
        let Lars { decay, served } = self;
        // The rank is the volume before the packet. On this scale it is still the volume without the packet
        // when that is dropped, since decay does not change it.
        served.enqueue(pkt, cx, |before| (before, decay.grown(before, bytes, now)), |_, rank, _| rank);
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P> {
        self.served.dequeue(cx)
    }

    fn backlog(&self) -> Backlog {
        self.served.backlog()
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        self.served.reset(cx);
    }

    fn flow_table(&self) -> FlowTable {
        self.served.table()
    }
}

/// The shortest time in which volumes can halve. A rank has room for 213 days of it, the range of the clock.
const SHORTEST: Span = Span::ms(1);
/// Maximum number of bits in a rank's fraction. Together with the bits of a length's logarithm they fit the
/// 53 of a float.
const FINEST: u32 = 40;

/// The scale of volumes that is invariant under decay: 1 + log₂ V + t/`lockout`, in fixed point.
#[derive(Clone, Copy, Debug)]
enum Decay {
    /// Volumes halve in the time that makes `(time * pace) >> shift` one, of so many bits after the point.
    Halves { pace: u64, shift: u32, bits: u32 },
    /// Volumes are in bytes.
    Never,
}

impl Decay {
    /// Volume of a flow that has not sent; below all others.
    const NOTHING: u64 = 0;

    fn new(lockout: Span) -> Result<Decay, Invalid> {
        if lockout.is_zero() {
            return Ok(Decay::Never);
        }
        if lockout < SHORTEST {
            let message =
                format!("{lockout} is too short: write at least \"{SHORTEST}\", or \"0s\" for no decay");
            return Err(Invalid::new("lockout", message));
        }
        let in_ps = lockout.as_ps();
        // The range of the clock in units of the lockout takes this many bits; one more is for the logarithm.
        let whole = u64::BITS - (Time::NEVER.as_ps() / in_ps).leading_zeros();
        let bits = (u64::BITS - 2 - whole).min(FINEST);
        // A division per packet would be slow. The reciprocal has 63 bits, which lengthens the lockout by
        // 10^-19 of it.
        let shift = u64::BITS - 1 + in_ps.ilog2() - bits;
        let pace = (1u128 << (bits + shift)) / u128::from(in_ps);
        Ok(Decay::Halves { pace: pace as u64, shift, bits })
    }

    /// The volume after a packet of `bytes` at `now`. Never below the volume before.
    #[inline]
    fn grown(self, volume: u64, bytes: u32, now: Time) -> u64 {
        let Decay::Halves { pace, shift, bits } = self else { return volume + u64::from(bytes) };
        let scale = (1u64 << bits) as f64;
        let elapsed = ((u128::from(now.as_ps()) * u128::from(pace)) >> shift) as u64 + (1 << bits);
        let left = match volume {
            Decay::NOTHING => 0.0,
            volume => libm::exp2(volume.cast_signed().wrapping_sub(elapsed.cast_signed()) as f64 / scale),
        };
        let log = libm::log2(left + f64::from(bytes.max(1))) * scale + 0.5;
        // Rounding must not decrease the volume.
        volume.max(elapsed + log as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spec;
    use crate::testing::events::{context, events};
    use crate::testing::trace::{T1, T2, trace};
    use giveway_qdisc::contract::Op;
    use giveway_qdisc::{FlowKey, Outbox};
    use proptest::prelude::*;

    fn halving_in(lockout: Span) -> (Decay, impl Fn(u64, Time) -> f64) {
        let decay = Decay::new(lockout).unwrap();
        let Decay::Halves { bits, .. } = decay else { panic!("{lockout} decays") };
        // The volume that a rank means at some time, in bytes.
        let bytes = move |rank: u64, now: Time| {
            let log = rank as f64 / (1u64 << bits) as f64 - 1.0 - now.as_s() / lockout.as_s();
            if rank == Decay::NOTHING { 0.0 } else { libm::exp2(log) }
        };
        (decay, bytes)
    }

    #[test]
    fn bytes_sent_long_ago_count_less() {
        // A has sent 2,000 bytes when B arrives, and B 1,500 when A3 arrives; but those of A are four
        // half-lives old.
        assert_eq!(
            trace("lars limit 4p lockout 1ms", 1000, T2),
            "A1[0-1] A2[1-2] B1[4-5] C1[5-5.5] A3[5.5-6.5] B2[6.5-7] A4[7-7.5] | B3@4.45"
        );
        // Without time for decay it is LAS.
        assert_eq!(trace("lars limit 4p lockout 1ms", 1000, T1), trace("las limit 4p", 1000, T1));
        assert_eq!(trace("lars limit 4p lockout 0s", 1000, T2), trace("las limit 4p", 1000, T2));
    }

    /// Volumes at each arrival of the same trace, computed by hand: 933.0 is 1,000 bytes after a tenth of a
    /// half-life.
    #[test]
    fn volumes_decay_as_computed_by_hand() {
        let (decay, volume) = halving_in(Span::ms(1));
        let mut flows = [Decay::NOTHING; 3];
        let mut arrive = |flow: usize, us: u64, bytes: u32| {
            let before = flows[flow];
            flows[flow] = decay.grown(before, bytes, Time::us(us));
            (volume(before, Time::us(us)) * 10.0).round() / 10.0
        };
        assert_eq!(arrive(0, 0, 1000), 0.0);
        assert_eq!(arrive(0, 100, 1000), 933.0);
        assert_eq!(arrive(1, 4000, 1000), 0.0);
        assert_eq!(arrive(1, 4100, 500), 933.0);
        assert_eq!(arrive(1, 4200, 1000), 1337.1);
        assert_eq!(arrive(0, 4300, 1000), 105.2);
        assert_eq!(arrive(2, 4400, 500), 0.0);
        assert_eq!(arrive(0, 4450, 500), 996.0);
    }

    /// A sends three packets and, after most of the volume has decayed, a fourth; all of them are queued. The
    /// decayed volumes at arrival are 0, 933, 1,804 and 175: as tags, they would let the fourth overtake two.
    #[test]
    fn a_packet_does_not_overtake_because_of_decay() {
        let mut lars = Config { lockout: Span::ms(1), ..Config::default() }.build(&context()).unwrap();
        let (_, volume) = halving_in(Span::ms(1));
        let mut out = Outbox::default();
        let mut tags = Vec::new();
        for (name, us) in [(1, 0), (2, 100), (3, 200), (4, 4200)] {
            let before = lars.served.flows.get(FlowKey(0)).map_or(0, |flow| flow.attained);
            tags.push((volume(before, Time::us(us)).round(), volume(before, Time::ZERO).round()));
            lars.enqueue(Packet::new(FlowKey(0), 1000, name), &mut Cx::new(Time::us(us), &mut out));
        }
        assert_eq!(
            tags,
            [(0.0, 0.0), (933.0, 1000.0), (1804.0, 2072.0), (175.0, 3220.0)],
            "decayed volumes and ranks"
        );
        let mut cx = Cx::new(Time::ms(5), &mut out);
        let left: Vec<u64> =
            std::iter::from_fn(|| lars.dequeue(&mut cx).packet()).map(|pkt| pkt.payload).collect();
        assert_eq!(left, [1, 2, 3, 4]);
    }

    #[test]
    fn mistakes_are_reported() {
        let built = |text: &str| {
            text.parse::<Spec>().unwrap().build_numbered(&context()).map(drop).unwrap_err().to_string()
        };
        assert_eq!(
            built("lars lockout 100us"),
            "lockout: 100us is too short: write at least \"1ms\", or \"0s\" for no decay"
        );
        let warnings = |text: &str| text.parse::<Spec>().unwrap().warnings(&context()).join("; ");
        assert_eq!(warnings("lars") + &warnings("lars lockout 0s"), "");
        assert!(warnings("lars lockout 1min").contains("idle 30s is shorter than lockout 60s"));
        assert!(warnings("lars lockout 10ms").contains("shorter than ten of the largest packets"));
        assert!(warnings("lars flows 10").contains("10 flows are fewer than limit 300p"));
    }

    /// With the shortest and the longest lockout a rank does not overflow in the range of the clock, and a
    /// packet still raises it.
    #[test]
    fn ranks_do_not_overflow() {
        for lockout in [SHORTEST, Span::s(2), Span::s(1 << 24)] {
            let (decay, volume) = halving_in(lockout);
            let end = Time::from_ps(u64::MAX - 1);
            let one = decay.grown(Decay::NOTHING, 1000, end);
            let two = decay.grown(one, 1000, end);
            assert!(one < two && two < 1 << 63, "{lockout}: {one}, {two}");
            let ratio = volume(two, end) / volume(one, end);
            assert!((ratio - 2.0).abs() < 1e-4, "{lockout}: twice as much is {ratio} times as much");
        }
    }

    fn ops() -> impl Strategy<Value = Vec<Op>> {
        let op = prop_oneof![
            4 => (0..6u8, any::<u16>()).prop_map(|(flow, bytes)| Op::Enqueue { flow, bytes, class: 0, ecn: false }),
            3 => Just(Op::Dequeue),
            1 => any::<u16>().prop_map(Op::Wait),
        ];
        prop::collection::vec(op, 1..400)
    }

    /// Longest time without service of A, in packet times, after A has had the whole link for `past` packets
    /// and then a new flow sends `eager` packets per departure. A retransmits a dropped packet.
    fn lockout(config: &Config, past: u64, eager: u64) -> u64 {
        let (old, new) = (FlowKey(0), FlowKey(1));
        let mut lars = config.build::<u64>(&context()).unwrap();
        let mut out = Outbox::default();
        let mut waited = 0;
        for ms in 1.. {
            let mut cx = Cx::new(Time::ms(ms), &mut out);
            // At 8 Mbit/s a packet of 1,000 bytes takes a millisecond.
            if ms > past {
                (0..eager).for_each(|_| lars.enqueue(Packet::new(new, 1000, 0), &mut cx));
            }
            if !lars.served.queue.iter().any(|(_, pkt)| pkt.meta.flow == old) {
                lars.enqueue(Packet::new(old, 1000, 0), &mut cx);
            }
            let sent = lars.dequeue(&mut cx).packet().expect("both send as fast as they can");
            if ms > past {
                waited += 1;
                if sent.meta.flow == old {
                    break;
                }
            }
        }
        waited
    }

    proptest! {
        /// Without decay the departures and drops equal those under LAS, also with tables that forget flows.
        #[test]
        fn without_decay_it_is_las(ops in ops(), limit in 1..20u64, in_bytes: bool, sweep in 0..30u64, flows in 1..6u32) {
            let limit = if in_bytes { Limit::Bytes(limit * 1500) } else { Limit::Packets(limit) };
            let (sweep, idle) = (Span::ms(sweep), Span::ms(40));
            let lars = Spec::lars(Config { limit, lockout: Span::ZERO, sweep, idle, flows });
            let las = Spec::las(crate::las::Config { limit, sweep, idle, flows, ..Default::default() });
            prop_assert_eq!(events(&lars, &ops), events(&las, &ops));
        }

        /// The bound: one new flow blocks another for at most `lockout` and the time of the queued packets,
        /// for any volume that the other has sent. Under LAS it is blocked for as long as it had the link.
        #[test]
        fn the_lockout_is_bounded(lockout_ms in 1..200u64, limit in 2..20u64, past in 1..2000u64, eager in 1..3u64) {
            let config = Config { limit: Limit::Packets(limit), lockout: Span::ms(lockout_ms), ..Config::default() };
            let waited = lockout(&config, past, eager);
            prop_assert!(waited <= lockout_ms + limit + 2, "{} packet times", waited);
            let las = Config { lockout: Span::ZERO, ..config };
            prop_assert!(lockout(&las, past, eager) >= past);
        }

        /// A volume is the sum of all packets, each decayed by its age.
        #[test]
        fn volumes_are_decayed_sums(
            packets in prop::collection::vec((0..3_000_000u64, 40..65_536u32), 1..200),
            lockout in prop_oneof![Just(Span::ms(1)), Just(Span::ms(300)), Just(Span::s(2)), Just(Span::s(60))],
        ) {
            let (decay, volume) = halving_in(lockout);
            let (mut now, mut rank, mut expected) = (Time::s(100), Decay::NOTHING, 0.0);
            for (us, bytes) in packets {
                let before = rank;
                now += Span::us(us);
                rank = decay.grown(rank, bytes, now);
                expected = expected * libm::exp2(-Span::us(us).as_s() / lockout.as_s()) + f64::from(bytes);
                prop_assert!(rank >= before, "the rank of a later packet is not lower");
                let got = volume(rank, now);
                prop_assert!((got / expected - 1.0).abs() < 1e-5, "{} bytes, not {}", got, expected);
            }
        }

        /// The volume of a flow at the rate of the link is at most the bytes that the link sends in
        /// lockout/ln 2.
        #[test]
        fn volumes_are_bounded(lockout_ms in 1..100u64) {
            let (decay, volume) = halving_in(Span::ms(lockout_ms));
            let ceiling = 1000.0 * lockout_ms as f64 * std::f64::consts::LOG2_E;
            let mut rank = Decay::NOTHING;
            for ms in 0..20 * lockout_ms {
                rank = decay.grown(rank, 1000, Time::ms(ms));
                prop_assert!(volume(rank, Time::ms(ms)) <= ceiling + 1000.0);
            }
            prop_assert!(volume(rank, Time::ms(20 * lockout_ms - 1)) > 0.999 * ceiling);
        }
    }
}
