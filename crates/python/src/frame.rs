//! Tables for libraries of data frames: the Arrow PyCapsule interface
//! (<https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>).

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{Array, RecordBatch, RecordBatchIterator};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType};
use arrow_select::interleave::interleave_record_batch;
use giveway_record::frames;
use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyList};

/// A table.
#[pyclass(frozen, module = "giveway._giveway")]
pub struct Frame {
    frame: Arc<frames::Frame>,
}

impl Frame {
    pub fn new(frame: frames::Frame) -> Frame {
        Frame { frame: Arc::new(frame) }
    }

    /// The table with other rows.
    fn with(&self, batches: Vec<RecordBatch>) -> Frame {
        Frame::new(frames::Frame { schema: Arc::clone(&self.frame.schema), batches })
    }

    /// A stretch of rows, which shares their memory.
    fn stretch(&self, mut start: usize, mut length: usize) -> Frame {
        let mut batches = Vec::new();
        for batch in &self.frame.batches {
            let rows = batch.num_rows();
            if length > 0 && start < rows {
                let taken = length.min(rows - start);
                batches.push(batch.slice(start, taken));
                length -= taken;
            }
            start = start.saturating_sub(rows);
        }
        self.with(batches)
    }
}

fn wrong(error: ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
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

    /// Rows from `start` on, `count` of them, at a distance of `step`. All of them exist.
    fn rows(&self, start: usize, count: usize, step: isize) -> PyResult<Frame> {
        if step == 1 || count == 0 {
            return Ok(self.stretch(start, count));
        }
        let ends = self.frame.batches.iter().scan(0, |end, batch| {
            *end += batch.num_rows();
            Some(*end)
        });
        let ends: Vec<usize> = ends.collect();
        let place = |number: usize| {
            let row = start.wrapping_add_signed(step.wrapping_mul(number as isize));
            let batch = ends.partition_point(|end| *end <= row);
            (batch, row - batch.checked_sub(1).map_or(0, |before| ends[before]))
        };
        let places: Vec<(usize, usize)> = (0..count).map(place).collect();
        let batches: Vec<&RecordBatch> = self.frame.batches.iter().collect();
        Ok(self.with(vec![interleave_record_batch(&batches, &places).map_err(wrong)?]))
    }

    /// The table as a stream of Arrow's IPC format.
    fn packed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut writer = StreamWriter::try_new(Vec::new(), &self.frame.schema).map_err(wrong)?;
        for batch in &self.frame.batches {
            writer.write(batch).map_err(wrong)?;
        }
        Ok(PyBytes::new(py, &writer.into_inner().map_err(wrong)?))
    }

    /// The table of such a stream.
    #[staticmethod]
    fn unpacked(bytes: &[u8]) -> PyResult<Frame> {
        let reader = StreamReader::try_new(bytes, None).map_err(wrong)?;
        let schema = reader.schema();
        let batches = reader.collect::<Result<Vec<_>, _>>().map_err(wrong)?;
        Ok(Frame::new(frames::Frame { schema, batches }))
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
