//! Compares the service of each class at every call, for disciplines whose rules differ from those of Linux.
//!
//! The Rust discipline gets the calls of Linux. Where one of the two sends nothing, or a packet of another
//! class, the services of the classes differ for a while. With other shares, guarantees or limits the
//! distance would grow.

use std::collections::BTreeMap;

use giveway_disciplines::Spec;
use giveway_qdisc::LinkContext;

use super::calls::{Call, compare, results};
use super::error::OracleError;
use super::flows::plain;
use super::verdict::Verdict;

/// Largest difference of the service of a class, in bytes.
const MOST: u64 = 8 * 1514;

/// Compares the calls with the Rust discipline.
///
/// # Errors
/// If the parameters are invalid.
pub fn judge(calls: &[Call], spec: &Spec, context: &LinkContext) -> Result<Verdict, OracleError> {
    let mut rust = spec.build_numbered(context)?;
    let Some(difference) = compare(calls, &mut *rust, &plain) else { return Ok(Verdict::Equal) };
    let mut rust = spec.build_numbered(context)?;
    let here = results(calls, &mut *rust, &plain);
    let of: BTreeMap<u64, (u64, u64)> = calls
        .iter()
        .filter_map(|call| call.arrival)
        .map(|arrival| (arrival.number, (arrival.mark, u64::from(arrival.bytes))))
        .collect();
    let (mut ahead, mut most, mut equal, mut sent) = (BTreeMap::<u64, i64>::new(), 0u64, 0u64, 0u64);
    for (kernel, rust) in calls.iter().zip(&here) {
        for (packet, sign) in [(kernel.sent, 1), (rust.sent, -1)] {
            let Some((class, bytes)) = packet.and_then(|packet| of.get(&packet)) else { continue };
            let gap = ahead.entry(*class).or_default();
            *gap += sign * *bytes as i64;
        }
        most = ahead.values().map(|gap| gap.unsigned_abs()).fold(most, u64::max);
        sent += u64::from(kernel.sent.is_some());
        equal += u64::from(kernel.sent.is_some() && kernel.sent == rust.sent);
    }
    let what = format!(
        "the service of each class is at most {most} bytes from that of the Rust discipline at every call, and {equal} of \
         {sent} packets leave in the same call; first, {difference}"
    );
    Ok(if most <= MOST { Verdict::Alike(what) } else { Verdict::Different(what) })
}

#[cfg(test)]
mod tests {
    use giveway_qdisc::{Bytes, Rate, Streams};

    use super::super::calls::Arrival;
    use super::*;

    /// Bursts of three classes that are longer than the pauses, without results.
    fn traffic() -> Vec<Call> {
        let (mut now, mut number, mut calls) = (1_000_000, 0, Vec::new());
        let call = |now, arrival| Call { now, arrival, ..Call::default() };
        for _ in 0..100 {
            for _ in 0..30 {
                let arrival = Arrival { number, bytes: 200 + (number * 97 % 1300) as u32, mark: number % 3 };
                calls.push(call(now, Some(arrival)));
                number += 1;
                now += 10_000;
            }
            for _ in 0..60 {
                calls.push(call(now, None));
                now += 100_000;
            }
        }
        calls
    }

    /// A tree in which class 1 has this rate.
    fn tree(rate: &str) -> Spec {
        format!(
            "hfsc classes [(name all ls (rate 20mbit) ul (rate 20mbit) classes [(name a rt (m1 10mbit d 5ms m2 1mbit) ls \
             (rate 4mbit) match [(class 0)]) (name b ls (rate {rate}) match [(class 1)]) (name c ls (rate 8mbit) match \
             [(class 2)])])]"
        )
        .parse()
        .unwrap()
    }

    #[test]
    fn another_share_is_a_difference_and_a_slightly_other_order_is_not() {
        let context = LinkContext { mtu: Bytes(1514), ..LinkContext::new(Rate::gbit(1), Streams::new(1)) };
        let kernel = results(&traffic(), &mut *tree("8mbit").build_numbered(&context).unwrap(), &plain);
        let judged = |rate: &str| judge(&kernel, &tree(rate), &context).unwrap();
        assert!(matches!(judged("8mbit"), Verdict::Equal));
        let close = judged("8001kbit");
        assert!(matches!(close, Verdict::Alike(_)), "{close}");
        let far = judged("6mbit");
        assert!(!far.holds(), "{far}");
    }
}
