//! The user data of epoll events.

use giveway_sim::net::Side;

/// The user data of an epoll event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Timer,
    Listener(usize),
    Udp(usize),
    /// A socket of QUIC, by number.
    Quic(usize),
    End {
        conn: u32,
        serial: u32,
        side: Side,
    },
}

impl Token {
    pub(super) fn pack(self) -> u64 {
        match self {
            Token::Timer => 0,
            Token::Listener(side) => 1 + side as u64,
            Token::Udp(side) => 3 + side as u64,
            Token::Quic(socket) => 5 + socket as u64,
            Token::End { conn, serial, side } => {
                let server = u64::from(side == Side::Server);
                1 << 63 | u64::from(serial & 0x3fff_ffff) << 33 | u64::from(conn) << 1 | server
            }
        }
    }

    pub(super) fn unpack(number: u64) -> Token {
        match number {
            0 => Token::Timer,
            1 | 2 => Token::Listener(number as usize - 1),
            3 | 4 => Token::Udp(number as usize - 3),
            _ if number >> 63 == 0 => Token::Quic(number as usize - 5),
            _ => Token::End {
                conn: (number >> 1) as u32,
                serial: (number >> 33) as u32 & 0x3fff_ffff,
                side: if number & 1 == 1 { Side::Server } else { Side::Client },
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_distinct() {
        let end = |conn, serial, side| Token::End { conn, serial, side };
        let all = [
            Token::Timer,
            Token::Listener(0),
            Token::Listener(1),
            Token::Udp(0),
            Token::Udp(1),
            Token::Quic(0),
            Token::Quic(70_000),
            end(0, 0, Side::Client),
            end(0, 0, Side::Server),
            end(u32::MAX, 0x3fff_ffff, Side::Server),
            end(7, 1, Side::Client),
        ];
        for token in all {
            assert_eq!(Token::unpack(token.pack()), token);
        }
    }
}
