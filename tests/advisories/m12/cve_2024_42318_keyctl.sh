#!/bin/bash
# CVE-2024-42318, Linux (Landlock): keyctl(KEYCTL_SESSION_TO_PARENT) gave the parent new credentials without
# its Landlock domain.
# Escaped: the call is reached from inside.
# shellcheck disable=SC2317,SC2034
NEEDS="landlock"
. "${0%/*}/../lib.sh"
prepare() { :; }
attack() { probe keyctl; }
escaped() { probe_escaped; }
attempt "keyctl" sh -c "/usr/bin/python3 $here/probe.py keyctl | grep -q ESCAPED"
