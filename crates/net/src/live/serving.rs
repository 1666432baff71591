//! Threads that serve the control socket and the metrics address.

use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::sync::Arc;

use giveway_control::ControlApi;
use giveway_control::server::{Control, Listener, Metrics, Service, exposure, serve};
use giveway_live::privilege::{self, Role};
use giveway_program::show;
use giveway_text::chain;

use super::error::BridgeError;

/// Listens for HTTP requests for metrics. Prints a warning if other machines can reach the address.
///
/// # Errors
/// The error of the system, with the flag.
pub fn listen(at: SocketAddr) -> Result<TcpListener, BridgeError> {
    let listener = TcpListener::bind(at).map_err(BridgeError::address("--metrics", at))?;
    if let Some(warning) = exposure(at) {
        show::warning(&warning);
    }
    Ok(listener)
}

/// Serves clients of both sockets, each in a thread, until the process ends. A failure is printed.
pub fn start<A: ControlApi>(control: Option<UnixListener>, metrics: Option<TcpListener>, api: &Arc<A>) {
    if let Some(listener) = control {
        answer("gw-control", listener, Control(Arc::clone(api)));
    }
    if let Some(listener) = metrics {
        answer("gw-metrics", listener, Metrics(Arc::clone(api)));
    }
}

fn answer<L, V>(name: &'static str, listener: L, mut service: V)
where
    L: Listener + Send + 'static,
    V: Service + Send + 'static,
{
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        if let Err(error) = privilege::settle(Role::Serve) {
            show::message(&format!("{name}: not all privileges could be dropped: {}", chain(&error)));
        }
        if let Err(error) = serve(&listener, &mut service) {
            show::message(&format!("{name}: clients are not served any more: {error}"));
        }
    });
    if let Err(error) = thread {
        show::message(&format!("{name}: clients are not served: {error}"));
    }
}
