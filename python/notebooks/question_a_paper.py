"""Reproduce a figure and question it: EFD, and the choice of its threshold."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(app_title="Reproduce a figure and question it")


@app.cell
def _():
    import marimo as mo

    import giveway

    return giveway, mo


@app.cell
def _(mo):
    mo.md("""
    # Reproduce a figure and question it

    The paper *EFD: An Efficient Low-Overhead Scheduler* (Chen, Heusse and Urvoy-Keller, NETWORKING 2011) makes claims
    about short flows. `giveway.paper` runs its experiments and compares each claim with the result. `quick=True` makes
    shorter runs with three seeds, so a verdict is a first look.
    """)
    return


@app.cell
def _(giveway):
    paper = giveway.paper("efd", quick=True)
    claims = [claim for claim in paper.claims if claim.figure == "5"]
    return claims, paper


@app.cell
def _(claims, mo):
    rows = [f"| {claim.verdict} | {claim.statement} | {claim.paper} | {claim.ours} |" for claim in claims]
    mo.md("\n".join(["## Figure 5", "", "| verdict | claim | paper | ours |", "| --- | --- | --- | --- |", *rows]))
    return


@app.cell
def _(paper):
    paper.figure(5, columns=2)
    return


@app.cell
def _(mo, paper):
    differs = [claim for claim in paper.claims if claim.verdict == "differs"]
    reasons = [f"- {claim.statement}. The paper: {claim.paper}. Ours: {claim.ours}." for claim in differs[:5]]
    more = "`quick=False` makes the runs of the paper, which take minutes. The book shows their verdicts."
    mo.md("\n".join([f"## {len(differs)} claims differ in the quick runs. The first five:", "", *reasons, "", more]))
    return


@app.cell
def _(mo):
    mo.md("""
    ## A question

    `run2c` and `efd` both let the first 20 packets of a flow go ahead. In the right part of the figure the line of
    `run2c` rises at 20 segments. That of `efd` rises later. Why? The experiment is ours: transfers of 15 and of 60
    packets and an upload share a link, and the threshold of `efd` varies.
    """)
    return


@app.cell
def _(giveway):
    net = giveway.Network(title="The threshold of EFD", duration="60 s", warmup="5 s")
    net.link("home", "isp", "10mbit", "20ms", qdisc="compare")
    net.bulk("home", "isp", name="upload")
    net.transfers("home", "isp", name="short", load="1mbit", size={"fixed": "21kb"})
    net.transfers("home", "isp", name="medium", load="3mbit", size={"fixed": "85kb"})
    thresholds = [0, 5, 9, 10, 20, 29, 30, 40, 60]
    run = net.run([f"efd limit 300p threshold {packets}p" for packets in thresholds], seeds=3)
    return run, thresholds


@app.cell
def _(run, thresholds):
    from giveway import pictures

    def mean_fct(source):
        estimates = [run.estimate(f"src.{source}.fct_mean_s", name) for name in run.disciplines]
        means = [estimate.mean * 1e3 for estimate in estimates]
        return pictures.Series(source, thresholds, means, [estimate.ci95 * 1e3 for estimate in estimates])

    short, medium = mean_fct("short"), mean_fct("medium")
    short.colour, medium.colour = "#0072b2", "#d55e00"
    figure = pictures.figure(
        pictures.Picture("", "Threshold, packets", "Mean completion time, ms", "lines", [short, medium]), columns=2
    )
    figure
    return figure, medium, short


@app.cell
def _(medium, mo, short, thresholds):
    at = {name.name: dict(zip(thresholds, name.y, strict=True)) for name in (short, medium)}
    mo.md(f"""
    The bars show 95 % confidence intervals over three seeds. Transfers of 15 packets take {at["short"][9]:.0f} ms
    with a threshold of 9 packets, and {at["short"][10]:.0f} ms with 10. Those of 60 packets take
    {at["medium"][29]:.0f} ms with 29, and {at["medium"][30]:.0f} ms with 30. So a threshold below the size is
    enough. Why?

    EFD forgets a flow as soon as it has no packet queued. TCP starts with a burst of 10 packets, and the bursts double:
    10, then 20, then the last 30 of the 60. When a burst arrives, the one before has left, so it counts as a new flow.
    The threshold is not a limit on the size of a flow, but on the size of its bursts.
    """)
    return


if __name__ == "__main__":
    app.run()
