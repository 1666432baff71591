//! The calls of the engine and of sources that concern QUIC connections.

use std::rc::Rc;

use giveway_qdisc::{Ending, Meta, Time};

use super::Transport;
use super::connection::Transfer;
use super::quic::{Conn, QUIC, index};
use crate::event_queue::{EventQueue, Owner};
use crate::net::{Caller, ConnId, Event, Settings, Side};
use crate::quic::{End, Opening};
use crate::segment::Segment;
use crate::tcp::Identity;

impl Transport {
    /// Opens a QUIC connection, which carries `transfer` if there is one.
    pub(super) fn quic_connect(
        &mut self,
        by: Caller<'_>,
        (from, to, host): (u16, u16, u16),
        transfer: Option<Box<Transfer>>,
        queue: &mut EventQueue,
    ) -> ConnId {
        let Caller { source, settings, now } = by;
        let origin = &mut self.origins[usize::from(source)];
        let tuple = origin.tuple(from, to, 17);
        let rank = origin.connection();
        let (flow, reply_flow) = (tuple.key(&self.hasher), tuple.reversed().key(&self.hasher));
        let reused = self.quic.free.pop();
        let place = reused.unwrap_or(self.quic.conns.len() as u32);
        let number = place | QUIC;
        // The last connection at this index.
        let known = reused.map(|reused| &self.quic.conns[reused as usize]);
        let serial = known.map_or(0, |conn| conn.serial + 1);
        let timer = match known.map(|conn| conn.timer) {
            Some(timer) => {
                queue.reuse(timer, rank);
                timer
            }
            None => queue.add(Owner::Connection(number), rank),
        };
        let host_node = self.hosts[usize::from(host)].0;
        let segment = Segment { conn: number, serial, source, host, host_node, ..Segment::default() };
        let reply = Segment { flags: Segment::REPLY, ..segment };
        let Settings { quic: config, class, dscp, reserved, .. } = settings;
        let forward = Identity { flow, from, to, class: *class, dscp: *dscp, reserved: *reserved };
        let reverse = Identity { flow: reply_flow, from: to, to: from, ..forward };
        let bound = |at: Time| if now < at { u64::MAX } else { 0 };
        let counted = (bound(self.measured.start), bound(self.measured.end));
        let end = |fields, identity| End::new(Opening { segment: fields, identity, config, counted });
        let mut conn = Conn {
            serial,
            source,
            alive: true,
            timer,
            armed: Time::NEVER,
            config: Rc::clone(config),
            client: end(segment, forward),
            server: end(reply, reverse),
            transfer,
        };
        conn.client.open(now);
        if let Some(carried) = &conn.transfer {
            let ends = carried.bytes < u64::MAX;
            conn.client.write(0, carried.bytes, ends);
            if ends {
                conn.client.close();
                conn.server.close();
            }
        }
        conn.client.send(now, config, &mut self.out);
        conn.arm(queue);
        match reused {
            Some(reused) => self.quic.conns[reused as usize] = conn,
            None => self.quic.conns.push(conn),
        }
        ConnId(number)
    }

    /// One end of a QUIC connection.
    pub(super) fn quic_end(&self, conn: ConnId, side: Side) -> &End {
        self.quic.conns[index(conn)].end(side)
    }

    /// Lets the application act on one end, then sends what the end may send.
    pub(super) fn quic_act(
        &mut self,
        id: ConnId,
        side: Side,
        now: Time,
        queue: &mut EventQueue,
        action: impl FnOnce(&mut End),
    ) {
        let conn = &mut self.quic.conns[index(id)];
        let config = Rc::clone(&conn.config);
        let end = conn.end_mut(side);
        action(end);
        end.send(now, &config, &mut self.out);
        // Both ends may have closed with everything acknowledged: then the timer ends the connection.
        if conn.client.finished() && conn.server.finished() && conn.alive {
            conn.armed = now;
            return queue.set(conn.timer, now);
        }
        conn.arm(queue);
    }

    /// Delivers a packet to an end of its connection.
    #[inline]
    pub(super) fn deliver_quic(
        &mut self,
        meta: &Meta,
        segment: &Segment,
        joined: bool,
        now: Time,
        queue: &mut EventQueue,
    ) {
        let id = ConnId(segment.conn);
        let conn = &mut self.quic.conns[index(id)];
        if conn.serial != segment.serial || !conn.alive {
            // A late packet: its connection is over, and the index is free or has another connection.
            return;
        }
        if let Some(transfer) = &mut conn.transfer
            && segment.len > 0
        {
            transfer.record_arrival(segment.age(now), now, &self.measured);
        }
        let (end, peer, side) = match segment.has(Segment::REPLY) {
            true => (&mut conn.client, &conn.server, Side::Client),
            false => (&mut conn.server, &conn.client, Side::Server),
        };
        end.arrive((meta, segment, joined), peer.sent(), now, &conn.config, &mut self.out);
        self.quic_outcome(id, side, now, queue);
    }

    /// The timer of a connection expires. It may be early for both ends, because it is armed lazily.
    pub(super) fn on_quic_timer(&mut self, id: ConnId, now: Time, queue: &mut EventQueue) {
        let conn = &mut self.quic.conns[index(id)];
        conn.armed = Time::NEVER;
        queue.set(conn.timer, Time::NEVER);
        for side in [Side::Client, Side::Server] {
            let timed = &mut self.quic.conns[index(id)];
            let config = Rc::clone(&timed.config);
            if timed.alive && now >= timed.end(side).deadline() {
                timed.end_mut(side).on_timer(now, &config, &mut self.out);
            }
            self.quic_outcome(id, side, now, queue);
        }
        let rested = &mut self.quic.conns[index(id)];
        rested.arm(queue);
        if rested.armed == Time::NEVER {
            rested.client.rest();
            rested.server.rest();
        }
    }

    /// Handles the effects of a packet or of a timer on one end.
    #[inline]
    fn quic_outcome(&mut self, id: ConnId, side: Side, now: Time, queue: &mut EventQueue) {
        let conn = &mut self.quic.conns[index(id)];
        if !conn.alive {
            return;
        }
        let is_transfer = conn.transfer.is_some();
        let outcome = conn.end_mut(side).outcome();
        let accepted = std::mem::take(&mut outcome.accepted);
        let aborted = outcome.aborted;
        let mut progress = std::mem::take(&mut outcome.progress);
        if accepted && !is_transfer {
            self.events.push((conn.source, Event::Connected(id)));
        }
        for stream in progress.drain(..) {
            let total = conn.end(side).delivered(stream);
            match &mut conn.transfer {
                Some(transfer) => transfer.pauses.progress(now),
                None => self.events.push((conn.source, Event::Received { conn: id, side, stream, total })),
            }
        }
        // The buffer is used again.
        conn.end_mut(side).outcome().progress = progress;
        if is_transfer {
            self.finish_transfer(id, aborted, now);
        }
        let ended = &mut self.quic.conns[index(id)];
        let event = match aborted {
            true => Event::Aborted(id),
            false if ended.client.finished() && ended.server.finished() => Event::Closed(id),
            false => return ended.arm(queue),
        };
        self.events.push((ended.source, event));
        ended.alive = false;
        ended.armed = Time::NEVER;
        queue.set(ended.timer, Time::NEVER);
        self.retired.push(id.0);
    }

    /// Reports a transfer that is complete or aborted.
    fn finish_transfer(&mut self, id: ConnId, aborted: bool, now: Time) {
        let conn = &mut self.quic.conns[index(id)];
        let Some(transfer) = &conn.transfer else { return };
        let is_complete = conn.server.delivered(0) == transfer.bytes;
        let ending = match (is_complete, aborted) {
            (true, _) => Ending::Completed,
            (false, true) => Ending::Aborted,
            (false, false) => return,
        };
        self.reports.extend(conn.report(now, ending));
        if let Some(reported) = &mut conn.transfer {
            reported.reported = true;
        }
    }
}
