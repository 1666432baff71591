"""Tables of results."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

from . import _giveway
from ._extras import need

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from ._giveway import Frame

Value = bool | int | float | str | None

_SHOWN_ROWS = 10
_SHOWN_COLUMNS = 12


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    unit: str
    """The unit of its values, such as ``"s"`` or ``"bit/s"``; empty for values that are not quantities."""
    description: str


class Table:
    """A table. Libraries of data frames take it over without a copy, by the Arrow C stream interface::

        polars.DataFrame(run.flows)
        pandas.DataFrame.from_arrow(run.flows)
        pyarrow.table(run.flows)
        flows = run.flows; duckdb.sql("select source, quantile_cont(fct_s, 0.95) from flows group by 1")

    Times are in seconds, sizes in bytes, rates in bit/s. A missing value is null. `columns` gives the unit and the
    description of each column.

    ``table["fct_s"]`` is a column, ``table[0]`` a row, and ``table[:10]`` a table of some rows, as in a list.
    """

    __slots__ = ("_frame", "name")

    def __init__(self, name: str, frame: Frame) -> None:
        self.name = name
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A PyCapsule with a stream of the rows. Memory is shared, not copied."""
        return self._frame.__arrow_c_stream__(requested_schema)

    @property
    def columns(self) -> list[Column]:
        """The columns, in order."""
        return [Column(*each) for each in self._frame.columns]

    def __len__(self) -> int:
        return len(self._frame)

    @overload
    def __getitem__(self, column: str) -> list[Value]: ...
    @overload
    def __getitem__(self, column: slice) -> Table: ...
    @overload
    def __getitem__(self, column: SupportsIndex) -> dict[str, Value]: ...
    def __getitem__(self, column: str | slice | SupportsIndex) -> list[Value] | Table | dict[str, Value]:
        """The values of a column by its name, a row by its number, or the table of a slice of rows. For many rows, a
        library of data frames is faster."""
        if isinstance(column, slice):
            rows = range(len(self))[column]
            return Table(self.name, self._frame.rows(rows.start if rows else 0, len(rows), rows.step))
        if not isinstance(column, str):
            if isinstance(column, bool) or not hasattr(column, "__index__"):
                raise TypeError(
                    f'a table is indexed by the name of a column, as in table["qdisc"], by the number of a row, or by '
                    f"a slice, not by {column!r}"
                )
            number = operator.index(column)
            if not -len(self) <= number < len(self):
                raise IndexError(f"the table {self.name} has no row {number}; it has {len(self)} rows")
            row = self._frame.rows(number % len(self), 1, 1)
            return {name: row.values(name)[0] for name, _, _ in row.columns}
        try:
            return self._frame.values(column)
        except KeyError:
            known = ", ".join(each.name for each in self.columns)
            raise KeyError(f"the table {self.name} has no column {column!r}; it has {known}") from None

    def head(self, rows: int = 5) -> Table:
        """The first rows; with a negative number, all but the last."""
        return self[:rows]

    def tail(self, rows: int = 5) -> Table:
        """The last rows; with a negative number, all but the first."""
        rows = operator.index(rows)
        return self[max(0, len(self) - rows) if rows >= 0 else -rows :]

    def __copy__(self) -> Table:
        return Table(self.name, self._frame)

    def __deepcopy__(self, memo: object) -> Table:
        # Nothing changes the rows.
        return Table(self.name, self._frame)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpacked, (self.name, self._frame.packed())

    def __iter__(self) -> Iterator[dict[str, Value]]:
        """The rows."""
        return self.rows()

    def rows(self) -> Iterator[dict[str, Value]]:
        """The rows, each as a dict from column to value. For many rows, a library of data frames is faster."""
        names = [column.name for column in self.columns]
        for values in zip(*(self[name] for name in names), strict=True):
            yield dict(zip(names, values, strict=True))

    def to_polars(self) -> polars.DataFrame:
        """The table as a data frame of polars."""
        return need("polars", "to_polars").DataFrame(self)

    def to_arrow(self) -> pyarrow.Table:  # pyright: ignore[reportUnknownParameterType, reportUnknownMemberType]
        """The table as a table of pyarrow."""
        return need("pyarrow", "to_arrow").table(self)

    def to_pandas(self) -> pandas.DataFrame:
        """The table as a data frame of pandas."""
        need("pandas", "to_pandas")
        arrow: Any = need("pyarrow", "to_pandas").table(self)
        return arrow.to_pandas()

    def __repr__(self) -> str:
        columns = ", ".join(column.name for column in self.columns)
        return f"<giveway.Table {self.name}: {len(self)} rows of {columns}>"

    def _repr_html_(self) -> str:
        columns = self.columns[:_SHOWN_COLUMNS]
        more = len(self.columns) - len(columns)
        heads = "".join(f'<th title="{escape(column.description)}">{escape(column.name)}</th>' for column in columns)
        shown = [self._frame.values(column.name, _SHOWN_ROWS) for column in columns]
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(_text(value))}</td>" for value in row) + "</tr>"
            for row in zip(*shown, strict=True)
        )
        rest = f", {more} more columns" if more > 0 else ""
        return (
            f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
            f"<p>{escape(self.name)}: {len(self):,} rows{rest}</p>"
        )


def _unpacked(name: str, packed: bytes) -> Table:
    """The table of another process."""
    return Table(name, _giveway.Frame.unpacked(packed))


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)
