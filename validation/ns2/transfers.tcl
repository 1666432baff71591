# A list of transfers through one bottleneck, from the same file as in Giveway: start_s,src,dst,size_bytes.
#
# Agents are reused, because ns-2 frees neither agents nor their ports, and thousands of them would slow it
# down.

source [file join [file dirname [info script]] common.tcl]
arguments { list transfers.csv  rate_bit 10e6  limit 42  window 100000  seed 1  duration_s 700  out transfers.out }
set_tcp_up
Agent/TCP set window_ $opt(window)

set ns [new Simulator]
$defaultRNG seed $opt(seed)

set client [$ns node]
set left [$ns node]
set right [$ns node]
set server [$ns node]
foreach {from to rate delay} [list \
    $client $left 100e6 0.002   $left $client 100e6 0.002 \
    $left $right $opt(rate_bit) 0.020   $right $left $opt(rate_bit) 0.020 \
    $right $server 100e6 0.003   $server $right 100e6 0.003] {
    $ns simplex-link $from $to $rate $delay DropTail
    set_drop_tail $ns $from $to 100000
}
set_drop_tail $ns $left $right $opt(limit)

set monitor [$ns monitor-queue $left $right ""]
set occupancy [$monitor get-pkts-integrator]
set idle {}
set timeouts 0
set again 0
set out [open $opt(out) w]
puts $out "start_s,size_bytes,fct_s"

# Returns an idle pair of agents, or a new one.
proc take {} {
    global ns client server idle
    if {[llength $idle]} {
        set pair [lindex $idle 0]
        set idle [lrange $idle 1 end]
        return $pair
    }
    set tcp [new Agent/TCP/Sack1]
    set sink [new Agent/TCPSink/Sack1]
    $ns attach-agent $client $tcp
    $ns attach-agent $server $sink
    $ns connect $tcp $sink
    return [list $tcp $sink]
}

proc begin {size} {
    global ns
    set pair [take]
    foreach {tcp sink} $pair {}
    $tcp reset
    $sink reset
    set packets [expr {($size + 1459) / 1460}]
    $tcp proc done {} [list finished $pair [$ns now] $size]
    $tcp advanceby $packets
}

# The sender has received its last acknowledgement. Some packets may still be on their way, so it is reused
# only after a pause.
proc finished {pair start size} {
    global ns out timeouts again
    incr timeouts [[lindex $pair 0] set nrexmit_]
    incr again [[lindex $pair 0] set nrexmitpack_]
    # In Giveway a transfer ends when the last byte arrives, half a round trip without queueing earlier.
    set back [expr {0.025 + 40 * 8 / 10e6 + 2 * 40 * 8 / 100e6}]
    puts $out "$start,$size,[expr {[$ns now] - $start - $back}]"
    $ns at [expr {[$ns now] + 5}] [list rest $pair]
}

proc rest {pair} {
    global idle
    lappend idle $pair
}

proc integral {} {
    global ns occupancy
    $occupancy newpoint [$ns now] [$occupancy set lasty_]
    return [$occupancy set sum_]
}

proc end {} {
    global opt monitor out timeouts again
    close $out
    report backlog_mean_packets [expr {[integral] / $opt(duration_s)}]
    report drops [$monitor set pdrops_]
    report loss [expr {double([$monitor set pdrops_]) / [$monitor set parrivals_]}]
    report timeouts $timeouts
    report retransmitted $again
    report utilization [expr {[$monitor set bdepartures_] * 8.0 / $opt(duration_s) / $opt(rate_bit)}]
    exit 0
}

set list [open $opt(list)]
gets $list
while {[gets $list line] >= 0} {
    foreach {start src dst size} [split $line ,] {}
    $ns at $start [list begin $size]
}
close $list
$ns at $opt(duration_s) end
$ns run
