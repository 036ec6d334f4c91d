#!/bin/bash
# The network of a jail from the policy to the audit log: that rules reach the gateway, that the
# gateway lives and ends with its sandbox, and that everything says what there is.
# shellcheck disable=SC2016 # expanded inside
# shellcheck source=tests/net/lib.sh
. "${0%/*}/lib.sh"

gateways() { grep -lsa "^caisson-gateway.$1" /proc/[0-9]*/cmdline 2>/dev/null | tr -dc '0-9\n' | sort -u; }
layer() { cs info "$1" --json | python3 -c 'import json,sys
print([x["status"] for x in json.load(sys.stdin)["layers"] if x["name"] == "net"][0])'; }

# ---- a jail without rules has none of this ----
status "no rules: no network" 6 "${IN[@]}" -- curl -sS http://ok.test/
like "and the rule that would help is named" "$err" "*denied net 'ok.test'*--allow ok.test*"
id=$(new)
is "no gateway runs for it" "$(gateways "$id")" ""
is "its layer is as ever" "$(layer "$id")" on
status "rules cannot be given to it later" 1 cs net "$id" --allow ok.test
like "and that says why" "$err" "*opened without network rules*"
cs destroy "$id"
status "--net none is the same" 6 "${IN[@]}" --net none -- curl -sS http://ok.test/

# ---- rules ----
is "https to an allowed name" "$(get https://ok.test/)" "server 93.184.216.10:443 host ok.test path /"
is "http to an allowed name" "$(get http://ok.test/a)" "server 93.184.216.10:80 host ok.test path /a"
NET=(--allow six.test)
is "a name that has only IPv6" "$(get http://six.test/)" "server 2a00:200::16:80 host six.test path /"
NET=(--allow ok.test:443)
get http://ok.test/ >/dev/null
like "another port is refused, with the rule that would help" "$(cat "$T/.get.err")" "*denied net 'ok.test:80'*--allow ok.test:80*"
before=$(asked evil.test)
get http://evil.test/ >/dev/null
like "another name is refused" "$(cat "$T/.get.err")" "*resolve*denied net 'evil.test'*"
is "and nobody outside was asked for it" "$(asked evil.test)" "$before"
NET=(--allow ok.test:443)
status "a command that can do without" 0 "${IN[@]}" "${NET[@]}" -c 'curl -s http://evil.test/; curl -s http://ok.test/; true'
is "is told while it runs" "$err" "caisson: run: denied net 'evil.test': the sandbox's network does not allow it
caisson: run: denied net 'ok.test:80': the sandbox's network does not allow it"
json "and as data" "$("${IN[@]}" "${NET[@]}" --json -c 'curl -s http://evil.test/; curl -s http://ok.test/; true')" \
    'v["exit_code"] == 0 and [(d["op"], d["target"], d["hint"]) for d in v["denials"]] ==
        [("net", "evil.test", "--allow evil.test"), ("net", "ok.test:80", "--allow ok.test:80")]'
json "and so is who was ended meanwhile" "$("${IN[@]}" "${NET[@]}" --timeout 2s --json -c 'curl -s http://evil.test/; sleep 60')" \
    'v["timed_out"] and [d["target"] for d in v["denials"]] == ["evil.test"]'
NET=(--net all)
is "--net all" "$(get http://evil.test/)" "server 93.184.216.66:80 host evil.test path /"
echo '{"network": "all", "rules": [{"op": "net", "effect": "deny", "path": "evil.test"}]}' >"$T/policy.json"
NET=(--policy "$T/policy.json")
holds "a rule for the operation net is one of these" ! get http://evil.test/
is "and of its host only" "$(get http://ok.test/)" "server 93.184.216.10:80 host ok.test path /"
NET=(--allow 93.184.216.66:80)
is "an address by rule" "$(get http://93.184.216.66/)" "server 93.184.216.66:80 host 93.184.216.66 path /"
status "a rule that is none is refused" 2 "${IN[@]}" --allow 'a..b' -- true
status "and a port" 2 "${IN[@]}" --publish 70000 -- true
status "and a preset" 2 "${IN[@]}" --packages nonsense -- true

# ---- a sandbox that stays ----
id=$(new --allow ok.test)
gw=$(gateways "$id")
is "its gateway runs" "$(wc -w <<<"$gw")" 1
is "the layer says so" "$(layer "$id")" transparent
fetch() { cs exec "$id" -- curl -sS --max-time 60 "$@"; }
status "it is reached" 0 fetch http://ok.test/one
status "rules can be replaced" 0 cs net "$id" --allow other.test --deny ok.test
status "what was allowed is not any more" 6 fetch http://ok.test/two
status "what was not is" 0 fetch http://other.test/three
json "the rules are told" "$(cs net "$id" --json)" \
    'v["mode"] == "transparent" and v["allow"] == ["other.test"] and v["deny"] == ["ok.test"]'
json "and the connections" "$(cs net "$id" --json)" \
    'any(e["kind"] == "connect" and e["verdict"] == "allow" and e["host"] == "ok.test" and e["port"] == 80 and
         e["address"] == "93.184.216.10" for e in v["events"]) and
     any(e["verdict"] == "deny" and e["host"] == "ok.test" for e in v["events"])'
status "a wrong rule changes nothing" 2 cs net "$id" --allow 'a..b'
status "as before" 0 fetch http://other.test/four
json "each connection is in the audit log once" "$(cs log "$id" --json | python3 -c 'import json,sys
print(json.dumps([json.loads(x) for x in sys.stdin]))')" \
    'len([x for x in v if x["op"] == "net" and x["args"]["kind"] == "connect" and x["target"] == "ok.test:80"]) == 1 and
     [x for x in v if x["op"] == "net" and x["args"]["kind"] == "connect"][0]["args"]["address"] == "93.184.216.10" and
     any(x["op"] == "net" and x["verdict"] == "deny" and x["target"] == "ok.test" for x in v) and
     any(x["op"] == "net" and x["args"]["kind"] == "close" and x["args"]["down"] > 0 for x in v)'
status "the log verifies" 0 cs log "$id" --verify
kill -9 "$gw"
is_off() { [ "$(layer "$id")" = off ]; }
holds "without its gateway: off" eventually is_off
status "and everything else works" 0 cs exec "$id" -- true
cs exec "$id" -- true
is "which is on record, once" "$(cs log "$id" --json | grep -c '"target":"the network gateway has ended"')" 1
status "a connection is refused, not left waiting" 7 fetch http://93.184.216.20/
status "and so does a question" 6 fetch http://other.test/
status "new rules cannot be had" 1 cs net "$id" --allow ok.test
cs destroy "$id"
id=$(new --allow ok.test)
gw=$(gateways "$id")
cs destroy "$id"
holds "destroyed: the gateway ends" gone "$gw"
id=$(new --allow ok.test)
gw=$(gateways "$id")
kill -9 "$(cs info "$id" --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["keeper_pid"])')"
holds "its keeper is killed: the gateway ends" gone "$gw"

"$CAISSON" run --workspace "$WS" --allow ok.test -- sh -c 'touch started; sleep 600' &
owner=$!
holds "a command runs" eventually test -e "$WS/started"
id=$(cd "$XDG_STATE_HOME/caisson/audit" && printf '%s\n' jail-*.jsonl | sort | tail -n 1) # the newest
gw=$(gateways "${id%.jsonl}")
is "with one gateway" "$(wc -w <<<"$gw")" 1
kill -9 $owner
holds "its owner is killed: the gateway ends" gone "$gw"

# ---- cutting ----
id=$(new --allow ok.test --allow other.test)
cs exec "$id" -- bash -c 'exec 5<>/dev/tcp/ok.test/7; exec 6<>/dev/tcp/other.test/7
    echo up >&5; read -r -t 60 a <&5; echo up >&6; read -r -t 60 b <&6; echo "$a$b" >up
    cat <&5 >/dev/null; echo cut >cut; echo still >&6; read -r -t 60 c <&6; echo "$c" >kept' &
holds "two connections are open" eventually test -s "$WS/up"
cs net "$id" --allow other.test
holds "a rule that is taken away cuts its connection" eventually test -s "$WS/cut"
holds "and no other" eventually test -s "$WS/kept"
is "which goes on" "$(cat "$WS/kept")" still
wait
cs destroy "$id"

# ---- ports ----
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
id=$(new --publish "$port:8080")
cs exec "$id" -- bash -c 'nohup python3 -m http.server --bind 127.0.0.1 8080 >/dev/null 2>&1 &'
status "a port inside is waited for" 0 cs wait "$id" --port 8080 --timeout 60s
like "and is on the host's loopback" "$(curl -sS --max-time 60 "http://127.0.0.1:$port/")" "*ca.pem*"
cs destroy "$id"
id=$(new --publish 0:8080)
cs exec "$id" -- bash -c 'nohup python3 -m http.server --bind 127.0.0.1 8080 >/dev/null 2>&1 &'
cs wait "$id" --port 8080 --timeout 60s
chosen=$(cs net "$id" --json | python3 -c 'import json,re,sys
print(re.search(r"port 8080 inside is (127\.0\.0\.1:[0-9]+)", json.load(sys.stdin)["detail"])[1])')
like "one that is any is told to whoever asks" "$(curl -sS --max-time 60 "http://$chosen/")" "*ca.pem*"
cs destroy "$id"
holds "and no longer" ! curl -sS --max-time 60 "http://127.0.0.1:$port/"
(cd "$WORLD" && exec python3 -m http.server --bind 127.0.0.1 "$port" >/dev/null 2>&1) &
server=$!
eventually curl -sS "http://127.0.0.1:$port/"
NET=(--host-port "$port")
like "a port of the host is lent" "$(get "http://127.0.0.1:$port/")" "*queries*"
NET=(--allow ok.test)
holds "and not without a rule" ! get "http://127.0.0.1:$port/"
kill "$server"
wait

# ---- where the kernel lacks it ----
lacking=("$PROBE" without netfilter)
proxied() { "${lacking[@]}" "$CAISSON" run --workspace "$WS" --timeout 60s --allow ok.test:443 --allow ok.test:80 "$@"; }
json "the layer says proxy" "$(proxied --json -- true)" \
    '[x["status"] for x in v["layers"] if x["name"] == "net"] == ["proxy"]'
is "https through the proxy's variables" "$(proxied -- curl -sS --cacert ca.pem https://ok.test/)" \
    "server 93.184.216.10:443 host ok.test path /"
is "http too" "$(proxied -- curl -sS http://ok.test/p)" "server 93.184.216.10:80 host ok.test path /p"
status "who ignores them reaches nothing" 6 proxied -- curl -sS --noproxy '*' http://ok.test/
status "another name is refused" 56 proxied -- curl -sS --cacert ca.pem https://other.test/
like "and named" "$err" "*denied net 'other.test:443'*"

# ---- the second rung cannot have it ----
chmod 711 "$T" && chmod 777 "$WS" # commands of a root caller are nobody
status "without namespaces rules are refused" 125 "$PROBE" without userns "$CAISSON" run --allow-weaker --workspace "$WS" --allow ok.test -- true
like "by name" "$err" "*network rules*"
status "on local too" 125 cs run --backend local --allow ok.test -- true
