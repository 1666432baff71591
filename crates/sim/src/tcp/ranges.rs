//! A list of ranges of sequence numbers that is empty except after a loss.

/// Ranges of sequence numbers, without their last one. A connection has four of these lists, and most
/// connections never lose a segment, so that an empty list takes no more than a pointer.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    #[expect(clippy::box_collection, reason = "a pointer takes 16 bytes less than an empty list")]
    list: Option<Box<Vec<(u64, u64)>>>,
}

impl Ranges {
    /// The ranges.
    #[inline]
    pub fn list(&self) -> &[(u64, u64)] {
        self.list.as_ref().map_or(&[], |list| list)
    }

    /// True if there is no range.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list().is_empty()
    }

    /// The ranges, to change them.
    pub fn list_mut(&mut self) -> &mut Vec<(u64, u64)> {
        self.list.get_or_insert_default()
    }

    /// Heap memory, bytes.
    pub fn heap_bytes(&self) -> usize {
        let bytes = |list: &Vec<(u64, u64)>| size_of_val(list) + list.capacity() * size_of::<(u64, u64)>();
        self.list.as_ref().map_or(0, |list| bytes(list))
    }
}
