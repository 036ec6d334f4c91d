#!/bin/bash
# CVE-2026-43500 ("Dirty Frag"), Linux: the same in rxrpc.
# Escaped: the code is reached from inside. Whether this kernel has the bug is not the question.
# shellcheck disable=SC2317,SC2034
NEEDS="syscalls"
. "${0%/*}/../lib.sh"
prepare() { :; }
attack() { probe socket 33 2 2; }
escaped() { probe_escaped; }
attempt "socket" sh -c "/usr/bin/python3 $here/probe.py socket 33 2 2 | grep -q ESCAPED"
