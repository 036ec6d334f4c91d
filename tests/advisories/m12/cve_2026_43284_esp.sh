#!/bin/bash
# CVE-2026-43284 ("Dirty Frag"), Linux: decryption of ESP in place, on pages that were spliced into a UDP socket, changes the
# page cache.
# Escaped: the code is reached from inside. Whether this kernel has the bug is not the question.
# shellcheck disable=SC2317,SC2034
NEEDS="syscalls"
. "${0%/*}/../lib.sh"
prepare() { :; }
attack() { probe udpencap; }
escaped() { probe_escaped; }
attempt "udpencap" sh -c "/usr/bin/python3 $here/probe.py udpencap | grep -q ESCAPED"
