//! Snapshots as JSON: the answer to `giveway live control SOCKET show`, and the summary of `--json`. Times
//! are in seconds.

use giveway_qdisc::{Backlog, ClassState, Rate};
use giveway_wire::fragment::Size;
use serde_json::{Map, Value, json};

use crate::delays::Quantiles;
use crate::snapshot::{Backend, Reservations, Snapshot};
use crate::status::{Fragments, Status};

/// The snapshots of a bridge as one JSON object, with the version of the program.
pub fn render(snapshots: &[Snapshot]) -> Value {
    let directions: Vec<Value> = snapshots.iter().map(direction).collect();
    json!({"version": env!("CARGO_PKG_VERSION"), "directions": directions})
}

/// One direction. Counters that its backend does not have are left out: zero would be misleading.
fn direction(of: &Snapshot) -> Value {
    let Status { counters, .. } = &of.status;
    let mut object = Map::new();
    let mut add = |more: Value| {
        if let Value::Object(more) = more {
            object.extend(more);
        }
    };
    add(json!({
        "direction": of.direction.name(),
        "from": of.from,
        "to": of.to,
        "rate_bps": of.status.rate.as_bit(),
        "qdisc": of.spec,
    }));
    let complete = of.backend == Backend::Program;
    if complete {
        add(json!({
            "delay_s": of.settings.delay.as_s(),
            "jitter_s": of.settings.jitter.as_s(),
            "loss": of.settings.loss.get(),
            "fragment": of.settings.fragment.map(Size::bytes),
            "reassemble": of.settings.reassemble,
        }));
    }
    let drops = of.status.dropped.iter().map(|(why, lost)| (why.name(), lost.packets));
    add(json!({
        "uptime_s": of.status.uptime.as_s(),
        "arrived": amount(counters.arrived),
        "sent": amount(counters.sent),
        "dropped": amount(counters.dropped),
        "backlog": amount(of.status.backlog),
        "drops": named(drops),
    }));
    if complete {
        add(counted_by_the_program(&of.status));
    }
    let gauges = of.status.gauges.iter().map(|(name, value)| (name.as_ref(), *value));
    add(json!({"gauges": named(gauges)}));
    if !of.status.classes.is_empty() {
        add(json!({"classes": of.status.classes.iter().map(class).collect::<Vec<Value>>()}));
    }
    if complete {
        add(json!({
            "reservations": of.reservations.as_ref().map(reservations),
            "plain": of.status.plain,
            "plain_frames": of.status.plain_frames,
        }));
    }
    add(json!({"scheduling": of.status.scheduling}));
    Value::Object(object)
}

/// A class of the discipline.
fn class(of: &ClassState) -> Value {
    let mean = (of.sent.packets > 0).then(|| of.waited.as_s() / of.sent.packets as f64);
    json!({
        "path": of.path,
        "level": of.level,
        "rate_bps": of.rate.map(Rate::as_bit),
        "ceil_bps": of.ceil.map(Rate::as_bit),
        "arrived": amount(of.arrived),
        "sent": amount(of.sent),
        "dropped": amount(of.dropped),
        "backlog": amount(of.backlog),
        "borrowed_bytes": of.borrowed,
        "wait_mean_s": mean,
        "wait_max_s": of.longest.as_s(),
    })
}

/// Counters of a backend that sees every frame.
fn counted_by_the_program(status: &Status) -> Value {
    let Fragments { cut, pieces, spared, whole, joined, waiting, .. } = &status.fragments;
    let [free, least_free, total] = status.buffers;
    json!({
        "marked": status.counters.marked,
        "lost": named(status.losses.named()),
        "cut": {"frames": cut, "fragments": pieces, "spared_fragments": spared, "whole": whole},
        "joined": {
            "fragments": joined.joined,
            "frames": joined.packets,
            "waiting": waiting,
            "given_up_frames": joined.given_up,
            "lost": named(joined.lost().map(|(why, lost)| (why.name(), lost))),
        },
        "sojourn_s": quantiles(&status.sojourn[0]),
        "lateness_s": quantiles(&status.lateness[0]),
        "last_second": {
            "sent": amount(status.last_second),
            "sojourn_s": quantiles(&status.sojourn[1]),
            "lateness_s": quantiles(&status.lateness[1]),
        },
        "stalls": status.stalls,
        "stalled_s": status.stalled.as_s(),
        "longest_stall_s": status.longest_stall.as_s(),
        "checksums_finished": status.checksums,
        "changes": status.changes,
        "interface_downs": status.downs,
        "receive_calls": status.receives,
        "send_calls": status.sends,
        "buffers": {"free": free, "least_free": least_free, "total": total},
        "in_flight": status.in_flight,
    })
}

fn reservations(of: &Reservations) -> Value {
    json!({
        "reservable_bps": of.capacity.as_bit(),
        "reserved_bps": of.reserved.as_bit(),
        "flows": of.flows,
        "open": {
            "reservable_bps": of.open.capacity.as_bit(),
            "reserved_bps": of.open.reserved.as_bit(),
            "flows": of.open.flows,
            "owners": of.open.owners,
        },
        "messages": named(of.all_messages()),
    })
}

fn amount(of: Backlog) -> Value {
    json!({"packets": of.packets, "bytes": of.bytes})
}

fn named<'a, V: Into<Value>>(values: impl IntoIterator<Item = (&'a str, V)>) -> Map<String, Value> {
    values.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect()
}

fn quantiles(of: &Quantiles) -> Value {
    let [p50, p90, p99, p999, max] = of.shares().map(|(_, span)| span.as_s());
    let mean = if of.count > 0 { of.sum_ps as f64 / 1e12 / of.count as f64 } else { 0.0 };
    json!({"count": of.count, "mean": mean, "p50": p50, "p90": p90, "p99": p99, "p999": p999, "max": max})
}
