//! A scenario on a test bed: a network that one machine can emulate, with the keys of a simulated one.
//!
//! A test bed has hosts on two sides and one link between them, with a queue at either end. Of all other
//! links it emulates only the delays: a path over the bottleneck takes as long as the sum of its links. No
//! other link has a queue, so each must be several times faster than the bottleneck. Other networks are
//! refused.
//!
//! A compared discipline can be one of the kernel: `kernel:fq_codel`, `kernel:htb+bfifo limit 100k`. The
//! arguments follow `tc`, and only the kernel can check them. `bpf:efd limit 300p` is a discipline of Giveway
//! in the kernel; its parameters are checked here.

mod contender;
mod limits;
mod model;
mod read;
mod setting;

pub use self::contender::{BpfQueue, Contender, KernelQueue};
pub use self::model::{Direction, Live};
pub(crate) use self::read::read;
pub use self::setting::{LinkKeyError, link_key};
