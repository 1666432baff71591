#!/usr/bin/env python3
"""A second RACK-TLP, written from RFC 8985 alone, and traces for which it and Giveway's must agree.

It works with plain floats and knows nothing of Giveway. Giveway's test replays the events of the file that
this program writes and compares the losses, the timers and the probes after each. `rack.py` has the machine,
`by_hand.py` and `network.py` make the events.

    python3 validation/rack/oracle.py            writes crates/sim/tests/data/rack_trace.csv
    python3 validation/rack/oracle.py --check    fails if that file is not what would be written
    python3 validation/rack/oracle.py --readings says how many rows depend on each choice of reading

Where the RFC can be read in more than one way, the choice is a field of `Readings` in `rack.py`.

References: RFC 8985 sections 6, 7 and 8; RFC 6298 sections 2, 3 and 5; RFC 2018; RFC 2883.
"""

import sys
from pathlib import Path

import by_hand
import network
from events import COLUMNS, state
from rack import Rack, Readings

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from command import compare_readings, run  # noqa: E402

OUTPUT = Path(__file__).resolve().parents[2] / "crates/sim/tests/data/rack_trace.csv"


def traces():
    return by_hand.traces() + network.traces()


def table():
    lines = [COLUMNS]
    for trace in traces():
        assert trace.rack.nearest_us > 0.1, f"{trace.name}: a segment had {trace.rack.nearest_us} us left"
        lines += trace.rows
    return "\n".join(lines) + "\n"


def replay(trace, readings):
    """The state that a reading gives after each event, as long as the events are possible with it."""
    rack = Rack(*trace.initial, readings)
    states = []
    for method, arguments in trace.events:
        try:
            getattr(rack, method)(*arguments)
        except (KeyError, AssertionError):
            break
        states.append(state(rack))
    return states


def compare():
    others = {
        "lost_but_delivered_counts": False,
        "dsack_of_probe_counts": False,
        "inflate_for_one_segment": False,
    }
    compare_readings(Readings(), others, traces(), replay)


if __name__ == "__main__":
    run(__doc__, OUTPUT, table, compare)
