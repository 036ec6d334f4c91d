#!/bin/bash
# A call that names the domains it needs reaches these and nothing else; the rest of its sandbox is as before.
# shellcheck disable=SC2016 # expanded inside
# shellcheck source=tests/net/lib.sh
. "${0%/*}/lib.sh"
cp "${RESOLVER:?set RESOLVER to the program that asks by itself}" "$WS/resolver"
HTTP="server 93.184.216.10:80 host ok.test path /" OTHER="server 93.184.216.20:80 host other.test path /"
fetch() { cs exec "$id" "${ONLY[@]}" -- curl -sS --max-time 60 "$@" 2>&1; }
# closed NAME URL...: a connection that is refused: at once, or when something is said
closed()
{
    local name=$1
    shift
    fetch "$@" >"$T/.closed"
    case $? in 7 | 35 | 52 | 56) pass "$name" ;; *) fail "$name" "$(cat "$T/.closed")" ;; esac
}
ONLY=(--allowed-domain ok.test)

id=$(new --allow ok.test --allow other.test --allow six.test --allow 93.184.216.66)

# ---- what it reaches ----
is "narrow: what it names" "$(fetch http://ok.test/)" "$HTTP"
status "narrow: another name does not exist" 6 fetch http://other.test/
closed "narrow: an address is refused" http://93.184.216.66/
is "narrow: a static program without an environment" \
    "$(cs exec "$id" "${ONLY[@]}" -- env -i ./resolver both ok.test 80)" "$HTTP"
is "narrow: and what it may not" "$(cs exec "$id" "${ONLY[@]}" -- env -i ./resolver plain other.test 80 2>/dev/null)" "no such name"
ONLY=()
is "narrow: the control: without it" "$(fetch http://other.test/)" "$OTHER"
like "narrow: the control: the address" "$(fetch http://93.184.216.66/)" "server 93.184.216.66:80 *"
there=$(cs exec "$id" -- getent ahostsv4 other.test | awk '{print $1; exit}')
is "narrow: the control: by the address that stands for the other" "$(fetch -H 'Host: other.test' "http://$there/")" "$OTHER"
ONLY=(--allowed-domain ok.test)
closed "narrow: not by the address that stands for the other" -H 'Host: other.test' "http://$there/"
ONLY=(--allowed-domain ok.test --allowed-domain other.test:80)
is "narrow: two" "$(fetch http://other.test/)" "$OTHER"
closed "narrow: only that port of it" -k https://other.test/
ONLY=(--allowed-domain six.test)
like "narrow: IPv6" "$(fetch http://six.test/)" "server 2a00:200::16:80 *"
ONLY=(--allowed-domain 93.184.216.66)
like "narrow: an address" "$(fetch http://93.184.216.66/)" "server 93.184.216.66:80 *"
status "narrow: and no name then" 6 fetch http://ok.test/
ONLY=(--allowed-domain ok.test)
like "narrow: datagrams stay closed" "$(cs exec "$id" "${ONLY[@]}" -- /usr/bin/python3 client.py udp 93.184.216.10 443 x)" "E[A-Z]*"
is "narrow: raw sockets too" "$(cs exec "$id" "${ONLY[@]}" -- /usr/bin/python3 client.py socket 2 3 1)" EPERM
is "narrow: and other families" "$(cs exec "$id" "${ONLY[@]}" -- /usr/bin/python3 client.py socket 17 3 0)" EAFNOSUPPORT
status "narrow: a loopback of its own, and unix sockets" 0 cs exec "$id" "${ONLY[@]}" -- /usr/bin/python3 -c 'import socket
a = socket.create_server(("127.0.0.1", 0)); b = socket.create_connection(a.getsockname()); b.sendall(b"x")
assert a.accept()[0].recv(1) == b"x"
p, q = socket.socketpair(); p.sendall(b"y"); assert q.recv(1) == b"y"; s = socket.socket(socket.AF_UNIX); s.bind("own.sock"); s.listen()
s = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
assert not s.get_inheritable() and not s.getblocking()'
is "narrow: threads and many at once" "$(cs exec "$id" "${ONLY[@]}" -- /usr/bin/python3 -c 'import socket, threading
done = []
def work():
    for _ in range(20):
        s = socket.create_connection(("ok.test", 7)); s.sendall(b"up\n"); s.recv(3) == b"up\n" and done.append(1); s.close()
t = [threading.Thread(target=work) for _ in range(8)]
[x.start() for x in t]; [x.join() for x in t]; print(len(done))')" 160

# ---- beside it ----
rm -f up go
cs exec "$id" "${ONLY[@]}" --timeout 300s -c 'curl -sS http://ok.test/ >up; while [ ! -e go ]; do sleep 0.05; done; curl -sS http://ok.test/' >"$T/beside" 2>&1 &
holds "narrow: one runs" eventually test -s "$WS/up"
ONLY=()
is "narrow: others are as before meanwhile" "$(fetch http://other.test/)" "$OTHER"
ONLY=(--allowed-domain other.test)
is "narrow: and another is narrowed otherwise" "$(fetch http://other.test/)" "$OTHER"
status "narrow: to that alone" 6 fetch http://ok.test/
touch go
wait
is "narrow: the first has noticed nothing" "$(cat "$T/beside")" "$HTTP"

# ---- what it leaves running ----
rm -f up go code
ONLY=(--allowed-domain ok.test)
cs exec "$id" "${ONLY[@]}" -c '(while [ ! -e go ]; do sleep 0.05; done; curl -sS --max-time 5 http://ok.test/ >after 2>&1; echo $? >code.new; mv code.new code) >/dev/null 2>&1 &'
touch go
holds "narrow: what it left goes on" eventually test -s "$WS/code"
holds "narrow: without any network" test "$(cat "$WS/code")" != 0
no_helper() { ! grep -qsa "^caisson-sockets.$id" /proc/[0-9]*/cmdline; }
holds "narrow: its helpers are gone" eventually no_helper

# ---- what is refused before anything runs ----
refused() { cs exec "$id" "$@" --json -c 'echo ran' 2>/dev/null; }
json "narrow: a domain without a rule" "$(refused --allowed-domain ok.test --allowed-domain evil.test)" \
    'v["error"]["code"] == "denied" and "evil.test" in v["error"]["message"] and "--allow evil.test" in v["error"]["hint"]'
json "narrow: no domain at all" "$(refused --allowed-domain 'not a domain')" \
    'v["error"]["code"] == "invalid" and "not a domain" in v["error"]["message"]'
json "narrow: an empty label" "$(refused --allowed-domain ok..test)" 'v["error"]["code"] == "invalid"'
json "narrow: wider than the rule" "$(refused --allowed-domain '*.test')" 'v["error"]["code"] == "denied"'
json "narrow: a session" "$(refused --allowed-domain ok.test --session s)" 'v["error"]["code"] == "unsupported"'
json "narrow: in the background" "$(refused --allowed-domain ok.test -d)" 'v["error"]["code"] == "unsupported"'
json "narrow: an unknown package manager" "$(refused --package-manager nosuch)" \
    'v["error"]["code"] == "invalid" and "nosuch" in v["error"]["message"]'
json "narrow: one that has no rule" "$(refused --package-manager cargo)" \
    'v["error"]["code"] == "denied" and "--packages cargo" in v["error"]["hint"]'

# ---- told ----
json "narrow: the result says what was refused" "$(cs exec "$id" "${ONLY[@]}" --json -- curl -sS http://other.test/)" \
    'any(d["op"] == "net" and d["target"] == "other.test" and "allowed_domains" in d["hint"] for d in v["denials"])'
holds "narrow: the log has it" grep -q 'allowed_domains' <(cs log "$id" --json)

# ---- asked beforehand ----
json "why: a name" "$(cs why "$id" net ok.test --json)" 'v["allowed"] is True'
json "why: one without a rule" "$(cs why "$id" net evil.test:443 --json)" \
    'v["allowed"] is False and v["hint"] == "--allow evil.test:443"'
json "why: an address" "$(cs why "$id" net 93.184.216.66:80 --json)" 'v["allowed"] is True'
status "why: no host" 1 cs why "$id" net ok..test
is "why: nobody was asked for it" "$(asked evil.test)" 0

# ---- the sandbox's rules still hold ----
rm -f up
cs exec "$id" "${ONLY[@]}" --timeout 300s -- /usr/bin/python3 -c 'import socket
s = socket.create_connection(("ok.test", 7)); s.sendall(b"up\n"); s.recv(3); open("up", "w").write("up")
try:
    print("closed" if not s.recv(1) else "said")
except OSError as e:
    print(type(e).__name__)' >"$T/cut" 2>&1 &
holds "narrow: a connection is open" eventually test -s "$WS/up"
cs net "$id" --allow other.test
wait
is "narrow: a rule that is taken away cuts it" "$(cat "$T/cut")" ConnectionResetError
json "narrow: and is no longer to be had" "$(refused --allowed-domain ok.test)" 'v["error"]["code"] == "denied"'
kill -KILL "$(gateway_of "$id")"
ONLY=(--allowed-domain other.test)
eventually no_gateway_of "$id"
json "narrow: without a gateway it is not run" "$(refused "${ONLY[@]}")" 'v["error"]["code"] == "unavailable"'
cs destroy "$id"

id=$(new)
json "narrow: nor in a sandbox without network" "$(refused --allowed-domain ok.test)" 'v["error"]["code"] == "denied"'
cs destroy "$id"

# ---- package managers ----
export npm_config_registry=http://ok.test/npm/
id=$(new --packages npm --allow other.test)
ONLY=(--package-manager npm)
is "narrow: the mirror of a package manager" "$(fetch http://ok.test/)" "$HTTP"
status "narrow: and nothing else" 6 fetch http://other.test/
ONLY=(--package-manager npm --allowed-domain other.test)
is "narrow: both kinds together" "$(fetch http://ok.test/ http://other.test/)" "$HTTP"$'\n'"$OTHER"
json "narrow: of another nothing is permitted" "$(refused --package-manager pip)" 'v["error"]["code"] == "denied"'
cs destroy "$id"
