//! QUIC without secrets: the handshake and the packets have the lengths of TLS 1.3 and of its ciphers, and
//! are neither encrypted nor authenticated.
//!
//! Both ends of a connection are in this process, and a test bed measures times. So keys, certificates and a
//! cryptographic library would change nothing but the cost.
//!
//! # Principles
//! - Messages form a handshake of one round trip (RFC 9001, section 4.1): the client's first message, the
//!   server's first one, the server's certificates in the next level, and the client's last one. Each starts
//!   with its length. Transport parameters are in the first message of the client and in the certificates of
//!   the server, where TLS has them (section 8.2).
//! - A packet carries the 16 bytes of an authentication tag, all zero.

use std::any::Any;
use std::sync::Arc;

use quinn_proto::crypto::{
    AeadKey, ClientConfig, CryptoError, ExportKeyingMaterialError, HandshakeTokenKey, HeaderKey, HmacKey,
    KeyPair, Keys, PacketKey, ServerConfig, Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError, TransportErrorCode};

/// Length of an authentication tag (RFC 9001, section 5.3).
const TAG: usize = 16;
/// Length of the first message of a client with a key share and the usual extensions.
const FIRST_OF_CLIENT: usize = 300;
/// Length of the first message of a server.
const FIRST_OF_SERVER: usize = 90;
/// Length of the last message of a client: a hash of 32 bytes.
const LAST_OF_CLIENT: usize = 36;
/// Bytes of the length of a message.
const LENGTH: usize = 4;

/// The protection of packets that protects nothing.
pub(super) struct Plain {
    /// Length of the server's part of the handshake: its certificates above all.
    pub certificates: usize,
}

/// One end of a handshake.
struct Handshake {
    side: Side,
    certificates: usize,
    own: TransportParameters,
    peer: Option<TransportParameters>,
    /// Bytes that were received and are not a whole message yet.
    received: Vec<u8>,
    /// Number of messages that were received.
    messages: usize,
    /// Number of steps that were written: a message, a change of the keys, or both.
    steps: usize,
}

impl Handshake {
    fn begin(plain: &Plain, side: Side, own: &TransportParameters) -> Box<dyn Session> {
        let certificates = plain.certificates;
        let (received, own) = (Vec::new(), *own);
        Box::new(Handshake { side, certificates, own, peer: None, received, messages: 0, steps: 0 })
    }

    /// A message of this end with its transport parameters, and `length` bytes in all if they fit.
    fn with_parameters(&self, length: usize) -> Vec<u8> {
        let mut content = vec![0; 2];
        self.own.write(&mut content);
        let parameters = (content.len() - 2) as u16;
        content[..2].copy_from_slice(&parameters.to_be_bytes());
        content.resize(content.len().max(length.saturating_sub(LENGTH)), 0);
        message(&content)
    }

    /// Takes the next whole message.
    fn next(&mut self) -> Option<Vec<u8>> {
        let length = self.received.get(..LENGTH)?.try_into().ok().map(u32::from_be_bytes)? as usize;
        if self.received.len() < LENGTH + length {
            return None;
        }
        let rest = self.received.split_off(LENGTH + length);
        let whole = std::mem::replace(&mut self.received, rest);
        self.messages += 1;
        Some(whole[LENGTH..].to_vec())
    }
}

/// The transport parameters of the peer of this side in a message.
fn parameters(side: Side, content: &[u8]) -> Option<TransportParameters> {
    let length = u16::from_be_bytes(content.get(..2)?.try_into().ok()?);
    let mut written = content.get(2..2 + usize::from(length))?;
    TransportParameters::read(side, &mut written).ok()
}

fn wrong_parameters() -> TransportError {
    TransportErrorCode::TRANSPORT_PARAMETER_ERROR.into()
}

/// A message with its length in front.
fn message(content: &[u8]) -> Vec<u8> {
    [&(content.len() as u32).to_be_bytes(), content].concat()
}

impl Session for Handshake {
    fn initial_keys(&self, _: &ConnectionId, _: Side) -> Keys {
        keys()
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        // The first and the last message of a client, or both messages of a server.
        self.messages < 2
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        self.received.extend_from_slice(bytes);
        while let Some(content) = self.next() {
            let has_parameters = match self.side {
                Side::Server => self.messages == 1,
                Side::Client => self.messages == 2,
            };
            if has_parameters {
                self.peer = Some(parameters(self.side, &content).ok_or_else(wrong_parameters)?);
            }
        }
        Ok(false)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.peer)
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        let (step, received) = (self.steps, self.messages);
        let (text, next) = match (self.side, step) {
            (Side::Client, 0) => (self.with_parameters(FIRST_OF_CLIENT), None),
            (Side::Client, 1) if received >= 1 => (Vec::new(), Some(keys())),
            (Side::Client, 2) if received >= 2 => (message(&[0; LAST_OF_CLIENT - LENGTH]), Some(keys())),
            (Side::Server, 0) if received >= 1 => (message(&[0; FIRST_OF_SERVER - LENGTH]), Some(keys())),
            (Side::Server, 1) => (self.with_parameters(self.certificates), Some(keys())),
            _ => return None,
        };
        self.steps += 1;
        out.extend(text);
        next
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(keys().packet)
    }

    fn is_valid_retry(&self, _: &ConnectionId, _: &[u8], _: &[u8]) -> bool {
        true
    }

    fn export_keying_material(
        &self,
        _: &mut [u8],
        _: &[u8],
        _: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}

impl ClientConfig for Plain {
    fn start_session(
        self: Arc<Self>,
        _version: u32,
        _server: &str,
        parameters: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(Handshake::begin(&self, Side::Client, parameters))
    }
}

impl ServerConfig for Plain {
    fn initial_keys(&self, _: u32, _: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(keys())
    }

    fn retry_tag(&self, _: u32, _: &ConnectionId, _: &[u8]) -> [u8; 16] {
        [0; 16]
    }

    fn start_session(self: Arc<Self>, _: u32, parameters: &TransportParameters) -> Box<dyn Session> {
        Handshake::begin(&self, Side::Server, parameters)
    }
}

/// The keys of a level.
fn keys() -> Keys {
    Keys {
        header: KeyPair { local: Box::new(NoKey), remote: Box::new(NoKey) },
        packet: KeyPair { local: Box::new(NoKey), remote: Box::new(NoKey) },
    }
}

/// A key of any kind.
pub(super) struct NoKey;

impl PacketKey for NoKey {
    fn encrypt(&self, _: u64, packet: &mut [u8], _: usize) {
        let content = packet.len() - TAG;
        packet[content..].fill(0);
    }

    fn decrypt(&self, _: u64, _: &[u8], payload: &mut bytes::BytesMut) -> Result<(), CryptoError> {
        payload.truncate(payload.len().checked_sub(TAG).ok_or(CryptoError)?);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

impl HeaderKey for NoKey {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}

    fn encrypt(&self, _: usize, _: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        TAG
    }
}

impl HmacKey for NoKey {
    /// A sum that differs between connection IDs.
    fn sign(&self, data: &[u8], signature: &mut [u8]) {
        let mut sum = 0xcbf2_9ce4_8422_2325_u64;
        for (at, out) in signature.iter_mut().enumerate() {
            for byte in data.iter().copied().chain([at as u8]) {
                sum = (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
            *out = (sum >> 32) as u8;
        }
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let mut expected = vec![0; signature.len()];
        self.sign(data, &mut expected);
        if expected == signature { Ok(()) } else { Err(CryptoError) }
    }
}

impl HandshakeTokenKey for NoKey {
    fn aead_from_hkdf(&self, _: &[u8]) -> Box<dyn AeadKey> {
        Box::new(NoKey)
    }
}

impl AeadKey for NoKey {
    fn seal(&self, _: &mut Vec<u8>, _: &[u8]) -> Result<(), CryptoError> {
        Ok(())
    }

    fn open<'a>(&self, data: &'a mut [u8], _: &[u8]) -> Result<&'a mut [u8], CryptoError> {
        Ok(data)
    }
}
