#!/bin/bash
# CVE-2026-46300 ("Fragnesia"), Linux: the same through ESP in TCP.
# Escaped: the code is reached from inside. Whether this kernel has the bug is not the question.
# shellcheck disable=SC2317,SC2034
NEEDS="syscalls"
. "${0%/*}/../lib.sh"
prepare() { :; }
attack() { probe espintcp; }
escaped() { probe_escaped; }
attempt "espintcp" sh -c "/usr/bin/python3 $here/probe.py espintcp | grep -q ESCAPED"
