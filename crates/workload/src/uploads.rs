//! Uploads that wait for one another: an application that uploads several files has a few connections at
//! once, and starts the next file when one is complete.
//!
//! A connection for an upload that starts soon after the response to another one of the same client and
//! server waits for this response. Otherwise a file would start at its captured time, before or long after
//! the one that it had waited for, wherever the queue is another one. Each response is followed by one
//! upload, the first that starts after it.

use std::collections::BTreeMap;

use crate::model::{After, Connection, Direction};
use crate::names;
use crate::pages::{Request, SOON};

/// Sets what the connections of uploads wait for.
pub(crate) fn chain(connections: &mut [Connection], requests: &[Request]) {
    let mut of_ends: BTreeMap<([u8; 16], [u8; 16]), Vec<&Request>> = BTreeMap::new();
    for request in requests {
        let connection = &connections[request.connection];
        if names::is_upload(&connection.group) && connection.direction == Direction::Up {
            of_ends.entry((request.client, request.server)).or_default().push(request);
        }
    }
    for mut uploads in of_ends.into_values() {
        uploads.sort_by_key(|upload| (upload.from, upload.connection, upload.epoch));
        // Uploads whose response is followed by no other one yet.
        let mut open: Vec<&Request> = Vec::new();
        for upload in uploads {
            let waiting = &mut connections[upload.connection];
            if upload.epoch == 0 && waiting.begun {
                let ended = |one: &Request| {
                    let pause = upload.from.checked_sub(one.received())?;
                    // Connections are in the order of their starts, except where times step back.
                    (pause <= SOON && one.connection < upload.connection).then_some(pause)
                };
                let first = open.iter().enumerate().filter_map(|(at, one)| Some((ended(one)?, at)));
                if let Some((pause, at)) = first.max() {
                    let Request { connection, total, .. } = *open.remove(at);
                    waiting.after = Some(After { connection, bytes: total, pause });
                }
            }
            open.push(upload);
        }
    }
}
