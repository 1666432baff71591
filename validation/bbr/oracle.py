#!/usr/bin/env python3
"""A second BBR (version 1), written from the draft alone, and traces for which it and Giveway's must agree.

It works with plain floats and knows nothing of Giveway. Giveway's test replays the events of the file that
this program writes and compares the state after each. `bbr.py` has the machine, `by_hand.py` and `flow.py`
make the events.

    python3 validation/bbr/oracle.py            writes crates/sim/tests/data/bbr_trace.csv
    python3 validation/bbr/oracle.py --check    fails if that file is not what would be written
    python3 validation/bbr/oracle.py --readings says how many rows depend on each choice of reading

Where the draft can be read in more than one way, the choice is a field of `Readings` in `bbr.py`.

References: Cardwell et al., BBR Congestion Control, draft-cardwell-iccrg-bbr-congestion-control-00, 2017,
sections 3.5 and 4; Cheng et al., Delivery Rate Estimation, draft-cheng-iccrg-delivery-rate-estimation-00,
2017.
"""

import sys
from pathlib import Path

import by_hand
import flow
from bbr import Bbr, Readings
from events import COLUMNS, state

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from command import compare_readings, run  # noqa: E402

OUTPUT = Path(__file__).resolve().parents[2] / "crates/sim/tests/data/bbr_trace.csv"


def clear_of_rounding(make):
    """A trace in which no comparison is near its other side, so that whole bytes decide alike."""
    for attempt in range(100):
        trace = make(attempt)
        if trace.bbr.nearest > 4:
            return trace
    sys.exit(f"{trace.name}: a comparison is decided by {trace.bbr.nearest} bytes")


def traces():
    return [clear_of_rounding(make) for make in by_hand.makers() + flow.makers()]


def table():
    lines = [COLUMNS]
    for trace in traces():
        lines += trace.rows
    return "\n".join(lines) + "\n"


def replay(trace, readings):
    """The state that a reading gives after each event."""
    draws = list(trace.drawn)
    bbr = Bbr(*trace.initial, lambda: draws.pop(0) if draws else 0, readings)
    states = []
    for method, argument in trace.events:
        getattr(bbr, method)(argument)
        states.append(state(bbr))
    return states


def compare():
    others = {
        "high_gain": 2.89,
        "filter_keeps_rounds": 11,
        "rate_from_first_sample": False,
        "save_after_entering": True,
        "recovery_starts_round": True,
        "timeout_keeps_conservation": True,
        "restore_after_steps": True,
        "largest_quantum": 64_000,
        "bare_bdp_in_cycle": True,
    }
    compare_readings(Readings(), others, traces(), replay)


if __name__ == "__main__":
    run(__doc__, OUTPUT, table, compare)
