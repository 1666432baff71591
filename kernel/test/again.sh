# Loads and unloads each discipline 25 times while traffic goes through it, and looks at the memory around it.
ip link add again type dummy
ip link set again up
again fifo 1
memory again-before
drive flood again 1000000 200 300 >/dev/null &
flood=$!
for kind in fifo efd drr trr; do again $kind 25; done
kill $flood
wait $flood
sleep 1
memory again-after
