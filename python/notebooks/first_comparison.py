"""Your first comparison: a call beside an upload, with four disciplines."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(app_title="Your first comparison")


@app.cell
def _():
    import marimo as mo
    import polars

    import giveway

    return giveway, mo, polars


@app.cell
def _(mo):
    mo.md("""
    # Your first comparison

    A home has an uplink of 10 Mbit/s. One person uploads a backup, three people load web pages, and one person makes a
    call. All their packets share the uplink, so packets queue in front of it. The *queue discipline* of the router
    decides which packet leaves next. Which one is best for this home?
    """)
    return


@app.cell
def _(giveway):
    net = giveway.Network(title="A home uplink", duration="30 s", warmup="5 s")
    net.link("home", "isp", "10mbit", "5ms", qdisc="compare", back={"rate": "50mbit", "qdisc": "fq_codel"})
    net.link("isp", "server", "1gbit", "15ms")
    net.bulk("home", "server", name="backup")
    net.web("home", "server", name="web", users=3, think="3 s")
    net.audio("home", "server", name="call")
    return (net,)


@app.cell
def _(mo):
    mo.md("""
    `qdisc="compare"` marks the link at which the disciplines are compared. Each discipline runs with each of five
    seeds. A seed fixes all random numbers, so every discipline gets the same requests at the same times.
    """)
    return


@app.cell
def _(net):
    run = net.run(["fifo limit 300p", "fq_codel", "cake", "efd limit 300p"], seeds=5)
    run
    return (run,)


@app.cell
def _(mo, run):
    mo.md("\n".join(["## What differs", "", *(f"- {sentence}" for sentence in run.findings)]))
    return


@app.cell
def _(mo):
    mo.md("""
    ## Why

    The sojourn time is the time that a packet spends in the queue. With `fifo`, all packets wait behind the backup.
    `fq_codel` and `cake` keep the queue of the backup short, too. `efd` does not: the packets of the backup wait, and
    the few packets of the call and of the web pages go ahead, which is the left end of its line.
    """)
    return


@app.cell
def _(run):
    figure = run.figure("sojourn", columns=2)
    figure
    return (figure,)


@app.cell
def _(mo, run):
    call = {name: run.estimate("voice_delay_p99_s", name) for name in run.disciplines}
    rows = [f"| {name} | {estimate.mean * 1e3:.1f} ± {estimate.ci95 * 1e3:.1f} |" for name, estimate in call.items()]
    mo.md("\n".join(["| discipline | 99th percentile of the call's delay, ms |", "| --- | --- |", *rows]))
    return


@app.cell
def _(mo):
    mo.md("""
    The number after ± is half the width of the 95 % confidence interval over the five seeds.

    ## Every flow

    `run.flows` contains a row for each transfer. Libraries of data frames take it over without a copy.
    """)
    return


@app.cell
def _(polars, run):
    web = polars.DataFrame(run.flows).filter(polars.col("source") == "web")
    web.group_by("qdisc", maintain_order=True).agg(
        transfers=polars.len(), median_s=polars.col("fct_s").median(), slowest_s=polars.col("fct_s").max()
    )
    return


if __name__ == "__main__":
    app.run()
