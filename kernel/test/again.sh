# Loads and unloads the disciplines 100 times while traffic goes through them, and looks at the memory around
# it. The verifier needs seconds for TRR in such a machine.
ip link add again type dummy
ip link set again up
again fifo 1
memory again-before
drive flood again 1000000 200 300 0 >/dev/null &
flood=$!
for kind in fifo efd drr bsq; do again $kind 22; done
again trr 12
kill $flood
wait $flood
sleep 1
memory again-after
