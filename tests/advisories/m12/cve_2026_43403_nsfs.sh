#!/bin/bash
# CVE-2026-43403, Linux: ioctls on namespace files gave descriptors or data of namespaces that the caller may
# not see.
# Escaped: a process inside has a descriptor of a namespace of the host.
# shellcheck disable=SC2317,SC2034
NEEDS="commands"
. "${0%/*}/../lib.sh"
prepare() { inodes=$(stat -Lc %i /proc/self/ns/user /proc/self/ns/mnt /proc/self/ns/pid | tr '\n' ' '); }
attack() { probe nsfs "$inodes"; }
escaped() { probe_escaped; }
attempt "NS_GET_USERNS, NS_GET_PARENT, NS_MNT_GET_NEXT"
