#!/bin/bash
# A call that names the domains it needs reaches these and nothing else; the rest of its sandbox is as before.
# shellcheck disable=SC2016 # expanded inside
# shellcheck source=tests/net/lib.sh
. "${0%/*}/lib.sh"
cp "${RESOLVER:?set RESOLVER to the program that asks by itself}" "$WS/resolver"
HTTP="server 93.184.216.10:80 host ok.test path /" OTHER="server 93.184.216.20:80 host other.test path /"
fetch() { cs exec "$id" "${ONLY[@]}" -- curl -sS --max-time 60 "$@" 2>&1; }
# closed NAME URL...: a connection that is refused. curl has a status for each place where it can
# meet the reset: connect (7), TLS (35), an empty reply (52), sending (55), receiving (56).
closed()
{
    local name=$1
    shift
    fetch "$@" >"$T/.closed"
    case $? in 7 | 35 | 52 | 55 | 56) pass "$name" ;; *) fail "$name" "$(cat "$T/.closed")" ;; esac
}
ONLY=(--allowed-domain ok.test)

id=$(new --allow ok.test --allow other.test --allow six.test --allow 93.184.216.66)

# ---- what it reaches ----
is "exec rules: what it names" "$(fetch http://ok.test/)" "$HTTP"
status "exec rules: another name does not exist" 6 fetch http://other.test/
closed "exec rules: an address is refused" http://93.184.216.66/
is "exec rules: a static program without an environment" \
    "$(cs exec "$id" "${ONLY[@]}" -- env -i ./resolver both ok.test 80)" "$HTTP"
is "exec rules: and what it may not" "$(cs exec "$id" "${ONLY[@]}" -- env -i ./resolver plain other.test 80 2>/dev/null)" "no such name"
ONLY=()
is "exec rules: the control: without it" "$(fetch http://other.test/)" "$OTHER"
like "exec rules: the control: the address" "$(fetch http://93.184.216.66/)" "server 93.184.216.66:80 *"
there=$(cs exec "$id" -- getent ahostsv4 other.test | awk '{print $1; exit}')
is "exec rules: the control: by the address that stands for the other" "$(fetch -H 'Host: other.test' "http://$there/")" "$OTHER"
ONLY=(--allowed-domain ok.test)
closed "exec rules: not by the address that stands for the other" -H 'Host: other.test' "http://$there/"
ONLY=(--allowed-domain ok.test --allowed-domain other.test:80)
is "exec rules: two" "$(fetch http://other.test/)" "$OTHER"
closed "exec rules: only that port of it" -k https://other.test/
ONLY=(--allowed-domain six.test)
like "exec rules: IPv6" "$(fetch http://six.test/)" "server 2a00:200::16:80 *"
ONLY=(--allowed-domain 93.184.216.66)
like "exec rules: an address" "$(fetch http://93.184.216.66/)" "server 93.184.216.66:80 *"
status "exec rules: and no name then" 6 fetch http://ok.test/
ONLY=(--allowed-domain ok.test)
like "exec rules: datagrams stay closed" "$(cs exec "$id" "${ONLY[@]}" -- /usr/bin/python3 client.py udp 93.184.216.10 443 x)" "E[A-Z]*"
is "exec rules: raw sockets too" "$(cs exec "$id" "${ONLY[@]}" -- /usr/bin/python3 client.py socket 2 3 1)" EPERM
is "exec rules: and other families" "$(cs exec "$id" "${ONLY[@]}" -- /usr/bin/python3 client.py socket 17 3 0)" EAFNOSUPPORT
status "exec rules: a loopback of its own, and unix sockets" 0 cs exec "$id" "${ONLY[@]}" -- /usr/bin/python3 -c 'import socket
a = socket.create_server(("127.0.0.1", 0)); b = socket.create_connection(a.getsockname()); b.sendall(b"x")
assert a.accept()[0].recv(1) == b"x"
p, q = socket.socketpair(); p.sendall(b"y"); assert q.recv(1) == b"y"; s = socket.socket(socket.AF_UNIX); s.bind("own.sock"); s.listen()
s = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
assert not s.get_inheritable() and not s.getblocking()'
is "exec rules: threads and many at once" "$(cs exec "$id" "${ONLY[@]}" -- /usr/bin/python3 -c 'import socket, threading
done = []
def work():
    for _ in range(20):
        s = socket.create_connection(("ok.test", 7)); s.sendall(b"up\n"); s.recv(3) == b"up\n" and done.append(1); s.close()
t = [threading.Thread(target=work) for _ in range(8)]
[x.start() for x in t]; [x.join() for x in t]; print(len(done))')" 160

# ---- beside it ----
rm -f up go
cs exec "$id" "${ONLY[@]}" --timeout 300s -c 'curl -sS http://ok.test/ >up; while [ ! -e go ]; do sleep 0.05; done; curl -sS http://ok.test/' >"$T/beside" 2>"$T/beside.err" &
holds "exec rules: one runs" eventually test -s "$WS/up"
ONLY=()
is "exec rules: others are as before meanwhile" "$(fetch http://other.test/)" "$OTHER"
ONLY=(--allowed-domain other.test)
is "exec rules: and another has other rules" "$(fetch http://other.test/)" "$OTHER"
status "exec rules: to that alone" 6 fetch http://ok.test/
touch go
wait
is "exec rules: the first has noticed nothing" "$(cat "$T/beside")" "$HTTP"

# ---- what it leaves running ----
rm -f up go code
ONLY=(--allowed-domain ok.test)
cs exec "$id" "${ONLY[@]}" -c '(while [ ! -e go ]; do sleep 0.05; done; curl -sS --max-time 5 http://ok.test/ >after 2>&1; echo $? >code.new; mv code.new code) >/dev/null 2>&1 &'
touch go
holds "exec rules: what it left goes on" eventually test -s "$WS/code"
holds "exec rules: without any network" test "$(cat "$WS/code")" != 0
no_helper() { ! grep -qsa "^caisson-sockets.$id" /proc/[0-9]*/cmdline; }
holds "exec rules: its helpers are gone" eventually no_helper

# ---- what is refused before anything runs ----
refused() { cs exec "$id" "$@" --json -c 'echo ran' 2>/dev/null; }
json "exec rules: a domain without a rule" "$(refused --allowed-domain ok.test --allowed-domain evil.test)" \
    'v["error"]["code"] == "denied" and "evil.test" in v["error"]["message"] and "--allow evil.test" in v["error"]["hint"]'
json "exec rules: no domain at all" "$(refused --allowed-domain 'not a domain')" \
    'v["error"]["code"] == "invalid" and "not a domain" in v["error"]["message"]'
json "exec rules: an empty label" "$(refused --allowed-domain ok..test)" 'v["error"]["code"] == "invalid"'
json "exec rules: wider than the rule" "$(refused --allowed-domain '*.test')" 'v["error"]["code"] == "denied"'
json "exec rules: a session" "$(refused --allowed-domain ok.test --session s)" 'v["error"]["code"] == "unsupported"'
json "exec rules: in the background" "$(refused --allowed-domain ok.test -d)" 'v["error"]["code"] == "unsupported"'
json "exec rules: an unknown package manager" "$(refused --package-manager nosuch)" \
    'v["error"]["code"] == "invalid" and "nosuch" in v["error"]["message"]'
json "exec rules: one that has no rule" "$(refused --package-manager cargo)" \
    'v["error"]["code"] == "denied" and "--packages cargo" in v["error"]["hint"]'

# ---- told ----
json "exec rules: the result says what was refused" "$(cs exec "$id" "${ONLY[@]}" --json -- curl -sS http://other.test/)" \
    'any(d["op"] == "net" and d["target"] == "other.test" and "allowed_domains" in d["hint"] for d in v["denials"])'
holds "exec rules: the log has it" grep -q 'allowed_domains' <(cs log "$id" --json)

# ---- asked beforehand ----
json "why: a name" "$(cs why "$id" net ok.test --json)" 'v["allowed"] is True'
json "why: one without a rule" "$(cs why "$id" net evil.test:443 --json)" \
    'v["allowed"] is False and v["hint"] == "--allow evil.test:443"'
json "why: an address" "$(cs why "$id" net 93.184.216.66:80 --json)" 'v["allowed"] is True'
status "why: no host" 2 cs why "$id" net ok..test
is "why: nobody was asked for it" "$(asked evil.test)" 0

# ---- the sandbox's rules still hold ----
rm -f up
cs exec "$id" "${ONLY[@]}" --timeout 300s -- /usr/bin/python3 -c 'import socket
s = socket.create_connection(("ok.test", 7)); s.sendall(b"up\n"); s.recv(3); open("up", "w").write("up")
try:
    print("closed" if not s.recv(1) else "said")
except OSError as e:
    print(type(e).__name__)' >"$T/cut" 2>&1 &
holds "exec rules: a connection is open" eventually test -s "$WS/up"
cs net "$id" --allow other.test
wait
is "exec rules: a rule that is taken away cuts it" "$(cat "$T/cut")" ConnectionResetError
json "exec rules: and is no longer to be had" "$(refused --allowed-domain ok.test)" 'v["error"]["code"] == "denied"'
kill -KILL "$(gateway_of "$id")"
ONLY=(--allowed-domain other.test)
eventually no_gateway_of "$id"
json "exec rules: without a gateway it is not run" "$(refused "${ONLY[@]}")" 'v["error"]["code"] == "unavailable"'
cs destroy "$id"

id=$(new)
json "exec rules: nor in a sandbox without network" "$(refused --allowed-domain ok.test)" 'v["error"]["code"] == "denied"'
cs destroy "$id"

# ---- package managers ----
export npm_config_registry=http://ok.test/npm/
id=$(new --packages npm --allow other.test)
ONLY=(--package-manager npm)
is "exec rules: the mirror of a package manager" "$(fetch http://ok.test/)" "$HTTP"
status "exec rules: and nothing else" 6 fetch http://other.test/
ONLY=(--package-manager npm --allowed-domain other.test)
is "exec rules: both kinds together" "$(fetch http://ok.test/ http://other.test/)" "$HTTP"$'\n'"$OTHER"
json "exec rules: of another nothing is permitted" "$(refused --package-manager pip)" 'v["error"]["code"] == "denied"'
cs destroy "$id"
