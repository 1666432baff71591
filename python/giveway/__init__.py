"""Giveway: packet scheduling, from paper to wire.

A queue discipline decides which packet leaves next and which is dropped. This package runs disciplines in a
packet-level network simulator with TCP, compares them on the same traffic, and hands the results to your data frames::

    import giveway

    run = giveway.run("scenarios/quickstart.toml", disciplines=["fifo limit 300p", "fq_codel", "cake"], seeds=5)
    print(run)                              # the table of the command line
    run.estimate("fct_p95_s", "fq_codel")   # mean, 95 % confidence interval, value of each seed
    run.flows.to_polars()                   # every flow
    run.figure("sojourn").savefig("sojourn.pdf")

A scenario is a TOML file, a dict, or built in Python (:class:`Network`). A discipline is a name with parameters as
in ``tc``, or a class of yours (:class:`Discipline`). Results do not depend on the machine or on the number of threads.
"""

from __future__ import annotations

from . import flent, lists, pictures, theory
from ._compare import Capture, Comparison, Recommendation, compare
from ._discipline import (
    Arbiter,
    Context,
    Discipline,
    DisciplineSource,
    Packet,
    PortInfo,
    Rank,
    Request,
    SwitchInfo,
    Wait,
    rank,
)
from ._errors import (
    Diagnostic,
    DisciplineError,
    GivewayError,
    GivewayWarning,
    Interrupted,
    MissingExtra,
    ScenarioError,
    TrafficError,
)
from ._evaluate import Card, evaluate, evaluation_cells
from ._giveway import VERSION as __version__
from ._judge import Judgement, judge
from ._network import Network
from ._papers import Claim, Paper, paper, papers, reproduce
from ._progress import Progress
from ._registry import Bound, Entry, arbiters, bound, congestion_controls, disciplines, explain, replay_check, traffic
from ._run import Estimate, Run, open, run
from ._scenario import Link, Scenario, Source
from ._simulation import Port, PortState, Simulation, Step
from ._sweep import Sweep, open_sweep, query, sweep
from ._table import Column, Table
from ._testbed import testbed
from ._traffic import FlowInfo, Sender, TrafficSource
from ._tune import Candidate, Confirmation, Tuned, TunedComparison, compare_tuned, tune

__all__ = [
    "Arbiter",
    "Bound",
    "Candidate",
    "Capture",
    "Card",
    "Claim",
    "Column",
    "Comparison",
    "Confirmation",
    "Context",
    "Diagnostic",
    "Discipline",
    "DisciplineError",
    "DisciplineSource",
    "Entry",
    "Estimate",
    "FlowInfo",
    "GivewayError",
    "GivewayWarning",
    "Interrupted",
    "Judgement",
    "Link",
    "MissingExtra",
    "Network",
    "Packet",
    "Paper",
    "Port",
    "PortInfo",
    "PortState",
    "Progress",
    "Rank",
    "Recommendation",
    "Request",
    "Run",
    "Scenario",
    "ScenarioError",
    "Sender",
    "Simulation",
    "Source",
    "Step",
    "Sweep",
    "SwitchInfo",
    "Table",
    "TrafficError",
    "TrafficSource",
    "Tuned",
    "TunedComparison",
    "Wait",
    "__version__",
    "arbiters",
    "bound",
    "compare",
    "compare_tuned",
    "congestion_controls",
    "disciplines",
    "evaluate",
    "evaluation_cells",
    "explain",
    "flent",
    "judge",
    "lists",
    "open",
    "open_sweep",
    "paper",
    "papers",
    "pictures",
    "query",
    "rank",
    "replay_check",
    "reproduce",
    "run",
    "sweep",
    "testbed",
    "theory",
    "traffic",
    "tune",
]
