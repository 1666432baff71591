# One flow over one link: limited by its window, by the buffer, or by random loss.

source [file join [file dirname [info script]] common.tcl]
arguments {
    rate_bit 10e6  delay_s 0.025  limit 50  window 100000
    loss 0  seed 1  warmup_s 20  duration_s 120
}
set_tcp_up

set ns [new Simulator]
$defaultRNG seed $opt(seed)
set sender [$ns node]
set receiver [$ns node]
$ns simplex-link $sender $receiver $opt(rate_bit) $opt(delay_s) DropTail
$ns simplex-link $receiver $sender $opt(rate_bit) $opt(delay_s) DropTail
set_drop_tail $ns $sender $receiver $opt(limit)
set_drop_tail $ns $receiver $sender 100000

if {$opt(loss) > 0} {
    set loss [new ErrorModel]
    $loss unit pkt
    $loss set rate_ $opt(loss)
    $loss ranvar [new RandomVariable/Uniform]
    $loss drop-target [new Agent/Null]
    $ns link-lossmodel $loss $sender $receiver
}

set tcp [new Agent/TCP/Sack1]
$tcp set window_ $opt(window)
set sink [new Agent/TCPSink/Sack1]
$ns attach-agent $sender $tcp
$ns attach-agent $receiver $sink
$ns connect $tcp $sink
set ftp [new Application/FTP]
$ftp attach-agent $tcp

set monitor [$ns monitor-queue $sender $receiver ""]
set occupancy [$monitor get-pkts-integrator]

proc begin {} {
    global tcp monitor occupancy before sum arrived dropped sent again timeouts
    set before [$tcp set ack_]
    set sum [integral]
    set arrived [$monitor set parrivals_]
    set dropped [$monitor set pdrops_]
    set sent [$tcp set ndatapack_]
    set again [$tcp set nrexmitpack_]
    set timeouts [$tcp set nrexmit_]
}

# The integral of the queue's length up to now.
proc integral {} {
    global ns occupancy
    set now [$ns now]
    $occupancy newpoint $now [$occupancy set lasty_]
    return [$occupancy set sum_]
}

proc end {} {
    global opt tcp monitor before sum arrived dropped sent again timeouts
    set span [expr {$opt(duration_s) - $opt(warmup_s)}]
    report goodput_bps [expr {([$tcp set ack_] - $before) * 1460 * 8.0 / $span}]
    report backlog_mean_packets [expr {([integral] - $sum) / $span}]
    report drops [expr {[$monitor set pdrops_] - $dropped}]
    report arrivals [expr {[$monitor set parrivals_] - $arrived}]
    report packets [expr {[$tcp set ndatapack_] - $sent}]
    report retransmitted [expr {[$tcp set nrexmitpack_] - $again}]
    report timeouts [expr {[$tcp set nrexmit_] - $timeouts}]
    exit 0
}

$ns at 0 "$ftp start"
$ns at $opt(warmup_s) begin
$ns at $opt(duration_s) end
$ns run
