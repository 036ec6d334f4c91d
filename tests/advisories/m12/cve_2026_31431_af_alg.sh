#!/bin/bash
# CVE-2026-31431 ("Copy Fail"), Linux: an AEAD of AF_ALG with spliced pages writes to the page cache of a file that
# is open for reading.
# Escaped: the code is reached from inside. Whether this kernel has the bug is not the question.
# shellcheck disable=SC2317,SC2034
NEEDS="syscalls"
. "${0%/*}/../lib.sh"
prepare() { :; }
attack() { probe alg; }
escaped() { probe_escaped; }
attempt "alg" sh -c "/usr/bin/python3 $here/probe.py alg | grep -q ESCAPED"
