//! A module that was checked.

use std::fmt;

use wasmi::errors::{ErrorKind, InstantiationError};
use wasmi::{CompilationMode, Config, EnforcedLimits, Engine, ExternType, Instance, Linker, Store, ValType};
use wasmparser::Validator;

use crate::host::{self, Host};
use crate::limits::Limits;
use crate::mistake::ModuleError;

/// A module that can run as a discipline. Any number of queues share it.
#[derive(Clone)]
pub struct Module {
    pub(crate) engine: Engine,
    pub(crate) module: wasmi::Module,
    pub(crate) linker: Linker<Host>,
    limits: Limits,
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl Module {
    /// Reads a module, and checks its imports and exports.
    ///
    /// # Errors
    /// If it is not a module, imports what is not offered, or lacks a function.
    pub fn read(bytes: &[u8], limits: Limits) -> Result<Module, ModuleError> {
        let mut config = Config::default();
        // A strict engine refuses modules that are made to be expensive before they run.
        config
            .consume_fuel(true)
            .compilation_mode(CompilationMode::Eager)
            .enforced_limits(EnforcedLimits::strict())
            .set_max_cached_stacks(2)
            .set_max_recursion_depth(256);
        let engine = Engine::new(&config);
        // The engine translates while it validates, and may panic on the way to the mistake (wasmi 2.0.0).
        Validator::new()
            .validate_all(bytes)
            .map_err(|error| ModuleError::Invalid(error.message().to_owned()))?;
        let module =
            wasmi::Module::new(&engine, bytes).map_err(|error| ModuleError::Invalid(first_line(&error)))?;
        let linker = host::linker(&engine);
        for import in module.imports() {
            if import.module() != host::MODULE || !host::OFFERED.contains(&import.name()) {
                return Err(ModuleError::Import {
                    module: import.module().to_owned(),
                    name: import.name().to_owned(),
                    offered: host::OFFERED.to_vec(),
                });
            }
        }
        for function in EXPORTS {
            let Some(export) = module.get_export(function.name) else {
                if function.needed {
                    return Err(ModuleError::Missing { name: function.name });
                }
                continue;
            };
            let fits = matches!(&export, ExternType::Func(found)
                if found.params() == function.parameters && found.results() == function.results);
            if !fits {
                return Err(ModuleError::Type { name: function.name.to_owned(), expected: function.written });
            }
        }
        let read = Module { engine, module, linker, limits };
        read.instance(Host::outside(limits))?;
        Ok(read)
    }

    /// An instance with its own memory.
    ///
    /// # Errors
    /// If an import has another type, or the module fails while it is set up.
    pub(crate) fn instance(&self, host: Host) -> Result<(Store<Host>, Instance), ModuleError> {
        let mut store = Store::new(&self.engine, host);
        store.limiter(|host| &mut host.limiter);
        store.set_fuel(self.limits.most_fuel()).expect("the engine counts fuel");
        let instance = self.linker.instantiate_and_start(&mut store, &self.module);
        match instance {
            Ok(instance) => Ok((store, instance)),
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::Instantiation(InstantiationError::FailedToInstantiateMemory(_))
                ) =>
            {
                Err(ModuleError::Memory { most: self.limits.memory.0 })
            }
            Err(error) => Err(ModuleError::Invalid(first_line(&error))),
        }
    }

    /// Its limits.
    pub fn limits(&self) -> Limits {
        self.limits
    }
}

/// The first line of an error. Errors of the reader continue with a dump of bytes.
fn first_line(error: &wasmi::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.split(" - expected").next().unwrap_or_default().to_owned()
}

/// A function that a module exports.
struct Export {
    name: &'static str,
    parameters: &'static [ValType],
    results: &'static [ValType],
    needed: bool,
    /// Its type in words.
    written: &'static str,
}

/// The functions of a discipline.
const EXPORTS: &[Export] = &[
    Export {
        name: "enqueue",
        parameters: &[ValType::I64],
        results: &[],
        needed: true,
        written: "enqueue(i64)",
    },
    Export {
        name: "dequeue",
        parameters: &[],
        results: &[ValType::I64],
        needed: true,
        written: "dequeue() -> i64",
    },
    Export { name: "start", parameters: &[], results: &[], needed: false, written: "start()" },
    Export {
        name: "rate_changed",
        parameters: &[ValType::I64],
        results: &[],
        needed: false,
        written: "rate_changed(i64)",
    },
];
