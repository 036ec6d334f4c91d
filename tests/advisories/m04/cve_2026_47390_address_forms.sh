#!/bin/bash
# CVE-2026-47390: a block on loopback and private addresses compared text, and 127.1, 2130706433, octal,
# hexadecimal and IPv4-mapped forms were not recognised.
# Escaped: a server on the loopback of the host receives a connection from inside, with rules that allow a
# name or everything.
# shellcheck disable=SC2317,SC2034
NEEDS="world netrules"
. "${0%/*}/../lib.sh"
prepare()
{
    /usr/bin/python3 "$here/listen.py" "$R/port" "$R/came" 0.0.0.0 &
    listener=$!
    eventually test -s "$R/port"
    port=$(cat "$R/port")
}
escaped() { kill "$listener"; wait "$listener"; grep -q connection "$R/came"; }
forms="127.0.0.1 127.1 2130706433 0177.0.0.1 017700000001 0x7f.0.0.1 0x7f000001 [::ffff:127.0.0.1] [::ffff:7f00:1] [::127.0.0.1] 0.0.0.0 0 [::] localhost localhost. 127.0.0.1.nip 100.127.255.2 93.184.216.200 loop.test [64:ff9b::7f00:1]"
gets() { local f; for f in $forms; do printf "curl -sS --max-time 5 --noproxy '' 'http://%s:%s/'; " "$f" "$port"; [ "$BOX" = none ] && return; done; for f in $forms; do printf "python3 through.py connect '%s' %s x; " "$f" "$port"; done; }
attack() { cp "$here/through.py" "$WS"; ALLOW=(ok.test '*.ok.test'); inside "$(gets)"; }
attempt "with a rule for a name"
attack() { cp "$here/through.py" "$WS"; ALLOW=(ok.test loop.test four.bad.test mapped.bad.test lan.bad.test zero.bad.test); forms="loop.test four.bad.test mapped.bad.test lan.bad.test zero.bad.test"; inside "$(gets)"; }
all_forms=$forms
attempt "with rules for names that resolve to the host"
forms=$all_forms
attack() { cp "$here/through.py" "$WS"; EXTRA=(--net all); inside "$(gets)"; }
case $SANDBOX in caisson) attempt "with everything allowed" ;; esac
