"""A first comparison: which discipline keeps a call usable beside an upload?"""

import giveway

net = giveway.Network(title="A call beside an upload", duration="20 s", warmup="2 s")
net.link("home", "isp", "10mbit", "20ms", qdisc="compare")
net.bulk("home", "isp", name="upload")
net.audio("home", "isp", name="call")

run = net.run(["fifo limit 100p", "fq_codel", "cake"], seeds=3)
print(run)
for name in run.disciplines:
    print(f"{name:16} delay of the call, 99th percentile: {run.estimate('voice_delay_p99_s', name)} s")
