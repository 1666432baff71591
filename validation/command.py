"""The command line of a second implementation: writes its table, checks it, or shows what its readings decide."""

import sys
from dataclasses import fields, replace


def run(doc, output, table, compare):
    """Does what the arguments say. `table` makes the text of the file `output`; `compare` prints the readings."""
    match sys.argv[1:]:
        case ["--readings"]:
            compare()
        case ["--check"]:
            if output.read_text() != table():
                sys.exit(f"{output} is not what this program writes")
        case []:
            output.parent.mkdir(parents=True, exist_ok=True)
            output.write_text(table())
        case _:
            sys.exit(doc)


def rows_that_differ(ours, theirs):
    """How many rows one reading changes, as text; empty for none. A trace may end earlier with it."""
    differ = sum(a != b for a, b in zip(ours, theirs)) + len(ours) - len(theirs)
    return f"{differ} of {len(ours)} rows" if differ else ""


def compare_readings(usual, others, traces, replay, describe=rows_that_differ):
    """Prints the effect of each other reading on each trace. `usual` has the readings of the traces, and `others`
    a value for each field that it could have instead."""
    assert set(others) == {field.name for field in fields(usual)}
    for name, value in others.items():
        print(f"{name} = {value}")
        for trace in traces:
            found = describe(replay(trace, usual), replay(trace, replace(usual, **{name: value})))
            if found:
                print(f"    {trace.name}: {found}")
