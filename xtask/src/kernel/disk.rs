//! Layout of the virtual disk to which the machine writes its journals.

/// Distance between the starts of two journals, in bytes.
pub const SLOT: u64 = 1 << 24;
/// Length of an entry of a journal, in bytes.
pub const ENTRY: u64 = 40;
/// Largest number of entries of a journal.
pub const ENTRIES: u64 = SLOT / ENTRY;
