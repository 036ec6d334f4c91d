#!/bin/bash
# C6: the jail as it is really built refuses the calls that ordinary work does not need, on every
# ABI, and kills nobody for trying. (seccomp_table.c tries every number against the policy.)
# shellcheck source=tests/escape/lib.sh
. "${0%/*}/lib.sh"

for call in $("$PROBE" call-names); do
    attempt "$call" call "$call"
    attempt "$call, as i386" call-i386 "$call"
done
for call in keyctl mount bpf io_uring_setup; do
    attempt "$call, as x32" call-x32 $call
done

# ---- sockets: family, type, protocol ----
sock() { attempt "socket: $1" socket "$2" "$3" "$4"; }
sock vsock 40 1 0
sock packet 17 3 768
sock alg 38 5 0
sock xdp 44 3 0
sock bluetooth 31 3 1
sock can 29 3 1
sock rds 21 5 0
sock tipc 30 5 0
sock kcm 41 2 0
sock qrtr 42 2 0
sock key 15 3 2
sock "netlink: netfilter" 16 3 12
sock "netlink: audit" 16 3 9
sock "netlink: uevent" 16 3 15
sock "netlink: generic" 16 3 16
sock "netlink: sock_diag" 16 3 4
sock "netlink: xfrm" 16 3 6
sock "raw" 2 3 1
sock "raw, IPv6" 10 3 58
sock "SOCK_PACKET" 2 10 768
sock "sctp" 2 1 132
sock "mptcp" 2 1 262
sock "dccp" 2 6 33
sock "udp-lite is refused or harmless" 2 2 255
for ok in "1 1 0" "2 1 0" "2 2 0" "10 1 0" "16 3 0"; do
    # shellcheck disable=SC2086
    like "control: socket $ok works" "$(inside socket $ok)" "ESCAPED*"
done

# ---- personality ----
attempt "READ_IMPLIES_EXEC" personality 0x0400000
attempt "MMAP_PAGE_ZERO" personality 0x0100000
attempt "another system" personality 0x0006
like "control: ADDR_NO_RANDOMIZE is for debuggers" "$(inside personality 0x0040000)" "ESCAPED*"
