# Ten long flows through one bottleneck. Round trips differ slightly between flows, so that the flows are not
# in phase with each other.

source [file join [file dirname [info script]] common.tcl]
arguments {
    rate_bit 10e6  limit 42  flows 10  queue drop-tail
    red_min 5  red_max 15  red_weight 0.002  red_probability 0.1
    seed 1  warmup_s 50  duration_s 250
}
set_tcp_up

set ns [new Simulator]
$defaultRNG seed $opt(seed)
set starts [new RNG]
$starts next-substream

set left [$ns node]
set right [$ns node]
if {$opt(queue) eq "red"} {
    Queue/RED set thresh_ $opt(red_min)
    Queue/RED set maxthresh_ $opt(red_max)
    Queue/RED set q_weight_ $opt(red_weight)
    Queue/RED set linterm_ [expr {1.0 / $opt(red_probability)}]
    Queue/RED set mean_pktsize_ 1500
    Queue/RED set queue_in_bytes_ false
    Queue/RED set bytes_ false
    Queue/RED set gentle_ true
    Queue/RED set wait_ true
    Queue/RED set adaptive_ 0
    Queue/RED set setbit_ false
    Queue/RED set drop_tail_ true
    # An idle time counts as packets of the mean size.
    Queue/RED set idle_pktsize_ 1500
    $ns simplex-link $left $right $opt(rate_bit) 0.020 RED
} else {
    $ns simplex-link $left $right $opt(rate_bit) 0.020 DropTail
}
set_drop_tail $ns $left $right $opt(limit)
$ns simplex-link $right $left $opt(rate_bit) 0.020 DropTail
set_drop_tail $ns $right $left 100000

for {set i 0} {$i < $opt(flows)} {incr i} {
    set sender [$ns node]
    set receiver [$ns node]
    set delay [expr {0.001 + 0.0005 * $i}]
    foreach {from to delay} [list $sender $left $delay $left $sender $delay $right $receiver 0.001 $receiver $right 0.001] {
        $ns simplex-link $from $to 100e6 $delay DropTail
        set_drop_tail $ns $from $to 100000
    }
    set tcp($i) [new Agent/TCP/Sack1]
    set sink [new Agent/TCPSink/Sack1]
    $ns attach-agent $sender $tcp($i)
    $ns attach-agent $receiver $sink
    $ns connect $tcp($i) $sink
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp($i)
    $ns at [$starts uniform 0 1.0] "$ftp start"
}

set monitor [$ns monitor-queue $left $right ""]
set occupancy [$monitor get-pkts-integrator]

proc integral {} {
    global ns occupancy
    $occupancy newpoint [$ns now] [$occupancy set lasty_]
    return [$occupancy set sum_]
}

proc total {what} {
    global opt tcp
    set sum 0
    for {set i 0} {$i < $opt(flows)} {incr i} { incr sum [$tcp($i) set $what] }
    return $sum
}

proc begin {} {
    global opt tcp monitor before sum arrived dropped sent bytes timeouts
    for {set i 0} {$i < $opt(flows)} {incr i} { set before($i) [$tcp($i) set ack_] }
    set sum [integral]
    set arrived [$monitor set parrivals_]
    set dropped [$monitor set pdrops_]
    set bytes [$monitor set bdepartures_]
    set timeouts [total nrexmit_]
}

proc end {} {
    global opt tcp monitor before sum arrived dropped bytes timeouts
    set span [expr {$opt(duration_s) - $opt(warmup_s)}]
    set all 0.0
    set squares 0.0
    for {set i 0} {$i < $opt(flows)} {incr i} {
        set got [expr {([$tcp($i) set ack_] - $before($i)) * 1460 * 8.0 / $span}]
        set all [expr {$all + $got}]
        set squares [expr {$squares + $got * $got}]
    }
    set lost [expr {[$monitor set pdrops_] - $dropped}]
    report goodput_bps $all
    report utilization [expr {([$monitor set bdepartures_] - $bytes) * 8.0 / $span / $opt(rate_bit)}]
    report jain [expr {$all * $all / ($opt(flows) * $squares)}]
    report backlog_mean_packets [expr {([integral] - $sum) / $span}]
    report drops $lost
    report loss [expr {double($lost) / ([$monitor set parrivals_] - $arrived)}]
    report timeouts [expr {[total nrexmit_] - $timeouts}]
    exit 0
}

$ns at $opt(warmup_s) begin
$ns at $opt(duration_s) end
$ns run
