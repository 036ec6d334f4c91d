#!/bin/bash
# The index that the user's package manager is configured for, at a private address, on this host's loopback
# and where no configuration helps; and a port of loopback as a network rule.
# shellcheck disable=SC2016 # expanded inside
# shellcheck source=tests/net/lib.sh
. "${0%/*}/lib.sh"
unset "${!npm_config_@}" "${!NPM_CONFIG_@}" "${!PIP_@}"
export HOME=$T/user-home
mkdir -p "$HOME"
conf() { printf 'registry=%s\n' "$1" >"$HOME/.npmrc"; }

# ---- a name that resolves to a private address ----
conf http://private.bad.test/
NET=(--allow private.bad.test)
holds "a rule for the name is not enough" ! get http://private.bad.test/
NET=(--packages npm)
like "the configured index is reached at its private address" "$(get http://private.bad.test/)" "server 10.1.2.3:80*"
holds "its port is the one that was configured" ! get http://private.bad.test:7/
holds "the address itself is not opened" ! get http://10.1.2.3/
for manager in yarn pnpm bun; do
    NET=(--packages "$manager")
    like "$manager reads the same file" "$(get http://private.bad.test/)" "server 10.1.2.3:80*"
done
NET=(--packages pip)
holds "pip does not" ! get http://private.bad.test/
like "but its own variable" "$(PIP_INDEX_URL=http://private.bad.test/simple get http://private.bad.test/)" "server 10.1.2.3:80*"
NET=(--allow private.bad.test:80/private)
like "a rule can permit it too" "$(get http://private.bad.test/)" "server 10.1.2.3:80*"
conf http://10.1.2.3/
NET=(--packages npm)
like "an index that is configured by its address" "$(get http://10.1.2.3/)" "server 10.1.2.3:80*"

# ---- the tool inside uses it ----
conf http://user:password@private.bad.test/npm/
NET=(--packages npm)
is "the tool inside gets the index, without the password" "$("${IN[@]}" "${NET[@]}" -c 'echo $npm_config_registry')" \
    http://private.bad.test/npm/
if has npm "npm asks the index for a package"; then
    before=$(served /npm/left-pad)
    "${IN[@]}" "${NET[@]}" -- npm view left-pad --fetch-retries 0 >/dev/null 2>&1
    holds "npm asks the index for a package" comes /npm/left-pad "$before"
fi
NET=(--packages npm --env npm_config_registry=http://ok.test/)
is "unless the variable is given" "$("${IN[@]}" "${NET[@]}" -c 'echo $npm_config_registry')" http://ok.test/
NET=(--packages pip)
is "others do not get it" "$("${IN[@]}" "${NET[@]}" -c 'echo $npm_config_registry')" ""

# ---- what a configured name never opens ----
port=$(/usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
/usr/bin/python3 client.py serve "$port" >/dev/null &
server=$!
eventually curl -s "http://127.0.0.1:$port/"
NET=(--packages npm)
for name in four.bad.test six.bad.test mapped.bad.test lan.bad.test; do
    conf "http://$name:$port/"
    holds "a configured name that resolves to this host: $name" ! get "http://$name:$port/"
    like "with its reason: $name" "$(cat "$T/.get.err")" "*denied net '$name:$port'*"
done
for name in meta.bad.test meta6.bad.test meta100.bad.test; do
    conf "http://$name/"
    holds "a configured name that resolves to a metadata service: $name" ! get "http://$name/"
done
conf http://169.254.169.254/
holds "a metadata service that is configured by its address" ! get http://169.254.169.254/

# ---- loopback ----
is "the control: this host has a server" "$(curl -sS "http://127.0.0.1:$port/")" "the host itself"
conf "http://localhost:$port/"
NET=(--packages npm)
is "an index on this host's loopback" "$(get "http://localhost:$port/")" "the host itself"
NET=(--packages pip)
holds "is not lent to others" ! get "http://localhost:$port/"
for rule in "localhost:$port" "127.0.0.1:$port" "[::1]:$port" "localhost:9,$port"; do
    NET=(--allow "$rule")
    is "--allow $rule lends the port" "$(get "http://127.0.0.1:$port/")" "the host itself"
    is "--allow $rule: by its name" "$(get "http://localhost:$port/")" "the host itself"
done
NET=(--allow "localhost:$port" --host-port "$port")
is "twice is once" "$(get "http://127.0.0.1:$port/")" "the host itself"
printf '{"network": {"allow": ["127.0.0.1:%s"]}}' "$port" >"$T/p.json"
NET=(--policy "$T/p.json")
is "in a file" "$(get "http://127.0.0.1:$port/")" "the host itself"
printf '{"network": {"deny": ["127.0.0.0/8"]}}' >"$T/p.json"
NET=(--policy "$T/p.json" --allow "localhost:$port")
holds "a deny rule wins" ! get "http://127.0.0.1:$port/"
NET=(--allow "localhost:$((port == 9 ? 10 : 9))")
holds "another port is not lent" ! get "http://127.0.0.1:$port/"

# ---- rules of a sandbox that runs ----
id=$(new --allow "localhost:$port")
status "rules with a lent port are replaced by rules with it" 0 cs net "$id" --allow "localhost:$port" --allow ok.test
is "it stays reachable" "$(cs exec "$id" -- curl -sS "http://localhost:$port/")" "the host itself"
json "why knows the lent port" "$(cs why "$id" net "localhost:$port" --json)" 'v["allowed"] is True'
like "and the option of another" "$(cs why "$id" net 127.0.0.1:9)" "*--host-port 9*"
status "a command with rules of its own" 125 cs exec "$id" --allowed-domain "localhost:$port" -- true
like "has a loopback of its own" "$err" "*localhost:$port*has a loopback of its own*"
status "another port" 1 cs net "$id" --allow localhost:9
like "is refused with the option" "$err" "*localhost:9*fixed when it is made*hint: create the sandbox with --host-port 9"
cs destroy "$id"
kill "$server"
wait
