//! The counters of TCP connections, as `ss` shows them (TCP_INFO, tcp(7)).

use crate::connections::CLIENT_PORT;
use crate::error::SendersError;
use crate::network::run;

/// Counters of a sender.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Counters {
    /// Retransmitted segments since the start.
    pub retransmitted: u64,
    /// Smoothed round-trip time in milliseconds.
    pub srtt_ms: f64,
    /// Smallest round-trip time of the last minutes, in milliseconds.
    pub min_rtt_ms: f64,
    /// Congestion window in segments.
    pub window: u64,
    /// Slow-start threshold in segments, if the sender has one.
    pub threshold: Option<u64>,
    /// Estimated delivery rate in bit/s.
    pub delivery_bps: u64,
    /// Rate of pacing in bit/s.
    pub pacing_bps: u64,
}

/// Counters of the first `flows` connections of the client.
///
/// # Errors
/// If a connection is missing.
pub(crate) fn counters(flows: usize) -> Result<Vec<Counters>, SendersError> {
    let text = run("ip", &["netns", "exec", "client", "ss", "-tinOH"], "")?;
    (0..flows)
        .map(|flow| {
            let local = format!(":{} ", CLIENT_PORT as usize + flow);
            let line = text.lines().find(|line| line.contains(&local));
            let what = || SendersError::Inconsistent { what: format!("ss does not list {local}:\n{text}") };
            line.map(read).ok_or_else(what)
        })
        .collect()
}

/// Reads the words of a line. Some have the form `name:value`, others are followed by their value.
fn read(line: &str) -> Counters {
    let words: Vec<&str> = line.split_whitespace().collect();
    let of = |name: &str| words.iter().find_map(|word| word.strip_prefix(name)).unwrap_or_default();
    let after = |name: &str| {
        let value = words.windows(2).find(|pair| pair[0] == name).map(|pair| pair[1]);
        value.and_then(|value| value.trim_end_matches("bps").parse().ok()).unwrap_or_default()
    };
    let number = |text: &str| text.parse::<f64>().unwrap_or_default();
    Counters {
        retransmitted: of("retrans:").rsplit('/').next().and_then(|text| text.parse().ok()).unwrap_or(0),
        srtt_ms: number(of("rtt:").split('/').next().unwrap_or_default()),
        min_rtt_ms: number(of("minrtt:")),
        window: of("cwnd:").parse().unwrap_or_default(),
        threshold: of("ssthresh:").parse().ok(),
        delivery_bps: after("delivery_rate"),
        pacing_bps: after("pacing_rate"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_ss_has_the_counters() {
        let line = "ESTAB 0 43440 10.0.1.1:40001 10.0.2.1:5001 cubic wscale:9,9 rto:272 rtt:70.4/1.5 mss:1448 \
                    cwnd:59 ssthresh:41 bytes_sent:1 segs_out:5 send 9708000bps lastsnd:1 pacing_rate 11649600bps \
                    delivery_rate 9563288bps delivered:6 busy:5ms retrans:1/23 minrtt:41.2";
        assert_eq!(
            read(line),
            Counters {
                retransmitted: 23,
                srtt_ms: 70.4,
                min_rtt_ms: 41.2,
                window: 59,
                threshold: Some(41),
                delivery_bps: 9_563_288,
                pacing_bps: 11_649_600,
            }
        );
    }
}
