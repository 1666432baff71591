//! Gives the frames that one interface receives a queue, for the WAN port of a router.
//!
//! - The kernel has queues for frames to be sent only. So a virtual interface (ifb) stands behind the ingress
//!   of the interface: it "sends" a frame to the network stack, as if the interface had received it then.
//! - The `tc` filter that leads the frames there comes from [`crate::redirect`].

use std::path::Path;

use crate::KernelError;
use crate::redirect;
use crate::tools::IP;

/// The queue of received frames of an interface.
#[derive(Debug)]
pub struct Ingress {
    device: String,
    /// The virtual interface, at whose root the qdisc is.
    pub queue: String,
}

impl Ingress {
    /// Creates the virtual interface, or takes the one that a killed process has left.
    ///
    /// # Errors
    /// If the interface has other filters, or the kernel has no such virtual interfaces.
    pub fn create(device: &str) -> Result<Ingress, KernelError> {
        redirect::clear(device)?;
        let number = std::fs::read_to_string(Path::new("/sys/class/net").join(device).join("ifindex"));
        let number =
            number.map_err(|_| KernelError::precondition(format!("there is no interface {device}")))?;
        let queue = format!("gw{}-ifb", number.trim());
        if IP.run(&["link", "show", "dev", &queue]).is_err() {
            IP.run(&["link", "add", &queue, "type", "ifb"]).map_err(|error| match error {
                KernelError::Failed { command, output } => KernelError::Precondition(format!(
                    "the kernel cannot queue received frames, which needs the module ifb: {command}: {output}"
                )),
                other => other,
            })?;
        }
        let ingress = Ingress { device: device.to_owned(), queue };

        IP.run(&["link", "set", "dev", &ingress.queue, "up"])?;
        Ok(ingress)
    }

    /// Leads received frames into the queue.
    ///
    /// # Errors
    /// If the kernel lacks the filters.
    pub fn begin(&self) -> Result<(), KernelError> {
        redirect::lead(&self.device, &self.queue)
    }

    /// Lets received frames pass the queue by.
    ///
    /// # Errors
    /// If `tc` fails.
    pub fn end(&self) -> Result<(), KernelError> {
        redirect::end(&self.device)
    }

    /// Removes the virtual interface.
    ///
    /// # Errors
    /// If `ip` fails.
    pub fn remove(&self) -> Result<(), KernelError> {
        IP.run(&["link", "del", "dev", &self.queue]).map(drop)
    }
}
