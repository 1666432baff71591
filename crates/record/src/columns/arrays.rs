//! Columns of Arrow from rows.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, StringArray, UInt64Array};

pub(crate) fn whole<T>(rows: &[T], value: impl Fn(&T) -> u64) -> ArrayRef {
    Arc::new(UInt64Array::from_iter_values(rows.iter().map(value)))
}

pub(super) fn maybe_whole<T>(rows: &[T], value: impl Fn(&T) -> Option<u64>) -> ArrayRef {
    Arc::new(UInt64Array::from_iter(rows.iter().map(value)))
}

pub(crate) fn real<T>(rows: &[T], value: impl Fn(&T) -> Option<f64>) -> ArrayRef {
    Arc::new(Float64Array::from_iter(rows.iter().map(value)))
}

/// A column of text. A value that is borrowed costs no copy of its own.
pub(crate) fn text<'a, T, S: AsRef<str>>(rows: &'a [T], value: impl Fn(&'a T) -> S) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(rows.iter().map(value)))
}
