//! The handshake of one end: the lengths of its messages, and the proof of the client's address.

use super::config::QuicConfig;
use super::sent::{Frame, FrameKind};
use super::streams::{ReceiveHalf, SendHalf};

/// Length of the first message of the client (ClientHello), bytes.
pub(super) const CLIENT_HELLO: u64 = 300;
/// Length of the last message of the client (Finished), bytes.
const FINISHED: u64 = 36;
/// Length of the server's messages to a client that it knows: without certificates.
const RESUMED: u64 = 200;
/// RFC 9000, section 8.1: what a server sends to a client that has not proved its address, as a multiple of
/// what it has received.
const AMPLIFICATION: u64 = 3;

/// The handshake of one end.
#[derive(Debug)]
pub(super) struct Handshake {
    is_client: bool,
    /// The messages as bytes.
    pub send: SendHalf,
    receive: ReceiveHalf,
    /// Length of the messages of the other end so far, and in all.
    expected: (u64, u64),
    /// This end may send data.
    pub sends_data: bool,
    /// The handshake is complete at this end.
    pub is_complete: bool,
    /// The server has answered the client's first message.
    answered: bool,
    /// The client has proved its address.
    pub is_validated: bool,
    /// UDP payload received and sent, for a server whose client has not proved its address.
    received: u64,
    sent: u64,
}

/// The progress that a message makes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// The server has accepted the connection.
    pub accepted: bool,
    /// The handshake is complete at this end.
    pub completed: bool,
}

impl Handshake {
    pub fn new(is_client: bool, config: &QuicConfig) -> Handshake {
        let answer = if config.zero_rtt { RESUMED } else { config.certificates.0 };
        let expected = if is_client { (answer, answer) } else { (CLIENT_HELLO, CLIENT_HELLO + FINISHED) };
        Handshake {
            is_client,
            send: SendHalf::without_limit(),
            receive: ReceiveHalf::new(u64::MAX),
            expected,
            sends_data: is_client && config.zero_rtt,
            is_complete: false,
            answered: false,
            is_validated: is_client,
            received: 0,
            sent: 0,
        }
    }

    /// A message of the other end has arrived.
    pub fn on_arrival(&mut self, frame: &Frame, config: &QuicConfig) -> Progress {
        self.receive.on_arrival(frame);
        let (first, all) = self.expected;
        let mut progress = Progress::default();
        if !self.is_client && !self.answered && self.receive.delivered() >= first {
            self.answered = true;
            self.sends_data = true;
            // The server has the keys of the connection with the first message: its data may follow its own
            // messages at once.
            self.send.write(if config.zero_rtt { RESUMED } else { config.certificates.0 });
            progress.accepted = config.zero_rtt;
        }
        if !self.is_complete && self.receive.delivered() >= all {
            (self.is_complete, self.sends_data) = (true, true);
            progress.completed = true;
            if self.is_client {
                self.send.write(FINISHED);
            } else {
                progress.accepted = !config.zero_rtt;
            }
        }
        progress
    }

    /// The next message, of at most `space` bytes.
    pub fn take(&mut self, space: u64) -> Option<Frame> {
        self.send.take(0, FrameKind::Crypto, space, u64::MAX)
    }

    /// True if this end has received a message: it can then encrypt more than its first packet.
    pub fn has_keys(&self) -> bool {
        self.receive.delivered() > 0
    }

    /// A datagram has arrived.
    #[inline]
    pub fn received(&mut self, payload: u64) {
        if !self.is_validated {
            self.received += payload;
        }
    }

    /// A datagram leaves.
    #[inline]
    pub fn on_send(&mut self, payload: u64) {
        if !self.is_validated {
            self.sent += payload;
        }
    }

    /// UDP payload that may be sent before the client proves its address.
    #[inline]
    pub fn allowed(&self) -> u64 {
        if self.is_validated { u64::MAX } else { (self.received * AMPLIFICATION).saturating_sub(self.sent) }
    }
}
