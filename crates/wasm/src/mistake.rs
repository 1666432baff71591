//! The mistakes of a module, when it is read and when it runs.

use giveway_qdisc::Time;

/// A module that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModuleError {
    /// The bytes are no valid module.
    #[error("it is not a WebAssembly module: {0}")]
    Invalid(String),
    /// The module calls a function that is not offered.
    #[error("it imports {module}.{name}, which is not offered; it may import only giveway.{}", offered.join(", "))]
    Import {
        /// The module of the import.
        module: String,
        /// The name of the import.
        name: String,
        /// The functions that are offered.
        offered: Vec<&'static str>,
    },
    /// An import or an export has other parameters or another result.
    #[error("{name} has another type than {expected}")]
    Type {
        /// The name of the function.
        name: String,
        /// Its type as the contract says.
        expected: &'static str,
    },
    /// A function is missing.
    #[error("it exports no function {name}: a discipline needs enqueue(i64) and dequeue() -> i64")]
    Missing {
        /// The name of the function.
        name: &'static str,
    },
    /// Its memory is too large from the beginning.
    #[error("it needs more memory than {most} bytes")]
    Memory {
        /// The maximum memory in bytes.
        most: u64,
    },
}

/// A mistake of a module in a run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mistake {
    /// It used more fuel than it had.
    #[error("{call} at {} s used all its fuel: a call has {fuel}, and up to {most} if earlier calls left it", at.as_s())]
    Fuel {
        /// The function.
        call: &'static str,
        /// The fuel that a call earns.
        fuel: u64,
        /// The maximum amount of fuel that one call may use.
        most: u64,
        /// The time of the call.
        at: Time,
    },
    /// It asked for more memory than it may have.
    #[error("{call} at {} s wants more than {most} bytes of memory", at.as_s())]
    Memory {
        /// The function.
        call: &'static str,
        /// The maximum memory in bytes.
        most: u64,
        /// The time of the call.
        at: Time,
    },
    /// It stopped with an error: an unreachable instruction, a division by zero, an address out of bounds.
    #[error("{call} at {} s stopped: {why}", at.as_s())]
    Trapped {
        /// The function.
        call: &'static str,
        /// The reason.
        why: String,
        /// The time of the call.
        at: Time,
    },
    /// It broke the contract of a discipline.
    #[error("{call} at {} s {what}", at.as_s())]
    Broken {
        /// The function.
        call: &'static str,
        /// The breach, as the end of a sentence.
        what: String,
        /// The time of the call.
        at: Time,
    },
}
