"""Write a discipline: a class with two methods, and a rank."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(app_title="Write a discipline")


@app.cell
def _():
    from collections import deque

    import marimo as mo

    import giveway

    return deque, giveway, mo


@app.cell
def _(mo):
    mo.md("""
    # Write a discipline

    A discipline is a class with two methods. `enqueue` gets each packet that arrives, and keeps or drops it. `dequeue`
    returns the packet that leaves next. This one drops the *oldest* packet when the queue is full, instead of the
    arrival.
    """)
    return


@app.cell
def _(deque):
    class DropOldest:
        def __init__(self):
            self.queue = deque()

        def enqueue(self, packet, cx):
            self.queue.append(packet)
            if len(self.queue) > 100:
                cx.drop(self.queue.popleft())

        def dequeue(self, cx):
            return self.queue.popleft() if self.queue else None

    return (DropOldest,)


@app.cell
def _(mo):
    mo.md("""
    It is compared with the built-in `fifo`, which drops the arrival. Two uploads and a call share a link of 10 Mbit/s.
    """)
    return


@app.cell
def _(giveway):
    net = giveway.Network(title="Which packet to drop", duration="20 s", warmup="2 s")
    net.link("home", "isp", "10mbit", "20ms", qdisc="compare")
    net.bulk("home", "isp", name="uploads", flows=2)
    net.audio("home", "isp", name="call")
    return (net,)


@app.cell
def _(DropOldest, net):
    oldest = net.run(["fifo limit 100p", DropOldest], seeds=3)
    oldest
    return (oldest,)


@app.cell
def _(mo, oldest):
    built_in, mine = (oldest.estimate("sojourn_p99_s", name) for name in oldest.disciplines)
    mo.md(f"""
    The 99th percentile of the sojourn time is {built_in.mean * 1e3:.0f} ms with `fifo` and {mine.mean * 1e3:.0f} ms
    with `DropOldest`. Both keep 100 packets, so a packet that leaves has waited about equally long. The choice of the
    dropped packet does not shorten the queue.
    """)
    return


@app.cell
def _(mo):
    mo.md("""
    ## A rank in two lines

    Many disciplines only sort packets. Then a function from a packet to a number is enough: the smallest number leaves
    first, and a full queue drops the packet that would leave last. Here a small packet leaves before a large one.
    """)
    return


@app.cell
def _(giveway, net):
    small_first = giveway.rank(lambda packet: packet.bytes, limit="100p", name="small_first")
    run = net.run(["fifo limit 100p", small_first, "fq_codel"], seeds=3)
    run
    return (run,)


@app.cell
def _(run):
    figure = run.figure("delays", source="call", columns=2)
    figure
    return (figure,)


@app.cell
def _(mo):
    mo.md("""
    A call sends small packets, so `small_first` and `fq_codel` keep its delay short. `small_first` also would do so for
    a flood of small packets, which `fq_codel` shares fairly. Add one to the network, and look.

    ## A mistake is found

    A discipline must not lose a packet silently. This one forgets every packet, and the error says which one and when.
    """)
    return


@app.cell
def _(giveway, mo, net):
    class Forgetful:
        def enqueue(self, packet, cx):
            pass

        def dequeue(self, cx):
            return None

    try:
        net.run([Forgetful], seeds=1)
        found = "nothing"
    except giveway.DisciplineError as error:
        found = str(error)
    mo.md(f"> {found}")
    return


if __name__ == "__main__":
    app.run()
