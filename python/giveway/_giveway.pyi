# Types of the module in Rust (crates/python). `stubtest` compares them with it.

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, final

__all__ = [
    "VERSION",
    "Context",
    "Frame",
    "Packet",
    "Paper",
    "Request",
    "Results",
    "Scenario",
    "Simulation",
    "Wait",
    "answer",
    "compare",
    "definition",
    "looks",
    "main",
    "open",
    "reproduce",
    "run",
    "shipped",
    "theory",
    "to_toml",
    "to_toml_value",
]

VERSION: str
theory: ModuleType

_Interruption = BaseException | None

@final
class Scenario:
    @staticmethod
    def load(path: str, changes: Sequence[str]) -> Scenario: ...
    @staticmethod
    def parse(text: str, folder: str, name: str, changes: Sequence[str]) -> Scenario: ...
    def changed(self, changes: Sequence[str]) -> Scenario: ...
    def with_seeds(self, count: int) -> Scenario: ...
    def with_seed_list(self, seeds: Sequence[int]) -> Scenario: ...
    def bounds(self, burst: str | None) -> str: ...
    def short(self) -> Scenario: ...
    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def backend(self) -> str: ...
    @property
    def seeds(self) -> list[int]: ...
    @property
    def duration(self) -> float: ...
    @property
    def warmup(self) -> float: ...
    @property
    def text(self) -> str: ...
    @property
    def disciplines(self) -> list[str]: ...
    @property
    def links(self) -> list[tuple[str, int, bool, bool]]: ...
    @property
    def warnings(self) -> list[str]: ...

@final
class Frame:
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __len__(self) -> int: ...
    @property
    def columns(self) -> list[tuple[str, str, str]]: ...
    def values(self, name: str, most: int | None = None) -> list[Any]: ...

@final
class Results:
    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def scenario(self) -> str: ...
    @property
    def folder(self) -> str | None: ...
    @property
    def disciplines(self) -> list[str]: ...
    @property
    def ports(self) -> list[str]: ...
    @property
    def runs(self) -> list[tuple[str, int]]: ...
    @property
    def planned(self) -> int: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def events(self) -> int: ...
    @property
    def findings(self) -> list[str]: ...
    @property
    def recommendation(self) -> str | None: ...
    def text(self, width: int) -> str: ...
    def groups(self) -> str: ...
    def json(self) -> str: ...
    @staticmethod
    def tables() -> list[str]: ...
    def table(self, name: str) -> Frame: ...
    def report(self) -> str: ...
    def save(self, dir: str, force: bool) -> None: ...

@final
class Packet:
    """A packet in the queue of a discipline in Python. Send it by returning it from ``dequeue``, once."""
    @property
    def bytes(self) -> int:
        """IP length, bytes."""
    @property
    def flow(self) -> int:
        """Key of the flow: a hash of addresses, ports and protocol. The two directions of a connection are two
        flows."""
    @property
    def number(self) -> int:
        """Number among the packets of the queue, from 0."""
    @property
    def arrived(self) -> float:
        """Time of arrival, seconds."""
    @property
    def arrived_ps(self) -> int:
        """Time of arrival, picoseconds."""
    @property
    def traffic_class(self) -> int:
        """Traffic class; 0 is the most urgent."""
    @property
    def dscp(self) -> int:
        """DSCP."""
    @property
    def ecn(self) -> str:
        """ECN field at the arrival: ``"not-ect"``, ``"ect0"``, ``"ect1"`` or ``"ce"``."""
    @property
    def source(self) -> int:
        """Number of the source host."""
    @property
    def destination(self) -> int:
        """Number of the destination host."""
    @property
    def offset(self) -> int:
        """Bytes that the flow sent before this packet."""
    @property
    def remaining(self) -> int:
        """Bytes that the flow has still to send, this packet included; 0 if unknown."""
    @property
    def reserved(self) -> int:
        """Reserved rate of the flow, bit/s; 0 for none."""

@final
class Request:
    """A request at a switch: an input that has cells for an output, both of which are free."""
    @property
    def input(self) -> int:
        """Number of the input."""
    @property
    def output(self) -> int:
        """Number of the output."""
    @property
    def cells(self) -> int:
        """Number of cells in the queue."""
    @property
    def age(self) -> int:
        """Slots since the packet at the head of the queue arrived."""

@final
class Wait:
    """The answer of ``dequeue`` that no packet may leave before a time."""
    @property
    def until(self) -> float:
        """The time, seconds."""

@final
class Context:
    """The time of a call of a discipline in Python, and its drops and marks."""
    @property
    def now(self) -> float:
        """The time of this call, seconds. It never goes back."""
    @property
    def now_ps(self) -> int:
        """The time of this call, picoseconds."""
    def drop(self, packet: Packet, reason: str = "overlimit") -> None:
        """Drops a packet of the queue. ``reason`` is one of the names of the drop columns of the table ``links``."""
    def mark(self, packet: Packet) -> bool:
        """Marks a packet instead of dropping it (ECN). False if its transport does not support ECN."""
    def wait(self, seconds: float) -> Wait:
        """The answer that no packet may leave for this time from now."""
    def wait_until(self, time: float) -> Wait:
        """The answer that no packet may leave before this time, seconds."""

@final
class Simulation:
    def __new__(cls, scenario: Scenario, own: Any | None, seed: int, series: bool) -> Simulation: ...
    def step(self, until: int) -> None: ...
    @property
    def times(self) -> tuple[int, int]: ...
    @property
    def events(self) -> int: ...
    @property
    def ports(self) -> list[str]: ...
    def port(self, name: str) -> int: ...
    def counters(self, port: int) -> tuple[list[int], int, int]: ...
    def since(self, port: int) -> tuple[int, int, float, float, int]: ...
    def gauges(self, port: int) -> dict[str, float]: ...
    def queue(self, port: int) -> list[Packet] | None: ...
    def watch(self, port: int) -> None: ...
    def change(self, port: int, spec: str) -> None: ...
    def change_to_own(self, port: int, own: Any) -> None: ...
    def set_rate(self, port: int, rate: str) -> None: ...
    def set_delay(self, port: int, delay: str) -> None: ...
    def set_loss(self, port: int, loss: float) -> None: ...
    def finish(self, provenance: tuple[str, str]) -> Results: ...

@final
class Later:
    def result(self) -> Any: ...

@final
class Paper:
    def json(self) -> str: ...
    def html(self) -> str: ...
    def figures(self) -> list[str]: ...
    def figure(self, number: str) -> str | None: ...
    @property
    def runs(self) -> tuple[int, int]: ...

def run(
    scenario: Scenario | None,
    base: Scenario | None,
    own: Sequence[Any],
    parallel: tuple[int, int],
    progress: Callable[[float], None] | None,
    place: tuple[str | None, bool],
    provenance: tuple[str, str],
) -> tuple[Results | None, list[str], _Interruption, Later | None]: ...
def open(dir: str) -> Results: ...
def looks(specs: Sequence[str]) -> list[tuple[str, str, list[int]]]: ...
def definition(metric: str) -> tuple[str, str] | None: ...
def compare(
    asked: Any, progress: Callable[[float], None] | None, provenance: tuple[str, str]
) -> tuple[tuple[str, list[str]] | None, list[str], _Interruption, Later | None]: ...
def reproduce(
    name: str,
    scope: tuple[bool, str | None, int | None],
    jobs: int,
    kept: str,
    progress: Callable[[float], None] | None,
) -> tuple[Paper, list[str], _Interruption]: ...
def shipped() -> str: ...
def to_toml(json: str) -> str: ...
def to_toml_value(json: str) -> str: ...
def main(arguments: Sequence[str], program: str) -> int: ...
def answer(arguments: Sequence[str]) -> str: ...
