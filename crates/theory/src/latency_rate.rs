//! Latency-rate servers: what a scheduler guarantees to a flow that reserved a rate, in two numbers.
//!
//! A scheduler is a latency-rate server with latency Θ for a flow with rate ρ when in each busy period of the flow, which begins at
//! τ, it serves at least max(0, ρ·(t - τ - Θ)) by t (Stiliadis and Varma 1998, definition 1 and equation (1)). Then a flow within a token
//! bucket (σ, ρ) waits at most σ/ρ + ΣΘ over the schedulers on its way (theorem 1, equation (10)): [`delay`]. For packets it comes to
//! this: with the finish at the flow's own rate, F_k = max(a_k, F_(k-1)) + L_k/ρ, packet k departs by F_k + Θ - L/ρ: [`Server::lateness`].
//!
//! Equation numbers of the formulae are those of table 1 in the appendix of the TRR paper (Chen and Chen, about 2000), by row, with
//! what had to be corrected; where a row is missing, of the paper named. The texts of Stiliadis and Varma, Golestani, and Cobb were read in secondary
//! sources. What is only observed says so: it was searched for violations, and none were found, which is no proof.
//!
//! Rates are in bit/s, packets in bytes, results in seconds; fairness in seconds too: how far what two flows got may differ, each in
//! time at its own rate, while both have packets queued. Best effort is served behind reserved flows, a packet at a time: its largest packet
//! counts in L_max, and once more where the formula counts the packets of others ([`Server::behind`]).

/// A flow with a reservation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow {
    /// Its reserved rate ρ, bit/s.
    pub rate: f64,
    /// Its largest packet L, bytes.
    pub packet: f64,
}

/// A link and who has reservations on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// The rate of the link r, bit/s.
    pub link: f64,
    /// The reserved flows.
    pub flows: Vec<Flow>,
    /// The largest packet of the best effort, bytes; zero without best effort.
    pub best_effort: f64,
}

/// Who orders the packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scheduler<'a> {
    /// First in, first out: guarantees no flow anything.
    Fifo,
    /// Weighted fair queueing with exact virtual time, also called PGPS.
    Wfq,
    /// Virtual Clock.
    VirtualClock,
    /// Self-clocked fair queueing.
    Scfq,
    /// Deficit round robin with these quanta φ, bytes, in the order of the flows.
    Drr(&'a [f64]),
    /// The same where a flow leaves the round while its last packet is on the wire, and may so lose a turn.
    DrrThatForgets(&'a [f64]),
    /// WF²Q+.
    Wf2q,
    /// Time-shift scheduling.
    TimeShift,
    /// Virtual-time round robin with classes of T seconds.
    VirtualTimeRoundRobin(f64),
    /// The same, as the TRR paper's table has it.
    VirtualTimeRoundRobinAsPrinted(f64),
    /// Timestamp round robin, as the paper prints it; the algorithm that it describes does not keep it.
    TimestampRoundRobinAsPrinted,
    /// Timestamp round robin put right, with slots of δ seconds.
    TimestampRoundRobin(f64),
    /// Quick fair queueing, with groups chosen by this largest packet, bytes.
    QuickFair(f64),
}

/// The largest delay of a flow within a token bucket of `burst` bytes and its reserved rate, over schedulers with these latencies, in
/// seconds: σ/ρ + ΣΘ, without propagation. `rate` in bit/s.
///
/// Stiliadis and Varma 1998, theorem 1.
pub fn delay(burst: f64, rate: f64, latencies: &[f64]) -> f64 {
    8.0 * burst / rate + latencies.iter().sum::<f64>()
}

impl Server {
    /// Whether the reservations fit the link; no bound holds otherwise.
    pub fn admits(&self) -> bool {
        self.flows.iter().map(|flow| flow.rate).sum::<f64>() <= self.link * (1.0 + 1e-12)
    }

    /// The largest packet that anyone sends, bytes: L_max.
    pub fn largest(&self) -> f64 {
        self.flows.iter().map(|flow| flow.packet).fold(self.best_effort, f64::max)
    }

    /// What `bytes` take on the link, seconds.
    fn on_link(&self, bytes: f64) -> f64 {
        8.0 * bytes / self.link
    }

    /// What a packet of a flow takes at its rate, seconds: L/ρ.
    fn at_rate(&self, flow: usize) -> f64 {
        8.0 * self.flows[flow].packet / self.flows[flow].rate
    }

    /// The largest L/ρ of all flows, seconds.
    fn slowest(&self) -> f64 {
        (0..self.flows.len()).map(|flow| self.at_rate(flow)).fold(0.0, f64::max)
    }

    /// What others may send before the packet of a newcomer whose stamp is taken from the packet in service: one packet of each
    /// other flow, and what the best effort has on the wire; seconds. For flows of one size and without best effort (N - 1)·L_max/r.
    pub fn behind(&self) -> f64 {
        let others = self.flows.len().saturating_sub(1) as f64 * self.largest();
        self.on_link(others + self.best_effort)
    }

    /// The latency Θ of a flow under a scheduler, seconds. `None` when there is no bound: for a FIFO, and when more is reserved than
    /// the link has.
    ///
    /// # Panics
    /// When there is no such flow, or not one quantum per flow.
    pub fn latency(&self, scheduler: Scheduler<'_>, flow: usize) -> Option<f64> {
        if !self.admits() {
            return None;
        }
        let own = self.at_rate(flow);
        let largest = self.on_link(self.largest());
        match scheduler {
            Scheduler::Fifo => None,
            // Row WFQ: L_i/ρ_i + L_max/r. The same for all rate-proportional servers (Stiliadis and Varma, "Rate-Proportional
            // Servers", 1998, theorem 1); the table has no rows for Virtual Clock, WF²Q+ and time-shift scheduling.
            Scheduler::Wfq | Scheduler::VirtualClock | Scheduler::Wf2q | Scheduler::TimeShift => {
                Some(own + largest)
            }
            // Row SCFQ: L_i/ρ_i + (N - 1)·L_max/r.
            Scheduler::Scfq => Some(own + self.behind()),
            Scheduler::Drr(quanta) => Some(self.drr(quanta, flow)),
            // What is on the wire is the flow's own, and is not counted among what others send. Observed.
            Scheduler::DrrThatForgets(quanta) => Some(self.drr(quanta, flow) + largest),
            // Row VTRR: T + L_max/r + L_i/ρ_i, with T = L_max/(ρ_min·C).
            Scheduler::VirtualTimeRoundRobinAsPrinted(interval) => Some(interval + largest + own),
            // What holds instead where virtual time is the class in service: that of SCFQ, and T. Observed.
            Scheduler::VirtualTimeRoundRobin(interval) => Some(interval + self.behind() + own),
            // Row TRR, equation (2): Φ/ρ_i + Φ/r.
            Scheduler::TimestampRoundRobinAsPrinted => Some(own + largest),
            // With what the cut of stamps to slots adds, which VTRR's row has and TRR's has not.
            Scheduler::TimestampRoundRobin(slot) => Some(own + largest + slot),
            // Checconi, Rizzo and Valente 2013, from memory: with σ_i the power of two above L_max/ρ, at most 3·σ_i + 2·L_max/r
            // behind a fluid link. Between powers of two of 2^-20 ps.
            Scheduler::QuickFair(packet) => {
                let ticks = 8.0 * packet / self.flows[flow].rate * 1e12 * libm::exp2(20.0);
                let group = libm::exp2(libm::ceil(libm::log2(ticks))) / libm::exp2(20.0) / 1e12;
                Some(own + 3.0 * group + 2.0 * largest)
            }
        }
    }

    /// How much later than at its own rate alone a packet may depart, seconds: Θ - L/ρ.
    pub fn lateness(&self, scheduler: Scheduler<'_>, flow: usize) -> Option<f64> {
        Some(self.latency(scheduler, flow)? - self.at_rate(flow))
    }

    /// Row DRR, corrected: the printed (3F - 2φ_i)/r holds only where every quantum is at least the largest packet, and φ is the
    /// quantum of a flow, not its packet. In general [(F - φ_i)(1 + L_i/φ_i) + Σ L_j]/r, which is the same for φ = L and equal flows
    /// (Lenzini, Mingozzi and Stea 2004).
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

    /// How far what two flows got may differ while both have packets queued, each in time at its own rate, seconds. `None` when there
    /// is no bound, or none is known.
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
            // Row DRR: 3F/r where every quantum covers the largest packet; exactly 1 + L_i/φ_i + L_j/φ_j rounds. A round is φ/ρ at the
            // flows' rates: F/r where all of the link is reserved.
            Scheduler::Drr(quanta) => {
                let rounds =
                    1.0 + self.flows[one].packet / quanta[one] + self.flows[other].packet / quanta[other];
                let round = |flow: usize| 8.0 * quanta[flow] / self.flows[flow].rate;
                let proportional = (round(one) / round(other) - 1.0).abs() < 1e-9;
                proportional.then(|| rounds * round(one))
            }
            // No published form is known. That of SCFQ does not hold; at most twice the largest L/ρ was observed.
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

    /// max(C_j + L_max/ρ_i + L_j/ρ_j, C_i + L_max/ρ_j + L_i/ρ_i), with C_i = min((N - 1)·L_max/ρ_i, max_n L_n/ρ_n).
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

    /// A link of 8 Mbit/s, a byte a microsecond, with rates of 4, 2, 1 and 1 Mbit/s and packets of 1,000 bytes.
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
        // 4 ms are 4.19e15 ticks, just above 2^51 of them, which are 2.147 ms: the group is that of 2^52, 4.294967296 ms.
        assert_eq!(ms(server.latency(Scheduler::QuickFair(1000.0), 1)), 18.884902);
        assert_eq!(server.latency(Scheduler::Fifo, 1), None);
    }

    /// With φ = L and N flows both forms of the bound for deficit round robin are (3N - 2)·L/r; with unequal quanta they differ.
    #[test]
    fn the_two_forms_for_deficits_agree_where_they_should() {
        let server = server();
        let equal = [1000.0; 4];
        assert_eq!(ms(server.latency(Scheduler::Drr(&equal), 0)), 10.0);
        assert_eq!(ms(Some(server.drr_as_printed(&equal, 0))), 10.0);
        let quanta = [4000.0, 2000.0, 1000.0, 1000.0];
        // (8 - 4)·(1 + 1/4) + 4 = 9, and 24 - 8 = 16.
        assert_eq!(ms(server.latency(Scheduler::Drr(&quanta), 0)), 9.0);
        assert_eq!(ms(Some(server.drr_as_printed(&quanta, 0))), 16.0);
        // 1 + 1/4 + 1/2 rounds of 8 ms. What has quanta in another proportion than rates is not fair to them.
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
        // Three of the largest, and one on the wire.
        assert_eq!(ms(server.latency(Scheduler::Scfq, 1)), 10.0);
    }

    #[test]
    fn what_does_not_fit_has_no_bound() {
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
