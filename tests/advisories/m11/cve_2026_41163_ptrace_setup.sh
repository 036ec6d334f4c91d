#!/bin/bash
# CVE-2026-41163, bubblewrap 0.11 before 0.11.2, installed setuid: a process of the user could trace the one
# that sets the sandbox up and use its privileges.
# Escaped: a process inside traces one outside, or the one that set its sandbox up.
# shellcheck disable=SC2317,SC2034,SC2016
NEEDS="commands"
. "${0%/*}/../lib.sh"
prepare() { sleep 1000 & victim=$!; }
escaped() { kill -9 $victim 2>/dev/null; wait $victim 2>/dev/null; probe_escaped; }
can_trace() { sleep 100 & p=$!; /usr/bin/python3 "$here/probe.py" ptrace $p | grep -q ESCAPED; r=$?; kill -9 $p; return $r; }
attack() { probe ptrace $victim $$; }
attempt "a host process" can_trace
attack() { if [ "$BOX" = none ]; then probe ptrace $victim; else probe ptrace 1; fi; }
case $SANDBOX in caisson) attempt "the first process of the sandbox, which made it" can_trace ;; esac
attack() { if [ "$BOX" = none ]; then probe ptrace $victim; else inside 'find / -xdev -perm /6000 -type f 2>/dev/null | head -n 3; su -c id </dev/null; true'; inside 'grep -q "NoNewPrivs:.*1" /proc/self/status || echo ESCAPED set-id programs work'; fi; }
attempt "a set-id program gives privileges" can_trace
