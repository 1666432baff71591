//! Judgements, in one program.

mod cheats;
mod hidden;
mod honest;
mod process;
mod programs;
