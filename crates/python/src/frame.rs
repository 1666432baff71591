//! Tables for libraries of data frames: the Arrow PyCapsule interface
//! (<https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>).

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{Array, RecordBatchIterator};
use arrow_schema::DataType;
use giveway_record::frames;
use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};

/// A table.
#[pyclass(frozen, module = "giveway._giveway")]
pub struct Frame {
    frame: Arc<frames::Frame>,
}

impl Frame {
    pub fn new(frame: frames::Frame) -> Frame {
        Frame { frame: Arc::new(frame) }
    }
}

#[pymethods]
impl Frame {
    /// A stream of the batches. The consumer shares their memory. Another schema is not offered, which the
    /// interface allows.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches: Vec<_> = self.frame.batches.iter().cloned().map(Ok).collect();
        let reader = RecordBatchIterator::new(batches, Arc::clone(&self.frame.schema));
        // The capsule frees the stream unless the consumer has taken it.
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __len__(&self) -> usize {
        self.frame.rows()
    }

    /// The columns: name, unit (empty without one), description.
    #[getter]
    fn columns(&self) -> Vec<(String, String, String)> {
        let one = |field: &Arc<arrow_schema::Field>| {
            let about = |key: &str| field.metadata().get(key).cloned().unwrap_or_default();
            (field.name().clone(), about("unit"), about("description"))
        };
        self.frame.schema.fields().iter().map(one).collect()
    }

    /// The values of a column: a list of numbers, texts or truth values, with None for nulls. `most` limits
    /// its length.
    #[pyo3(signature = (name, most = None))]
    fn values<'py>(&self, py: Python<'py>, name: &str, most: Option<usize>) -> PyResult<Bound<'py, PyList>> {
        let column = self.frame.schema.index_of(name).map_err(|_| PyKeyError::new_err(name.to_owned()))?;
        let values = PyList::empty(py);
        let most = most.unwrap_or(usize::MAX);
        for batch in &self.frame.batches {
            let array = batch.column(column);
            let rows = array.len().min(most.saturating_sub(values.len()));
            for row in 0..rows {
                if array.is_null(row) {
                    values.append(py.None())?;
                    continue;
                }
                match array.data_type() {
                    DataType::Utf8View => values.append(array.as_string_view().value(row))?,
                    DataType::Float64 => values.append(array.as_primitive::<Float64Type>().value(row))?,
                    DataType::UInt64 => values.append(array.as_primitive::<UInt64Type>().value(row))?,
                    DataType::Boolean => values.append(array.as_boolean().value(row))?,
                    other => {
                        return Err(PyTypeError::new_err(format!("the column {name} has the type {other}")));
                    }
                }
            }
        }
        Ok(values)
    }
}
