"""Tables of results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

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

    def __getitem__(self, column: str) -> list[Value]:
        """The values of a column. For many rows, a library of data frames is faster."""
        if not isinstance(column, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f'a table is indexed by the name of a column, as in table["qdisc"], not by {column!r}')
        try:
            return self._frame.values(column)
        except KeyError:
            known = ", ".join(each.name for each in self.columns)
            raise KeyError(f"the table {self.name} has no column {column!r}; it has {known}") from None

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


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)
