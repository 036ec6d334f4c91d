#!/bin/bash
# io_uring, Linux: a ring performs operations that a filter on system calls does not see; it is the source of many
# kernel exploits since 2021.
# Escaped: the code is reached from inside. Whether this kernel has the bug is not the question.
# shellcheck disable=SC2317,SC2034
NEEDS="syscalls"
. "${0%/*}/../lib.sh"
prepare() { :; }
attack() { probe uring; }
escaped() { probe_escaped; }
attempt "uring" sh -c "/usr/bin/python3 $here/probe.py uring | grep -q ESCAPED"
