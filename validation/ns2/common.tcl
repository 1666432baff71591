# Common parts of all scripts: arguments, and a TCP with the same settings as in Giveway's scenarios.
#
# A script is called as `ns NAME.tcl key value key value ...` and prints "key value" lines.

# Reads the arguments over the defaults that the script gives.
proc arguments {defaults} {
    global argv opt
    array set opt $defaults
    if {[llength $argv] % 2} { error "arguments come in pairs: key value" }
    foreach {key value} $argv {
        if {![info exists opt($key)]} { error "unknown argument $key" }
        set opt($key) $value
    }
}

proc report {key value} { puts "$key $value" }

# All settings in which the simulators could differ. Sizes: a data packet has 1460 + 40 bytes.
proc set_tcp_up {} {
    Agent/TCP set packetSize_ 1460
    Agent/TCP set useHeaders_ true
    Agent/TCP set tcpip_base_hdr_size_ 40
    Agent/TCP set timestamps_ false
    # The first packet is a SYN of 40 bytes; its acknowledgement does not increase the window.
    Agent/TCP set syn_ true
    Agent/TCP set delay_growth_ true
    Agent/TCP set windowInitOption_ 1
    Agent/TCP set windowInit_ 10
    # The receiver's window, in packets; also the first slow-start threshold.
    Agent/TCP set window_ 100000
    Agent/TCP set windowOption_ 1
    # Timeouts: RFC 6298's minimum, a clock of 10 ms.
    Agent/TCP set tcpTick_ 0.01
    Agent/TCP set minrto_ 1
    Agent/TCP set maxrto_ 60
    Agent/TCP set rtxcur_init_ 1
    # Limited transmit, RFC 3042.
    Agent/TCP set singledup_ 1
    Agent/TCP set ecn_ 0
    Agent/TCP set overhead_ 0
    Agent/TCP set maxburst_ 0
    Agent/TCP set slow_start_restart_ true
    Agent/TCPSink set packetSize_ 40
    Agent/TCPSink set maxSackBlocks_ 3
}

# DropTail refuses a packet when the queue with this packet would reach the limit, so it holds one packet less
# than its limit.
proc set_drop_tail {ns from to packets} {
    $ns queue-limit $from $to [expr {$packets + 1}]
}
