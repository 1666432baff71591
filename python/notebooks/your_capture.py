"""Your own capture: which discipline would help your link?"""

import marimo

__generated_with = "0.25.2"
app = marimo.App(app_title="Your own capture")


@app.cell
def _():
    from pathlib import Path

    import marimo as mo

    import giveway

    return Path, giveway, mo


@app.cell
def _(mo):
    mo.md("""
    # Your own capture

    A capture of your link shows which transfers your devices make, and when. `giveway.compare` takes requests,
    responses and pauses from it, and transfers them again over a simulated link with each discipline. Make a capture
    with `tcpdump -i eth0 -s 128 -w evening.pcapng`, and put its path here. This example is shipped with Giveway.
    """)
    return


@app.cell
def _(Path, mo):
    start = mo.notebook_dir() or Path.cwd()
    capture = next(
        folder / "examples" / "home-uplink.pcapng"
        for folder in (start, *start.parents)
        if (folder / "examples" / "home-uplink.pcapng").exists()
    )
    return (capture,)


@app.cell
def _(capture, giveway):
    (comparison,) = giveway.compare(
        capture, rate_up="2mbit", rate_down="16mbit", disciplines=["fifo", "fq_codel", "cake", "efd"], seeds=3
    )
    comparison
    return (comparison,)


@app.cell
def _(comparison, mo):
    facts = comparison.capture.facts
    mo.md(f"""
    ## What the capture contains

    {facts["packets"]:,} packets in {facts["span_s"]:.0f} s, with {facts["connections"]} TCP connections. The local
    side is {facts["local"]}. If this is wrong, `local="192.168.1.0/24"` sets it.
    """)
    return


@app.cell
def _(comparison, mo):
    mo.md("\n".join(["## What differs", "", *(f"- {sentence}" for sentence in comparison.findings)]))
    return


@app.cell
def _(comparison):
    figure = comparison.figure("fct", columns=2)
    figure
    return (figure,)


@app.cell
def _(comparison, mo):
    mo.md(f"""
    ## What to do

    ```text
    {str(comparison.recommendation).replace(chr(10), chr(10) + "    ")}
    ```
    """)
    return


@app.cell
def _(mo):
    mo.md("""
    The rates are those of the example. Use those of your contract, or better those that you measure. The capture does
    not show the congestion control of the senders, so it is CUBIC; `congestion="bbr"` tries another one.
    """)
    return


if __name__ == "__main__":
    app.run()
