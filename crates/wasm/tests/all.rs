//! Modules, in one program.

mod modules;
