//! Threads that serve the control socket and the metrics address.

use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::sync::Arc;

use giveway_control::ControlApi;
use giveway_control::server::{Control, Listener, Metrics, Service, exposure, serve};
use giveway_live::privilege::{self, Role};

use crate::show;

/// Listens for requests of metrics. Prints a warning if other machines reach the address.
///
/// # Errors
/// The error of the system, with the flag.
pub fn listen(at: SocketAddr) -> Result<TcpListener, String> {
    let listener = TcpListener::bind(at).map_err(|error| format!("--metrics {at}: {error}"))?;
    if let Some(warning) = exposure(at) {
        show::sentence(&warning);
    }
    Ok(listener)
}

/// Serves both sockets until the process ends.
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
        if let Err(why) = privilege::settle(Role::Serve) {
            show::sentence(&format!("{name}: not all privileges could be dropped: {why}"));
        }
        if let Err(error) = serve(&listener, &mut service) {
            show::sentence(&format!("{name}: clients are not served any more: {error}"));
        }
    });
    if let Err(error) = thread {
        show::sentence(&format!("{name}: clients are not served: {error}"));
    }
}
