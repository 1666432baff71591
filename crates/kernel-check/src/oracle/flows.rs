//! The flow of a packet, for the Rust discipline: from the mark that selects its queue in Linux.

use giveway_disciplines::Spec;
use giveway_qdisc::hash::mix;
use giveway_qdisc::{FlowKey, LinkContext, Meta};

use super::calls::Arrival;

/// Metadata of a packet whose mark is its flow, and its class.
pub fn plain(arrival: &Arrival) -> Meta {
    let class = u16::try_from(arrival.mark).unwrap_or(u16::MAX);
    Meta { bytes: arrival.bytes, class, flow: FlowKey(arrival.mark), ..Meta::default() }
}

/// Metadata of a packet whose mark is the place of its flow in `keys`, or its flow.
pub fn headers(keys: &[FlowKey]) -> impl Fn(&Arrival) -> Meta {
    |arrival| {
        let flow = keys.get(arrival.mark as usize).copied().unwrap_or(FlowKey(arrival.mark));
        Meta { flow, ..plain(arrival) }
    }
}

/// A flow for each bucket of the Rust discipline, in the order of buckets; empty if each flow has its own
/// queue.
pub fn keys(spec: &Spec, context: &LinkContext) -> Vec<FlowKey> {
    let secret = context.streams.rng().word();
    let (buckets, bucket): (u32, Box<dyn Fn(u64) -> u64>) = match spec {
        Spec::sfq(config) => {
            let (key, mask) = (mix(0, secret), u64::from(config.divisor - 1));
            (config.divisor, Box::new(move |flow| mix(flow, key) & mask))
        }
        Spec::fq_codel(config) => {
            let flows = u128::from(config.flows);
            (config.flows, Box::new(move |flow| ((u128::from(mix(flow, secret)) * flows) >> 64) as u64))
        }
        Spec::fq_pie(config) => {
            let (flows, secret) = (u128::from(config.flows), context.streams.within("hash").rng().word());
            (config.flows, Box::new(move |flow| ((u128::from(mix(flow, secret)) * flows) >> 64) as u64))
        }
        _ => return Vec::new(),
    };
    table(buckets, &*bucket)
}

/// A flow for each queue that the hash of `fq` selects, in the order of queues; empty if there are so many
/// queues that no two flows share one.
pub fn orphans(mask: u32, context: &LinkContext) -> Vec<FlowKey> {
    const MAX: u32 = 1 << 16;
    let perturbation = context.streams.rng().word();
    if mask >= MAX {
        return Vec::new();
    }
    table(mask + 1, &|flow| mix(flow, perturbation) & u64::from(mask))
}

/// A flow for each bucket.
fn table(buckets: u32, bucket: &dyn Fn(u64) -> u64) -> Vec<FlowKey> {
    let mut keys = vec![None; buckets as usize];
    let mut missing = buckets;
    for flow in 0.. {
        let key = &mut keys[bucket(flow) as usize];
        if key.is_none() {
            *key = Some(FlowKey(flow));
            missing -= 1;
            if missing == 0 {
                break;
            }
        }
    }
    keys.into_iter().flatten().collect()
}
