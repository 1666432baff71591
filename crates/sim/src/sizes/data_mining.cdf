# Flow sizes of a data mining cluster: size in bytes, and the share of flows up to that size.
#
# Source: Greenberg et al., "VL2: A scalable and flexible data center network", SIGCOMM 2009, section 3.1 and
# figure 2, as a table in packets of 1,460 bytes that the simulations of pFabric (Alizadeh et al., SIGCOMM 2013)
# and PIAS (Bai et al., NSDI 2015) use. Their stated mean is 5,117 packets.
1460 0.5
2920 0.6
4380 0.7
10220 0.8
389820 0.9
3076220 0.95
97333820 0.99
973333820 1
