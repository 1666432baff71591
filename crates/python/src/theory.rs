//! Closed forms of the crate `theory`. Their equations and sources are in the documentation of the crate and
//! of the package.

/// The submodule of closed forms.
#[pyo3::pymodule]
pub mod theory {
    use giveway_theory::{fairness, queues, tcp};
    use pyo3::prelude::*;

    #[pyfunction]
    fn jain(shares: Vec<f64>) -> Option<f64> {
        fairness::jain(&shares)
    }
    #[pyfunction]
    fn fair_share(rates: Vec<f64>, capacity: f64) -> Option<f64> {
        fairness::fair_share(&rates, capacity)
    }
    #[pyfunction]
    fn mg1_waiting(arrivals_per_s: f64, service_s: f64, service_second_moment: f64) -> Option<f64> {
        queues::mg1_waiting(arrivals_per_s, service_s, service_second_moment)
    }
    #[pyfunction]
    fn mg1_fifo_response(arrivals_per_s: f64, service_s: f64, service_second_moment: f64) -> Option<f64> {
        queues::mg1_fifo_response(arrivals_per_s, service_s, service_second_moment)
    }
    #[pyfunction]
    fn mg1_processor_sharing_response(arrivals_per_s: f64, service_s: f64, size_s: f64) -> Option<f64> {
        queues::mg1_processor_sharing_response(arrivals_per_s, service_s, size_s)
    }
    #[pyfunction]
    fn mm1_waiting(arrivals_per_s: f64, services_per_s: f64) -> Option<f64> {
        queues::mm1_waiting(arrivals_per_s, services_per_s)
    }
    #[pyfunction]
    fn mm1_response(arrivals_per_s: f64, services_per_s: f64) -> Option<f64> {
        queues::mm1_response(arrivals_per_s, services_per_s)
    }
    #[pyfunction]
    fn mm1_number(arrivals_per_s: f64, services_per_s: f64) -> Option<f64> {
        queues::mm1_number(arrivals_per_s, services_per_s)
    }
    #[pyfunction]
    fn mm1_waiting_quantile(arrivals_per_s: f64, services_per_s: f64, quantile: f64) -> Option<f64> {
        queues::mm1_waiting_quantile(arrivals_per_s, services_per_s, quantile)
    }
    #[pyfunction]
    fn md1_waiting(arrivals_per_s: f64, service_s: f64) -> Option<f64> {
        queues::md1_waiting(arrivals_per_s, service_s)
    }
    #[pyfunction]
    fn mm1k_loss(load: f64, places: u32) -> f64 {
        queues::mm1k_loss(load, places)
    }
    #[pyfunction]
    fn mm1k_number(load: f64, places: u32) -> f64 {
        queues::mm1k_number(load, places)
    }
    #[pyfunction]
    fn square_root_law(loss: f64, rtt_s: f64, packets_per_ack: f64) -> f64 {
        tcp::square_root_law(loss, rtt_s, packets_per_ack)
    }
    #[pyfunction]
    fn pftk(loss: f64, rtt_s: f64, rto_s: f64, packets_per_ack: f64, max_window: f64) -> f64 {
        tcp::pftk(loss, &tcp::Path { rtt_s, rto_s, packets_per_ack, max_window })
    }
    #[pyfunction]
    fn cubic_mean_window(loss: f64, rtt_s: f64, c: f64, decrease_to: f64) -> f64 {
        tcp::cubic_mean_window(loss, rtt_s, c, decrease_to)
    }
    #[pyfunction]
    fn reno_mean_window(loss: f64) -> f64 {
        tcp::reno_mean_window(loss)
    }
}
