#!/bin/bash
# The end of a gateway closes the network, and rules that are taken away close connections (cases 29, 30).
# shellcheck disable=SC2016 # expanded inside
# shellcheck source=tests/net/lib.sh
. "${0%/*}/lib.sh"

fetch() { cs exec "$id" -- curl -sS --max-time 60 "$@"; }
# hold NAME HOST: a connection inside that notes when it is up, and when it has ended and how
hold()
{
    rm -f "$WS/$1.up" "$WS/$1.end"
    cs exec "$id" --timeout 300s -- /usr/bin/python3 -c 'import socket, sys, time
s = socket.create_connection((sys.argv[2], int(sys.argv[3])), 60)
s.sendall(b"up\n"); s.recv(3)
open(sys.argv[1] + ".up", "w").write("up")
try:
    how = "closed" if not s.recv(1) else "said"
except OSError as e:
    how = type(e).__name__
at = time.monotonic()
open(sys.argv[1] + ".new", "w").write("%s %.3f" % (how, at))
import os; os.rename(sys.argv[1] + ".new", sys.argv[1] + ".end")' "$1" "$2" 7 &
    eventually test -s "$WS/$1.up"
}
clock() { /usr/bin/python3 -c 'import time; print("%.3f" % time.monotonic())'; }

# ---- 29 ----
id=$(new --allow ok.test --allow 93.184.216.66)
status "case 29: the control: a name" 0 fetch http://ok.test/
status "case 29: the control: an address" 0 fetch http://93.184.216.66/
holds "case 29: a connection is open" hold first ok.test
before=$(wc -l <"$WORLD/served") queries=$(wc -l <"$WORLD/queries")
gw=$(gateway_of "$id")
kill -STOP "$gw"
status "case 29: while it is stopped nothing is answered" 28 cs exec "$id" -- curl -sS --max-time 2 http://93.184.216.66/
kill -KILL "$gw"
holds "case 29: its end is the end of what was open" eventually test -s "$WS/first.end"
status "case 29: an address is refused at once" 7 fetch http://93.184.216.66/
status "case 29: and a name is not found" 6 fetch http://ok.test/
like "case 29: a datagram is as before" "$(cs exec "$id" -- /usr/bin/python3 client.py udp 93.184.216.66 443 x)" "E[A-Z]*"
status "case 29: a port of its own is not mistaken for the network" 7 cs exec "$id" -- bash -c \
    '/usr/bin/python3 client.py serve 8099 & for n in {1..300}; do curl -s http://127.0.0.1:8099/ && break; sleep 0.2; done
    curl -sS --max-time 60 http://93.184.216.66:8099/'
is "case 29: the control: it listens" "$out" "the host itself"
is "case 29: nothing came to anybody" "$(wc -l <"$WORLD/served") $(wc -l <"$WORLD/queries")" "$before $queries"
wait
cs destroy "$id"

# ---- 30 ----
id=$(new --allow ok.test --allow other.test --allow 93.184.216.66)
holds "case 30: a connection to a name" hold name ok.test
holds "case 30: a connection to an address" hold address 93.184.216.66
holds "case 30: and one that stays" hold stays other.test
start=$(clock)
status "case 30: the rules are replaced" 0 cs net "$id" --allow other.test
json "case 30: when that returns, both were cut" "$(cs net "$id" --json)" \
    'sorted(e["address"] for e in v["events"] if e["kind"] == "close" and e.get("why") == "the rules changed") ==
     ["93.184.216.10", "93.184.216.66"]'
holds "case 30: the programs know" eventually test -s "$WS/name.end" -a -s "$WS/address.end"
for which in name address; do
    read -r how at <"$WS/$which.end"
    is "case 30: $which: by a reset" "$how" ConnectionResetError
    took=$(/usr/bin/python3 -c "print('%.0f' % (($at - $start) * 1000))")
    echo "# $which: $took ms from the order to the end of the connection, starting caisson included"
done
holds "case 30: the other goes on" test ! -e "$WS/stays.end"
status "case 30: no new one" 6 fetch http://ok.test/
status "case 30: a deny rule cuts too" 0 cs net "$id" --allow other.test --deny other.test:7
holds "case 30: it is cut" eventually test -s "$WS/stays.end"
status "case 30: and another port of it is open" 0 fetch http://other.test/
status "case 30: --net none" 0 cs net "$id" --net none
status "case 30: closes all" 6 fetch http://other.test/
status "case 30: and can be opened again" 0 cs net "$id" --allow ok.test
status "case 30: the control" 0 fetch http://ok.test/
wait
cs destroy "$id"
