# The network of scenarios/bench/dumbbell-1g.toml, to compare the speed of the simulators: ten long flows with
# delayed acknowledgements through a link of 1 Gbit/s. Nothing is measured but the packets that arrived.

source [file join [file dirname [info script]] common.tcl]
arguments { flows 10  limit 1667  seed 1  duration_s 10 }
set_tcp_up
# The receive window of the scenario, 8 MB.
Agent/TCP set window_ 5745
# The default of Giveway's scenarios: RFC 6298 permits less than a second, and Linux has 200 ms.
Agent/TCP set minrto_ 0.2

set ns [new Simulator]
$defaultRNG seed $opt(seed)
set starts [new RNG]

set left [$ns node]
set right [$ns node]
foreach {from to packets} [list $left $right $opt(limit) $right $left 100000] {
    $ns simplex-link $from $to 1e9 0.008 DropTail
    set_drop_tail $ns $from $to $packets
}
for {set i 0} {$i < $opt(flows)} {incr i} {
    set sender [$ns node]
    set receiver [$ns node]
    foreach {from to} [list $sender $left $left $sender $right $receiver $receiver $right] {
        $ns simplex-link $from $to 10e9 0.001 DropTail
        set_drop_tail $ns $from $to 10000
    }
    set tcp($i) [new Agent/TCP/Sack1]
    set sink [new Agent/TCPSink/Sack1/DelAck]
    $ns attach-agent $sender $tcp($i)
    $ns attach-agent $receiver $sink
    $ns connect $tcp($i) $sink
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp($i)
    $ns at [$starts uniform 0 0.1] "$ftp start"
}

proc end {} {
    global opt tcp
    set packets 0
    for {set i 0} {$i < $opt(flows)} {incr i} { incr packets [$tcp($i) set ack_] }
    report packets $packets
    exit 0
}
$ns at $opt(duration_s) end
$ns run
