//! Latency-rate servers: the guarantee of a packet scheduler for a flow with a reserved rate, as a latency
//! and a rate.
//!
//! A scheduler is a latency-rate server with latency Θ for a flow with rate ρ if, in each busy period of the
//! flow, which starts at τ, it serves at least max(0, ρ·(t - τ - Θ)) by t (Stiliadis and Varma 1998,
//! definition 1 and equation (1)). The delay of a flow within a token bucket (σ, ρ) is then at most σ/ρ + ΣΘ
//! over the schedulers on its route (theorem 1, equation (10)): [`delay`]. For packets this means: with the
//! finish time at the rate of the flow, F_k = max(a_k, F_(k-1)) + L_k/ρ, packet k departs by F_k + Θ - L/ρ:
//! [`Server::lateness`].
//!
//! Equation numbers refer to table 1 in the appendix of the TRR paper (Chen and Chen, about 2000), by row,
//! with corrections; for schedulers without a row, to the paper that is named. The texts of Stiliadis and
//! Varma, Golestani, and Cobb were read in secondary sources. A bound marked "observed" is not proven: a
//! search for violations found none.
//!
//! Rates are in bit/s, packets in bytes, results in seconds. Fairness is in seconds, too: the largest
//! difference between the service of two flows, each as time at its own rate, while both have a backlog. Best
//! effort is served behind reserved flows, a packet at a time: its largest packet counts in L_max, and once
//! more where the formula counts the packets of others ([`Server::behind`]).

/// A flow with a reservation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow {
    /// Its reserved rate ρ, bit/s.
    pub rate: f64,
    /// Its largest packet L, bytes.
    pub packet: f64,
}

/// A link and the flows with reservations on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// The rate of the link r, bit/s.
    pub link: f64,
    /// The reserved flows.
    pub flows: Vec<Flow>,
    /// The largest packet of the best effort, bytes; zero without best effort.
    pub best_effort: f64,
}

/// A packet scheduler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scheduler<'a> {
    /// First in, first out, without a guarantee.
    Fifo,
    /// Weighted fair queueing with exact virtual time, also called PGPS.
    Wfq,
    /// Virtual Clock.
    VirtualClock,
    /// Self-clocked fair queueing.
    Scfq,
    /// Deficit round robin with these quanta φ, bytes, one for each flow.
    Drr(&'a [f64]),
    /// Deficit round robin in which a flow leaves the round while its last packet is in transmission, and so
    /// may lose a turn.
    DrrThatForgets(&'a [f64]),
    /// WF²Q+.
    Wf2q,
    /// Time-shift scheduling.
    TimeShift,
    /// Virtual-time round robin with classes of T seconds.
    VirtualTimeRoundRobin(f64),
    /// Virtual-time round robin, with the bound that the table of the TRR paper prints.
    VirtualTimeRoundRobinAsPrinted(f64),
    /// Timestamp round robin, with the bound that the paper prints. The algorithm in the paper violates it.
    TimestampRoundRobinAsPrinted,
    /// Timestamp round robin, corrected, with slots of δ seconds.
    TimestampRoundRobin(f64),
    /// Quick fair queueing, with groups by this largest packet, bytes.
    QuickFair(f64),
}

/// The largest delay of a flow within a token bucket of `burst` bytes and its reserved rate, over schedulers
/// with these latencies, in seconds: σ/ρ + ΣΘ, without propagation. `rate` in bit/s.
///
/// Stiliadis and Varma 1998, theorem 1.
pub fn delay(burst: f64, rate: f64, latencies: &[f64]) -> f64 {
    8.0 * burst / rate + latencies.iter().sum::<f64>()
}

impl Server {
    /// `true` if the sum of the reserved rates is at most the rate of the link. No bound holds otherwise.
    pub fn admits(&self) -> bool {
        self.flows.iter().map(|flow| flow.rate).sum::<f64>() <= self.link * (1.0 + 1e-12)
    }

    /// The largest packet of all flows and of best effort, bytes: L_max.
    pub fn largest(&self) -> f64 {
        self.flows.iter().map(|flow| flow.packet).fold(self.best_effort, f64::max)
    }

    /// Transmission time of `bytes` on the link, seconds.
    fn on_link(&self, bytes: f64) -> f64 {
        8.0 * bytes / self.link
    }

    /// Transmission time of the largest packet of a flow at its own rate, seconds: L/ρ.
    fn at_rate(&self, flow: usize) -> f64 {
        8.0 * self.flows[flow].packet / self.flows[flow].rate
    }

    /// The largest L/ρ of all flows, seconds.
    fn slowest(&self) -> f64 {
        (0..self.flows.len()).map(|flow| self.at_rate(flow)).fold(0.0, f64::max)
    }

    /// Longest service of others before the packet of a new flow, whose timestamp equals the timestamp of the
    /// packet in service: one packet of each other flow, and one of best effort in transmission; seconds.
    /// Without best effort it is (N - 1)·L_max/r.
    pub fn behind(&self) -> f64 {
        let others = self.flows.len().saturating_sub(1) as f64 * self.largest();
        self.on_link(others + self.best_effort)
    }

    /// The latency Θ of a flow under a scheduler, seconds. `None` without a bound: for a FIFO, and if the
    /// reserved rates exceed the rate of the link.
    ///
    /// # Panics
    /// If there is no such flow, or the number of quanta is not the number of flows.
    pub fn latency(&self, scheduler: Scheduler<'_>, flow: usize) -> Option<f64> {
        if !self.admits() {
            return None;
        }
        let own = self.at_rate(flow);
        let largest = self.on_link(self.largest());
        match scheduler {
            Scheduler::Fifo => None,
            // Row WFQ: L_i/ρ_i + L_max/r. The same for all rate-proportional servers (Stiliadis and Varma,
            // "Rate-Proportional Servers", 1998, theorem 1); the table has no rows for Virtual Clock, WF²Q+
            // and time-shift scheduling.
            Scheduler::Wfq | Scheduler::VirtualClock | Scheduler::Wf2q | Scheduler::TimeShift => {
                Some(own + largest)
            }
            // Row SCFQ: L_i/ρ_i + (N - 1)·L_max/r.
            Scheduler::Scfq => Some(own + self.behind()),
            Scheduler::Drr(quanta) => Some(self.drr(quanta, flow)),
            // The packet in transmission is one of the flow itself, and is not counted among those of others.
            // Observed.
            Scheduler::DrrThatForgets(quanta) => Some(self.drr(quanta, flow) + largest),
            // Row VTRR: T + L_max/r + L_i/ρ_i, with T = L_max/(ρ_min·C).
            Scheduler::VirtualTimeRoundRobinAsPrinted(interval) => Some(interval + largest + own),
            // Virtual time is the class in service, so the latency of SCFQ and T hold instead. Observed.
            Scheduler::VirtualTimeRoundRobin(interval) => Some(interval + self.behind() + own),
            // Row TRR, equation (2): Φ/ρ_i + Φ/r.
            Scheduler::TimestampRoundRobinAsPrinted => Some(own + largest),
            // Rounding timestamps to slots adds a slot, which the row of VTRR contains and that of TRR does
            // not.
            Scheduler::TimestampRoundRobin(slot) => Some(own + largest + slot),
            // Checconi, Rizzo and Valente 2013, quoted from memory: with σ_i the power of two above L_max/ρ,
            // at most 3·σ_i + 2·L_max/r behind a fluid link. Between powers of two of 2^-20 ps.
            Scheduler::QuickFair(packet) => {
                let ticks = 8.0 * packet / self.flows[flow].rate * 1e12 * libm::exp2(20.0);
                let group = libm::exp2(libm::ceil(libm::log2(ticks))) / libm::exp2(20.0) / 1e12;
                Some(own + 3.0 * group + 2.0 * largest)
            }
        }
    }

    /// Longest time by which a packet departs later than at the rate of its flow alone, seconds: Θ - L/ρ.
    pub fn lateness(&self, scheduler: Scheduler<'_>, flow: usize) -> Option<f64> {
        Some(self.latency(scheduler, flow)? - self.at_rate(flow))
    }

    /// Latency of deficit round robin, seconds. Row DRR, corrected: the printed (3F - 2φ_i)/r holds only
    /// where every quantum is at least the largest packet, and φ is the quantum of a flow, not its packet. In
    /// general [(F - φ_i)(1 + L_i/φ_i) + Σ L_j]/r, which is the same for φ = L and equal flows (Lenzini,
    /// Mingozzi and Stea 2004).
    fn drr(&self, quanta: &[f64], flow: usize) -> f64 {
        assert_eq!(quanta.len(), self.flows.len(), "each flow has a quantum");
        let frame: f64 = quanta.iter().sum();
        let (own, packet) = (quanta[flow], self.flows[flow].packet);
        let packets: f64 = self.flows.iter().map(|flow| flow.packet).sum();
        self.on_link((frame - own) * (1.0 + packet / own) + packets + self.best_effort)
    }

    /// The latency of deficit round robin as printed, seconds: (3F - 2φ_i)/r.
    pub fn drr_as_printed(&self, quanta: &[f64], flow: usize) -> f64 {
        self.on_link(3.0 * quanta.iter().sum::<f64>() - 2.0 * quanta[flow])
    }

    /// Largest difference between the service of two flows while both have a backlog, each as time at its own
    /// rate, seconds. `None` if there is no bound, or none is known.
    ///
    /// # Panics
    /// As [`Server::latency`].
    pub fn fairness(&self, scheduler: Scheduler<'_>, one: usize, other: usize) -> Option<f64> {
        if !self.admits() {
            return None;
        }
        let (i, j) = (self.at_rate(one), self.at_rate(other));
        match scheduler {
            Scheduler::Fifo | Scheduler::VirtualClock => None,
            // Row WFQ. WF²Q+ is of the same order.
            Scheduler::Wfq | Scheduler::Wf2q => Some(self.wfq_fairness(one, other)),
            // Row SCFQ: L_i/ρ_i + L_j/ρ_j.
            Scheduler::Scfq => Some(i + j),
            // Row DRR: 3F/r where every quantum covers the largest packet; exactly 1 + L_i/φ_i + L_j/φ_j
            // rounds. A round lasts φ/ρ at the rates of the flows, which is F/r if all of the link is
            // reserved.
            Scheduler::Drr(quanta) => {
                let rounds =
                    1.0 + self.flows[one].packet / quanta[one] + self.flows[other].packet / quanta[other];
                let round = |flow: usize| 8.0 * quanta[flow] / self.flows[flow].rate;
                let proportional = (round(one) / round(other) - 1.0).abs() < 1e-9;
                proportional.then(|| rounds * round(one))
            }
            // No published form is known. That of SCFQ does not hold; at most twice the largest L/ρ was
            // observed.
            Scheduler::TimeShift => Some(2.0 * self.slowest()),
            // Row VTRR: 2·L_max/ρ_min·(1/C + 1), which is 2·L_max/ρ_min + 2T.
            Scheduler::VirtualTimeRoundRobin(interval)
            | Scheduler::VirtualTimeRoundRobinAsPrinted(interval) => {
                Some(2.0 * self.slowest() + 2.0 * interval)
            }
            // Equation (1): 2Φ/ρ_i; it names one flow, and must hold for both.
            Scheduler::TimestampRoundRobinAsPrinted => Some(2.0 * i.max(j)),
            // Observed.
            Scheduler::TimestampRoundRobin(slot) => Some(2.0 * self.slowest() + 2.0 * slot),
            Scheduler::QuickFair(_) | Scheduler::DrrThatForgets(_) => None,
        }
    }

    /// Fairness of WFQ, seconds: max(C_j + L_max/ρ_i + L_j/ρ_j, C_i + L_max/ρ_j + L_i/ρ_i), with C_i =
    /// min((N - 1)·L_max/ρ_i, max_n L_n/ρ_n).
    fn wfq_fairness(&self, one: usize, other: usize) -> f64 {
        let others = self.flows.len().saturating_sub(1) as f64;
        let largest_at = |flow: usize| 8.0 * self.largest() / self.flows[flow].rate;
        let c = |flow: usize| (others * largest_at(flow)).min(self.slowest());
        let side = |a: usize, b: usize| c(b) + largest_at(a) + self.at_rate(b);
        side(one, other).max(side(other, one))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A link of 8 Mbit/s, a byte a microsecond, with rates of 4, 2, 1 and 1 Mbit/s and packets of 1,000
    /// bytes.
    fn server() -> Server {
        let flows = [4e6, 2e6, 1e6, 1e6].map(|rate| Flow { rate, packet: 1000.0 }).to_vec();
        Server { link: 8e6, flows, best_effort: 0.0 }
    }

    fn ms(seconds: Option<f64>) -> f64 {
        (seconds.expect("there is a bound") * 1e9).round() / 1e6
    }

    #[test]
    fn latencies_by_hand() {
        let server = server();
        // L/ρ is 4 ms for flow 1, L/r is 1 ms.
        for scheduler in [Scheduler::Wfq, Scheduler::VirtualClock, Scheduler::Wf2q, Scheduler::TimeShift] {
            assert_eq!(ms(server.latency(scheduler, 1)), 5.0);
            assert_eq!(ms(server.lateness(scheduler, 1)), 1.0);
        }
        assert_eq!(ms(server.latency(Scheduler::Scfq, 1)), 7.0);
        assert_eq!(ms(server.latency(Scheduler::VirtualTimeRoundRobin(0.002), 1)), 9.0);
        assert_eq!(ms(server.latency(Scheduler::VirtualTimeRoundRobinAsPrinted(0.002), 1)), 7.0);
        assert_eq!(ms(server.latency(Scheduler::TimestampRoundRobinAsPrinted, 1)), 5.0);
        assert_eq!(ms(server.latency(Scheduler::TimestampRoundRobin(0.001), 1)), 6.0);
        // 4 ms are 4.19e15 ticks, just above 2^51 of them, which are 2.147 ms: the group is that of 2^52,
        // 4.294967296 ms.
        assert_eq!(ms(server.latency(Scheduler::QuickFair(1000.0), 1)), 18.884902);
        assert_eq!(server.latency(Scheduler::Fifo, 1), None);
    }

    /// With φ = L and N flows both forms of the bound for deficit round robin are (3N - 2)·L/r; with unequal
    /// quanta they differ.
    #[test]
    fn both_forms_for_drr_agree_for_equal_quanta() {
        let server = server();
        let equal = [1000.0; 4];
        assert_eq!(ms(server.latency(Scheduler::Drr(&equal), 0)), 10.0);
        assert_eq!(ms(Some(server.drr_as_printed(&equal, 0))), 10.0);
        let quanta = [4000.0, 2000.0, 1000.0, 1000.0];
        // (8 - 4)·(1 + 1/4) + 4 = 9, and 24 - 8 = 16.
        assert_eq!(ms(server.latency(Scheduler::Drr(&quanta), 0)), 9.0);
        assert_eq!(ms(Some(server.drr_as_printed(&quanta, 0))), 16.0);
        // 1 + 1/4 + 1/2 rounds of 8 ms. There is no bound for quanta that are not proportional to the rates.
        assert_eq!(ms(server.fairness(Scheduler::Drr(&quanta), 0, 1)), 14.0);
        assert_eq!(server.fairness(Scheduler::Drr(&equal), 0, 1), None);
        // Half of the rates are reserved on a link twice as fast: rounds are as long at these rates.
        let half = Server { link: 16e6, ..server };
        assert_eq!(ms(half.fairness(Scheduler::Drr(&quanta), 0, 1)), 14.0);
    }

    #[test]
    fn fairness_by_hand() {
        let server = server();
        assert_eq!(ms(server.fairness(Scheduler::Scfq, 0, 2)), 10.0);
        // C_0 = min(3·2, 8) = 6, C_2 = min(3·8, 8) = 8: max(8 + 2 + 8, 6 + 8 + 2).
        assert_eq!(ms(server.fairness(Scheduler::Wfq, 0, 2)), 18.0);
        assert_eq!(ms(server.fairness(Scheduler::TimestampRoundRobin(0.001), 0, 1)), 18.0);
        assert_eq!(ms(server.fairness(Scheduler::TimestampRoundRobinAsPrinted, 0, 1)), 8.0);
        assert_eq!(ms(server.fairness(Scheduler::VirtualTimeRoundRobin(0.001), 0, 1)), 18.0);
        assert_eq!(server.fairness(Scheduler::VirtualClock, 0, 1), None);
    }

    #[test]
    fn best_effort_delays_by_a_packet() {
        let server = Server { best_effort: 1500.0, ..server() };
        assert_eq!(ms(server.latency(Scheduler::Wfq, 1)), 5.5);
        // Three of the largest packets, and one in transmission.
        assert_eq!(ms(server.latency(Scheduler::Scfq, 1)), 10.0);
    }

    #[test]
    fn overbooked_links_have_no_bound() {
        let mut server = server();
        server.flows.push(Flow { rate: 1.0, packet: 1000.0 });
        assert!(!server.admits());
        assert_eq!(server.latency(Scheduler::Wfq, 0), None);
        assert_eq!(server.fairness(Scheduler::Wfq, 0, 1), None);
    }

    /// A burst of 10 packets at 2 Mbit/s over two hops.
    #[test]
    fn delay_over_hops() {
        assert!((delay(10_000.0, 2e6, &[0.005, 0.007]) - 0.052).abs() < 1e-12);
    }
}
