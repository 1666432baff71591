//! Judgements, in one program.

mod cheats;
mod honest;
mod programs;
