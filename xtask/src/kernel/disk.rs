//! The layout of the disk through which journals leave the virtual machine.

/// Bytes between the beginnings of two journals.
pub const SLOT: u64 = 1 << 24;
/// Bytes of an entry of a journal.
pub const ENTRY: u64 = 40;
/// The most entries of a journal.
pub const ENTRIES: u64 = SLOT / ENTRY;
