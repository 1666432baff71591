//! Whole cards, in one program.

mod cards;
mod known;
