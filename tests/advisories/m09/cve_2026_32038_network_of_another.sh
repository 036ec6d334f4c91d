#!/bin/bash
# CVE-2026-32038, OpenClaw: the option for the network took `container:NAME` and put the sandbox into the
# network of another one.
# Escaped: a value that names a network elsewhere is taken, and a port outside is reached from inside.
# shellcheck disable=SC2317,SC2034
NEEDS="caisson"
. "${0%/*}/../lib.sh"
MAY_REFUSE=1
prepare()
{
    /usr/bin/python3 "$here/listen.py" "$R/port" "$R/came" &
    listener=$!
    eventually test -s "$R/port"
    port=$(cat "$R/port")
}
attack()
{
    local v
    if [ "$BOX" = none ]; then inside "echo x >/dev/tcp/127.0.0.1/$port"; else
        box_open
        for v in host "container:$BOX_ID" "container:x" "ns:/proc/$$/ns/net" "/proc/$$/ns/net" "$BOX_ID" bridge private none,host ' all' ALL; do
            "$CAISSON" run --backend jail --workspace "$WS" --net "$v" -c "echo x >/dev/tcp/127.0.0.1/$port"
            echo "{\"network\": \"$v\"}" >"$R/p.json"
            "$CAISSON" run --backend jail --workspace "$WS" --policy "$R/p.json" -c "echo x >/dev/tcp/127.0.0.1/$port"
        done
        "$CAISSON" run --backend jail --workspace "$WS" -c "echo x >/dev/tcp/127.0.0.1/$port"
    fi
}
escaped() { kill "$listener"; wait "$listener"; grep -q connection "$R/came"; }
attempt "the network of something else"
