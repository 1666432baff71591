//! The part that both halves of an endpoint share: the fields of its packets, and the timer of
//! retransmissions.

use giveway_qdisc::{Dscp, Ecn, FlowKey, Header, Meta, Packet, Rate, Time};

use super::TcpConfig;
use super::ecn_mode::EcnMode;
use super::receiver::Receiver;
use super::reports::Reports;
use super::rtt::RttEstimator;
use crate::segment::{ACCECN_OPTION, SYN_BYTES, Segment, TCP_HEADER, TIMESTAMPS, sack_option};

/// The way out of an endpoint. Every segment that leaves carries the acknowledgement of the receiver, so the
/// receiver belongs to it.
pub struct Outlet {
    template: Template,
    /// Packet fields that are the same in every packet that this end sends.
    pub identity: Identity,
    pub receiver: Receiver,
    /// Set if the receiver reports more than the data that it has.
    pub reports: Option<Box<Reports>>,
    pub rtt: RttEstimator,
    /// Time at which the last data segment or SYN was sent.
    pub last_sent: Time,
    /// Expiry of the retransmission timer; never if it is off.
    pub retransmit_at: Time,
    /// The back-off count: timeouts in a row.
    pub backoffs: u32,
    /// The feedback of ECN that both ends have agreed on; none until then.
    pub mode: EcnMode,
    /// Set if the next segment has this code instead of the count of marks: the first one of a client.
    pub confirmation: Option<u8>,
    /// ECN receiver: set ECE on every segment until the peer confirms with CWR.
    pub echo: bool,
    /// The next time at which the sender acts by itself: the pacer, or a timer of the recovery. Never if none
    /// waits.
    pub wake_at: Time,
}

/// The fields of [`Segment`] that are the same in every segment of an end. A segment has 64 bytes, and a
/// connection would keep two of them.
#[derive(Clone, Copy)]
struct Template {
    conn: u32,
    serial: u32,
    source: u16,
    host: u16,
    host_node: u16,
    flags: u16,
}

/// The fields of [`Meta`] that are the same in every packet of an end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Identity {
    /// Key of the flow from this end to the other.
    pub flow: FlowKey,
    /// Sending node.
    pub from: u16,
    /// Receiving node.
    pub to: u16,
    /// Traffic class.
    pub class: u16,
    /// DSCP.
    pub dscp: Dscp,
    /// Reserved rate of the flow; zero for none.
    pub reserved: Rate,
}

impl Outlet {
    /// Takes the fields that are the same in every segment from `segment`.
    pub fn new(segment: &Segment, identity: Identity, config: &TcpConfig) -> Outlet {
        let Segment { conn, serial, source, host, host_node, flags, .. } = *segment;
        Outlet {
            template: Template { conn, serial, source, host, host_node, flags },
            identity,
            receiver: Receiver::new(1),
            reports: Reports::new(config),
            rtt: RttEstimator::new(config),
            last_sent: Time::ZERO,
            retransmit_at: Time::NEVER,
            backoffs: 0,
            mode: EcnMode::Off,
            confirmation: None,
            echo: false,
            wake_at: Time::NEVER,
        }
    }

    /// A segment without data that starts at `seq`.
    #[inline]
    pub fn segment(&self, seq: u64) -> Segment {
        let Template { conn, serial, source, host, host_node, flags } = self.template;
        Segment { conn, serial, source, host, host_node, flags, seq, ..Segment::default() }
    }

    /// Sends a segment with data or a FIN, and starts the retransmission timer if it is off. `end` is the
    /// sequence number after the last byte that the application has written, here and below.
    #[inline]
    pub fn sent(
        &mut self,
        mut segment: Segment,
        ecn: Ecn,
        end: u64,
        now: Time,
        config: &TcpConfig,
        out: &mut Vec<Packet<Segment>>,
    ) {
        // RFC 9293, section 3.7.1: options count against the segment size, so a full segment has no space for
        // SACK.
        let space = config.mss.0.saturating_sub(u64::from(segment.len));
        self.acknowledge(&mut segment, config.sack && space >= u64::from(sack_option(3)));
        segment.sent = Segment::stamp(now);
        self.last_sent = now;
        // RFC 6298, section 5, rule (5.1): a segment with data starts the timer if it is not running.
        if self.retransmit_at == Time::NEVER {
            self.retransmit_at = now + self.rtt.timeout();
        }
        let bytes = header(&segment, config) + u32::from(segment.len);
        self.emit(segment, bytes, (ecn, false), end, out);
    }

    /// Writes the acknowledgement, the SACK blocks with `sack`, and the reports of the receiver.
    #[inline]
    fn acknowledge(&mut self, segment: &mut Segment, sack: bool) {
        self.receiver.acknowledge(segment, sack);
        if let Some(reports) = &mut self.reports {
            reports.write(segment, self.mode);
        }
        if let Some(code) = self.confirmation.take() {
            segment.ace = code;
        }
    }

    /// Sends an acknowledgement with the sequence number `seq`.
    #[inline]
    pub fn emit_ack(&mut self, (seq, end): (u64, u64), config: &TcpConfig, out: &mut Vec<Packet<Segment>>) {
        let mut segment = self.segment(seq);
        // It acknowledges new data and has no other content, so a filter of acknowledgements may drop an
        // earlier one in its favour.
        let more = self.receiver.pending() > 0;
        self.acknowledge(&mut segment, config.sack);
        let advances = more && segment.is_plain_ack() && !self.echo;
        self.emit(segment, header(&segment, config), (Ecn::NotCapable, advances), end, out);
    }

    /// Sends a SYN with the flags AE, CWR and ECE in `ecn`.
    pub fn emit_syn(&mut self, flags: u16, ecn: u8, end: u64, out: &mut Vec<Packet<Segment>>) {
        let mut segment = self.segment(0);
        segment.ace = ecn;
        segment.ack = u64::from(flags & Segment::ACK != 0);
        segment.flags |= Segment::SYN | flags;
        self.emit(segment, SYN_BYTES, (Ecn::NotCapable, false), end, out);
    }

    #[inline]
    fn emit(
        &self,
        mut segment: Segment,
        bytes: u32,
        (ecn, advances): (Ecn, bool),
        end: u64,
        out: &mut Vec<Packet<Segment>>,
    ) {
        if self.echo {
            segment.flags |= Segment::ECE;
        }
        let meta = Meta {
            bytes,
            class: self.identity.class,
            ecn,
            header: Header::new(self.identity.dscp, bytes <= 64 && segment.len == 0).with_advance(advances),
            flow: self.identity.flow,
            from: self.identity.from,
            to: self.identity.to,
            offset: saturated(segment.seq.saturating_sub(1)),
            // At least the packet itself is left, so that no size is zero.
            remaining: saturated(end.saturating_sub(segment.seq)).max(bytes),
            reserved: self.identity.reserved,
            ..Meta::default()
        };
        out.push(Packet { meta, payload: segment });
    }
}

/// Length of the headers of a segment, bytes.
#[inline]
fn header(segment: &Segment, config: &TcpConfig) -> u32 {
    let timestamps = if config.timestamps { TIMESTAMPS } else { 0 };
    let accecn = if segment.has(Segment::ACCECN) { ACCECN_OPTION } else { 0 };
    TCP_HEADER + sack_option(segment.sacks) + timestamps + accecn
}

/// A number of bytes for [`Meta::offset`] and [`Meta::remaining`]. Numbers that do not fit become the
/// largest.
fn saturated(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}
