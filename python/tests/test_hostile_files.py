"""Files of other programs with any content: a reader returns what they have, or says what is wrong."""

from __future__ import annotations

import bz2
import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import giveway
from giveway import flent, lists

#: Bytes that mean something in these files.
_WORDS = [
    b"1e999",
    b"Infinity",
    b"NaN",
    b"null",
    b"[",
    b"{",
    b'"',
    b"\xff",
    "²".encode(),
    b"\n",
    b" ",
    b"9" * 5000,
    b"-1",
]

_FLENT = json.dumps(
    {
        "version": 4,
        "x_values": [0.0, 0.2],
        "results": {"TCP download avg": [1.0, None], "Ping (ms) ICMP": [20.5, 21]},
        "metadata": {"TITLE": "home", "SERIES_META": {"Ping (ms) ICMP": {"UNITS": "ms"}}},
        "raw_values": {"Ping (ms) ICMP": [{"t": 1.5, "val": 20.5}]},
    }
).encode()


def _mutated(seed: bytes, count: int) -> list[bytes]:
    """Changes of a file, the same in each run."""
    draws = random.Random(1)
    found: list[bytes] = []
    for _ in range(count):
        content = bytearray(seed)
        for _ in range(draws.randint(1, 4)):
            at = draws.randrange(len(content) + 1)
            kind = draws.randrange(4)
            if kind == 0 and at < len(content):
                content[at] ^= 1 << draws.randrange(8)
            elif kind == 1:
                del content[at : at + draws.randint(1, 20)]
            elif kind == 2:
                content[at : at + draws.randint(0, 12)] = draws.choice(_WORDS)
            else:
                del content[at:]
        found.append(bytes(content))
    return found


@pytest.mark.parametrize(
    ("read", "seed"),
    [
        (flent.read, _FLENT),
        (flent.read, gzip.compress(_FLENT, mtime=0)),
        (flent.read, bz2.compress(_FLENT)),
        (lists.read_ns3, b"2\n0 3 3 100 20000 2.000000001\n1 2 1000 2.5\n"),
        (lists.read_mahimahi, b"0\n1\n12\n40\n"),
    ],
    ids=["flent", "flent.gz", "flent.bz2", "ns3", "mahimahi"],
)
def test_any_content_is_read_or_refused(tmp_path: Path, read: Callable[[Path], Any], seed: bytes) -> None:
    path = tmp_path / "hostile"
    path.write_bytes(seed)
    assert read(path)
    refused = 0
    for content in _mutated(seed, 3000):
        path.write_bytes(content)
        try:
            found = read(path)
        except giveway.GivewayError as error:
            assert "hostile" in str(error)
            refused += 1
        else:
            if read is lists.read_mahimahi:
                lists.trace_rates(found)
    assert 300 < refused < 3000


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 200_000,
        _FLENT.replace(b"4", b"Infinity", 1),
        _FLENT.replace(b'{"Ping (ms) ICMP": {"UNITS": "ms"}}', b"[1]"),
        _FLENT.replace(b"20.5, 21", b"1" + b"0" * 400),
        gzip.compress(_FLENT)[:-9] + b"\xff" * 9,
        gzip.compress(b" " * ((1 << 28) + 1), 1),
    ],
    ids=["deep", "infinite", "list", "huge", "checksum", "bomb"],
)
def test_a_hostile_file_of_flent_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "hostile.flent"
    path.write_bytes(content)
    with pytest.raises(giveway.GivewayError, match="is not a data file of flent"):
        flent.read(path)


def test_hostile_numbers_in_lists_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "hostile"
    for content in ("²\n", "9" * 5000 + "\n", "1\n0 1 3 100 1_000 2.0\n", "1\n0 1 3 100 1000 inf\n"):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(giveway.GivewayError, match="hostile"):
            lists.read_ns3(path)
    # A trace of this length has 10^15 seconds.
    path.write_text("1\n" + "9" * 18 + "\n", encoding="utf-8")
    with pytest.raises(giveway.GivewayError, match="line 2"):
        lists.read_mahimahi(path)


def test_a_terminal_obeys_nothing_in_a_scenario(tmp_path: Path) -> None:
    hostile = "\x1b]0;x\x07\x9b2J\u202e\r"
    written = "".join(f"\\u{ord(c):04x}" for c in hostile)
    link = '[[link]]\nfrom = "a"\nto = "b"\nrate = "5mbit"\ndelay = "5ms"\nqdisc = "compare"\n'
    traffic = '[[traffic]]\nkind = "bulk"\nfrom = "a"\nto = "b"\n'
    path = tmp_path / "hostile.toml"
    path.write_text(
        f'title = "{written}"\nduration = "200ms"\ndisciplines = ["fifo limit 20p"]\n{link}{traffic}', encoding="utf-8"
    )
    scenario = giveway.Scenario(path)
    assert scenario.title == hostile
    texts = [str(scenario), repr(scenario), str(giveway.run(scenario, progress=False))]
    path.write_text(f'title = "{written}"\n"{written}" = 1\n', encoding="utf-8")
    with pytest.raises(giveway.ScenarioError) as raised:
        giveway.Scenario(path)
    texts.append(str(raised.value))
    assert any("\\u001b" in text for text in texts)
    for text in texts:
        assert not [c for c in hostile if not c.isprintable() and c in text], text
