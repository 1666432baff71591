"""Scenarios: from a file, a text, a dict, or a :class:`Network`."""

from __future__ import annotations

import json
import math
import os
import sys
import tomllib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Protocol, TypeAlias, cast, runtime_checkable

from . import _giveway
from ._errors import GivewayWarning
from ._numbers import plain, whole_number


@runtime_checkable
class HasDict(Protocol):
    """An object that stands for a scenario, such as :class:`Network`."""

    def to_dict(self) -> dict[str, Any]:
        """The keys of the scenario."""
        ...


@dataclass(frozen=True)
class Link:
    """One direction of a link of a scenario."""

    name: str
    """Its nodes, as in ``"home->isp"``."""
    rate: int
    """bit/s; the mean if it varies."""
    measured: bool
    """True if its packets are in the tables."""
    compared: bool
    """True if it has the discipline that the scenario compares."""


class Scenario:
    """A valid scenario.

    ``Scenario(source)`` takes the path of a TOML file, a dict with the same keys, a :class:`Network`, or another
    scenario::

        giveway.Scenario("scenarios/quickstart.toml")
        giveway.Scenario({"duration": "10 s", "disciplines": ["fifo"], "link": [...], "traffic": [...]})
        giveway.Scenario.from_toml(text)

    ``changes`` replaces single keys, as ``--set`` of the command line does: a key is a path, such as
    ``"link.0.rate"`` or ``"traffic.upload.flows"``. Names of files in a dict are relative to ``folder``. A mistake
    raises :class:`ScenarioError` with its line.
    """

    __slots__ = ("_later", "_read")

    _read: _giveway.Scenario
    _later: tuple[_Step, ...]
    """Seeds and short settings, which a change of another key must keep."""

    def __init__(
        self,
        source: Source,
        *,
        changes: Mapping[str, Any] | None = None,
        folder: str | os.PathLike[str] = ".",
    ) -> None:
        sets = assignments(changes)
        self._later = ()
        if isinstance(source, Scenario):
            read, self._later = source._read, source._later
            if sets:
                read = read.changed(sets)
                if "seeds" in checked(changes) and self._later:
                    self._later = (*self._later, read.seeds)
                for step in self._later:
                    read = _stepped(read, step)
        elif isinstance(source, Mapping):
            read = _giveway.Scenario.parse(to_toml(source), str(folder), "scenario", sets)
        elif isinstance(source, (str, os.PathLike)):
            if isinstance(source, str) and "\n" in source:
                raise ValueError("a scenario is the path of a file or a dict; Scenario.from_toml reads a text")
            read = _giveway.Scenario.load(os.fspath(source), sets)
        elif isinstance(source, HasDict):  # pyright: ignore[reportUnnecessaryIsInstance]
            read = _giveway.Scenario.parse(to_toml(source.to_dict()), str(folder), "scenario", sets)
        else:
            raise TypeError(f"a scenario is a path, a dict or a giveway.Network, not {type(source).__name__}")
        self._read = read

    @classmethod
    def from_toml(cls, text: str, *, name: str = "scenario", folder: str | os.PathLike[str] = ".") -> Scenario:
        """Reads the text of a scenario. Names of files in it are relative to ``folder``."""
        return cls._of(_giveway.Scenario.parse(text, str(folder), name, []))

    @classmethod
    def _of(cls, read: _giveway.Scenario) -> Scenario:
        made = cls.__new__(cls)
        made._read = read
        made._later = ()
        return made

    def _then(self, step: _Step) -> Scenario:
        made = Scenario._of(_stepped(self._read, step))
        made._later = (*self._later, step)
        return made

    @property
    def name(self) -> str:
        """Name of the file without its extension; ``"scenario"`` without a file."""
        return self._read.name

    @property
    def title(self) -> str:
        """The title, in one line."""
        return self._read.title

    @property
    def description(self) -> str:
        """The description."""
        return self._read.description

    @property
    def backend(self) -> str:
        """``"network"``, ``"switch"``, or ``"live"`` for a test bed."""
        return self._read.backend

    @property
    def disciplines(self) -> list[str]:
        """The compared disciplines or arbiters, without parameters that have their defaults."""
        return self._read.disciplines

    @property
    def seeds(self) -> list[int]:
        """The seeds. Each discipline runs once with each."""
        return self._read.seeds

    @property
    def duration(self) -> float:
        """The duration of a run, seconds."""
        return self._read.duration

    @property
    def warmup(self) -> float:
        """The first part of a run, which is not measured, seconds."""
        return self._read.warmup

    @property
    def links(self) -> list[Link]:
        """The links of a network, one for each direction. A switch has none."""
        return [Link(*link) for link in self._read.links]

    @property
    def warnings(self) -> list[str]:
        """Parts of the scenario that are valid, but probably not intended; each with its line."""
        return self._read.warnings

    def with_seeds(self, seeds: int | Sequence[int]) -> Scenario:
        """The scenario with seeds 1 to a number, or with a list of seeds."""
        count, listed = _seeds(seeds)
        return self._then(listed if count is None else count)

    def short(self) -> Scenario:
        """The scenario of a quick check: its ``[short]`` settings, by default at most 5 s and one seed.

        As on the command line, these settings win over later changes of the duration.
        """
        return self._then(None)

    def to_toml(self) -> str:
        """The text of the scenario, with all changes."""
        return self._read.text

    def to_dict(self) -> dict[str, Any]:
        """The keys of the scenario, with all changes."""
        return tomllib.loads(self._read.text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scenario) and (self.to_dict(), self.seeds) == (other.to_dict(), other.seeds)

    __hash__ = None  # type: ignore[assignment]

    def __copy__(self) -> Scenario:
        return self

    def __deepcopy__(self, memo: object) -> Scenario:
        # Nothing changes a scenario.
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpacked, (*self._read.packed(), self._later)

    def __str__(self) -> str:
        return _giveway.harmless(self.to_toml())

    def __repr__(self) -> str:
        return f"<giveway.Scenario {self.title or self.name!r}: {', '.join(self.disciplines)}; seeds {self.seeds}>"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.to_toml())}</pre>"


_Step: TypeAlias = "int | list[int] | None"
"""What was set after a scenario was read: the number of seeds, a list of them, or, as None, the short settings."""


def _stepped(read: _giveway.Scenario, step: _Step) -> _giveway.Scenario:
    if step is None:
        return read.short()
    return read.with_seeds(step) if isinstance(step, int) else read.with_seed_list(step)


def _unpacked(text: str, folder: str, name: str, later: Sequence[_Step]) -> Scenario:
    """The scenario of another process."""
    scenario = Scenario.from_toml(text, name=name, folder=folder)
    for step in later:
        scenario = scenario._then(step)
    return scenario


Source: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any] | Scenario | HasDict"
"""A scenario: the path of a TOML file, a dict with its keys, a :class:`Network`, or a :class:`Scenario`."""


def to_toml(keys: Mapping[str, Any]) -> str:
    """A dict as TOML. Keys with the value None are left out."""
    return _giveway.to_toml(json.dumps(_plain(keys)))


def _seeds(seeds: Any) -> tuple[int | None, list[int]]:
    """A number of seeds, or a list of seeds."""
    what = "a number of seeds or a list of whole numbers"
    # An array without dimensions is a number.
    seeds = plain(seeds)
    if hasattr(seeds, "__iter__") and not isinstance(seeds, (str, bytes)):
        return None, [whole_number("seeds", each, 0, 2**64 - 1, what) for each in seeds]
    count = whole_number("seeds", seeds, 0, 2**64 - 1, what)
    if not 1 <= count < 2**32:
        raise ValueError(f"seeds: {count} is not a number of seeds; give at least 1, or a list of seeds")
    return count, []


def assignments(changes: Mapping[str, Any] | None) -> list[str]:
    """Changes in the words of ``--set``."""
    given = checked(changes).items()
    return [f"{_key(key)}={_giveway.to_toml_value(json.dumps(_plain(value, key)))}" for key, value in given]


def checked(changes: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Changes that are a dict."""
    if changes is None:
        return {}
    if not isinstance(changes, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(
            f'changes is a dict from keys to values, as in {{"link.0.rate": "5mbit"}}, not {type(changes).__name__}'
        )
    return changes


def _key(key: Any) -> str:
    """A key of a change: a path without characters that would end it."""
    if not isinstance(key, str):
        raise TypeError(f'a key of changes is a text, as in "link.0.rate", not {type(key).__name__}: {key!r}')
    if "=" in key or not key.isprintable():
        raise ValueError(f'a key of changes is a path, as in "link.0.rate", not {key!r}')
    return key


def _plain(value: Any, place: str = "") -> Any:
    """A value with plain dicts, lists and numbers. ``place`` is its key, for messages."""
    at = f"{place}: " if place else ""
    if isinstance(value, Mapping):
        table = cast("Mapping[Any, Any]", value)
        return {
            _name(key, at): _plain(each, f"{place}.{key}" if place else str(key))
            for key, each in table.items()
            if each is not None
        }
    if isinstance(value, str):
        # One surrogate alone is not a character, and no file can hold it.
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise ValueError(f"{at}{value!r} is not a valid text")
        return str(value)
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise ValueError(f"{at}{value} is too large for a number of a scenario")
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{at}{value} is not a finite number")
        return float(value)
    # Numbers and arrays of numpy and similar packages.
    if hasattr(value, "tolist"):
        return _plain(plain(value), place)
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray, memoryview)):
        items = cast("Sequence[Any]", value)
        return [_plain(each, f"{place}.{number}") for number, each in enumerate(items)]
    raise TypeError(f"{at}a scenario has texts, numbers, lists and dicts, not {_described(cast('object', value))}")


def _described(value: object) -> str:
    return f"{type(value).__name__}: {value!r}"


def _name(key: Any, at: str) -> str:
    """A key of a dict."""
    if not isinstance(key, str):
        raise TypeError(f"{at}a key is a text, not {type(key).__name__}: {key!r}")
    return _plain(key)


def warn(messages: Sequence[str]) -> None:
    """Shows messages as warnings at the line outside this package that led here."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "giveway":
        frame, level = frame.f_back, level + 1
    for message in messages:
        # The caller asked for it.
        if message.startswith("--force: removing "):
            continue
        text = _giveway.harmless(message.removeprefix("warning: ").rstrip("\n"))
        warnings.warn(text, GivewayWarning, stacklevel=level)
