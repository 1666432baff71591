//! The path of frames through the qdiscs of both directions: between two interfaces, or through one of a
//! router.

use crate::KernelError;
use crate::ingress::Ingress;
use crate::redirect::{self, Joined};

/// The path of frames.
#[derive(Debug)]
pub enum Route {
    /// Between two interfaces: `forward` from the first to the second.
    Between([String; 2]),
    /// Through one interface of a router: `forward` to the link, `reverse` from it.
    Through {
        /// The interface.
        device: String,
        /// The queue of its received frames.
        ingress: Ingress,
    },
}

/// A path in use.
#[derive(Debug)]
pub enum Begun<'a> {
    /// Between two interfaces.
    Between(Joined),
    /// Through one interface.
    Through(&'a Ingress),
}

impl Begun<'_> {
    /// Lets frames take the usual path. The qdiscs still have a backlog.
    ///
    /// # Errors
    /// The first step that failed. The other steps were tried as well.
    pub fn end(&self) -> Result<(), KernelError> {
        match self {
            Begun::Between(joined) => redirect::part(joined),
            Begun::Through(ingress) => ingress.end(),
        }
    }
}

impl Route {
    /// The path between two interfaces.
    pub fn between(devices: [&str; 2]) -> Route {
        Route::Between(devices.map(str::to_owned))
    }

    /// The path through one interface, whose received frames get a virtual interface as their queue.
    ///
    /// # Errors
    /// If the virtual interface cannot be created.
    pub fn through(device: &str) -> Result<Route, KernelError> {
        Ok(Route::Through { device: device.to_owned(), ingress: Ingress::create(device)? })
    }

    /// The interfaces at whose roots the qdiscs are, of `forward` and of `reverse`.
    pub fn queues(&self) -> [&str; 2] {
        match self {
            Route::Between([first, second]) => [second, first],
            Route::Through { device, ingress } => [device, &ingress.queue],
        }
    }

    /// Lets frames take this path.
    ///
    /// # Errors
    /// If an interface has other filters, or the kernel lacks such filters. Then no change is made.
    pub fn begin(&self) -> Result<Begun<'_>, KernelError> {
        match self {
            Route::Between([first, second]) => redirect::join([first, second]).map(Begun::Between),
            Route::Through { ingress, .. } => ingress.begin().map(|()| Begun::Through(ingress)),
        }
    }

    /// Removes what this path created, after its qdiscs.
    ///
    /// # Errors
    /// The step that failed.
    pub fn remove(&self) -> Result<(), KernelError> {
        match self {
            Route::Between(_) => Ok(()),
            Route::Through { ingress, .. } => ingress.remove(),
        }
    }
}
