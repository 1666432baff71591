//! Negotiation of ECN in the handshake: the flags AE, CWR and ECE of SYN and SYN-ACK, which are the three
//! bits of the ACE field.
//!
//! # Principles
//! - The end that opens a connection offers accurate ECN (1,1,1) or classic ECN (0,1,1). The other end
//!   answers with what it supports: classic ECN is (0,0,1), nothing (0,0,0), and accurate ECN a code for the
//!   IP-ECN field of the SYN. RFC 3168, section 6.1.1, and RFC 9768, section 3.1.
//! - An offer of accurate ECN that a classic server answers becomes classic ECN, and one without an answer
//!   none.
//! - The first segment after the SYN-ACK has a code for the IP-ECN field of the SYN-ACK instead of a counter.
//! - Each end decides by what it has received, so a path that clears the flags leaves both without ECN.
//! - The first retransmission of a SYN repeats the offer of accurate ECN, and later ones offer nothing. With
//!   `ecn_fallback` even the first retransmission of an offer of classic ECN offers nothing, as in Linux.
//! - The second retransmission of a SYN-ACK clears the flags, too, in case they are the reason for the
//!   losses.
//!
//! # Deviations
//! - Packets of the handshake are not ECN-capable, so their codes denote Not-ECT, or CE where a queue marks
//!   them nevertheless.
//! - The option of accurate ECN is not in SYN and SYN-ACK; its space in other segments is counted.

use super::TcpConfig;
use super::ecn_mode::EcnMode;
use super::marks::INITIAL;

/// The flags AE, CWR and ECE.
type Flags = u8;

/// The offer of accurate ECN.
const ACCURATE: Flags = 0b111;
/// The offer of classic ECN.
const CLASSIC: Flags = 0b011;
/// The answer of a server with classic ECN.
const CLASSIC_ANSWER: Flags = 0b001;
/// The answer of a server from before classic ECN was changed, with its nonce.
const NONCE_ANSWER: Flags = 0b101;
/// The code of a packet that was not ECN-capable: RFC 9768, section 3.2.2.
const NOT_CAPABLE: Flags = 0b010;
/// The code of a packet that arrived with a mark.
const MARKED: Flags = 0b110;

/// The code for a packet of the handshake. The first counter field of a client has the code for the SYN-ACK.
pub(super) fn code(marked: bool) -> Flags {
    if marked { MARKED } else { NOT_CAPABLE }
}

/// The flags of a SYN that is sent for the `tries`-th time, from 1.
pub(super) fn offer(config: &TcpConfig, tries: u8) -> Flags {
    match config.mode() {
        // RFC 9768, section 3.1.4.1: the first retransmission repeats the offer, later ones offer nothing.
        EcnMode::Accurate if tries <= 2 => ACCURATE,
        // RFC 3168, section 6.1.1.1: a host may offer nothing if there was no reply.
        EcnMode::Classic if tries == 1 || !config.ecn_fallback => CLASSIC,
        _ => 0,
    }
}

/// The feedback that a server agrees to, from the offer in a SYN.
pub(super) fn accepted(offer: Flags, config: &TcpConfig) -> EcnMode {
    let offered = match offer {
        ACCURATE => EcnMode::Accurate,
        CLASSIC => EcnMode::Classic,
        _ => EcnMode::Off,
    };
    // The modes are in order of what they can do, and the lower one works for both.
    offered.min(config.peer_mode())
}

/// The flags of a SYN-ACK that is sent for the `tries`-th time, after a SYN that arrived with a mark or not.
pub(super) fn answer(mode: EcnMode, marked: bool, tries: u8) -> Flags {
    match mode {
        // RFC 9768, section 3.1.4.2: if others were lost, the SYN-ACK may go without the flags.
        EcnMode::Accurate if tries <= 2 => code(marked),
        EcnMode::Accurate | EcnMode::Off => 0,
        EcnMode::Classic => CLASSIC_ANSWER,
    }
}

/// The feedback that the client agrees to, from the flags of the SYN-ACK. `offered` is what it has offered.
pub(super) fn agreed(offered: Flags, answer: Flags) -> EcnMode {
    match (offered, answer) {
        (ACCURATE | CLASSIC, CLASSIC_ANSWER) | (ACCURATE, NONCE_ANSWER) => EcnMode::Classic,
        // (1,1,1) is the offer itself, reflected by a server that does not know it.
        (ACCURATE, 0 | ACCURATE) => EcnMode::Off,
        (ACCURATE, _) => EcnMode::Accurate,
        _ => EcnMode::Off,
    }
}

/// The count that the code in the first segment of a client stands for; `None` if the path clears the field,
/// so that the server must not send ECN-capable packets: RFC 9768, section 3.2.2.4.
pub(super) fn confirmed(code: Flags) -> Option<u8> {
    match code {
        0 => None,
        MARKED => Some(INITIAL + 1),
        _ => Some(INITIAL),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use EcnMode::{Accurate, Classic, Off};

    fn config(mode: EcnMode, peer: EcnMode) -> TcpConfig {
        TcpConfig { ecn: mode >= Classic, accecn: mode == Accurate, peer_ecn: Some(peer), ..TcpConfig::rfc() }
    }

    /// RFC 9768, table 2: the feedback that both ends use, for each pair of what they support.
    #[test]
    fn both_ends_agree_on_what_both_support() {
        for client in [Off, Classic, Accurate] {
            for server in [Off, Classic, Accurate] {
                let config = config(client, server);
                let offer = offer(&config, 1);
                let accepted = accepted(offer, &config);
                let agreed = agreed(offer, answer(accepted, false, 1));
                assert_eq!(
                    (accepted, agreed),
                    (client.min(server), client.min(server)),
                    "{client:?} {server:?}"
                );
            }
        }
    }

    /// Every answer to the offer of accurate ECN, including answers that no server in this simulator gives.
    #[test]
    fn every_answer_has_a_meaning() {
        let modes: Vec<EcnMode> = (0..8).map(|answer| agreed(ACCURATE, answer)).collect();
        assert_eq!(modes, [Off, Classic, Accurate, Accurate, Accurate, Classic, Accurate, Off]);
        assert_eq!(agreed(CLASSIC, CLASSIC_ANSWER), Classic);
        assert_eq!(agreed(CLASSIC, NOT_CAPABLE), Off);
        assert_eq!(agreed(0, CLASSIC_ANSWER), Off);
    }

    #[test]
    fn lost_packets_of_the_handshake_lower_the_offer() {
        let accurate = config(Accurate, Accurate);
        assert_eq!([1, 2, 3].map(|tries| offer(&accurate, tries)), [ACCURATE, ACCURATE, 0]);
        let classic = config(Classic, Classic);
        assert_eq!([1, 2, 3].map(|tries| offer(&classic, tries)), [CLASSIC; 3]);
        let linux = TcpConfig { ecn_fallback: true, ..classic };
        assert_eq!([1, 2, 3].map(|tries| offer(&linux, tries)), [CLASSIC, 0, 0]);
        assert_eq!([1, 2, 3].map(|tries| answer(Accurate, false, tries)), [NOT_CAPABLE, NOT_CAPABLE, 0]);
    }
}
