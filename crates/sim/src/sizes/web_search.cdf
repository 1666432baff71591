# Flow sizes of a web search cluster: size in bytes, and the share of flows up to that size.
#
# Source: Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, section 2.2 and figure 4 (background traffic),
# as a table in packets of 1,460 bytes that the simulations of pFabric (Alizadeh et al., SIGCOMM 2013) and PIAS
# (Bai et al., NSDI 2015) use. Their stated mean is 1,138 packets.
8760 0.15
18980 0.2
27740 0.3
48180 0.4
77380 0.53
194180 0.6
973820 0.7
1946180 0.8
4866180 0.9
9733820 0.97
29200000 1
