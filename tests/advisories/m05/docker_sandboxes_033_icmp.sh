#!/bin/bash
# Docker Sandboxes before 0.33: ICMP and UDP passed beside the proxy.
# Escaped: a datagram or an echo request arrives outside.
# shellcheck disable=SC2317,SC2034
NEEDS="world nonet"
. "${0%/*}/../lib.sh"
prepare() { before=$(served '^udp'); cp "$here/../net/client.py" "$WS"; }
escaped() { settle; [ "$(served '^udp')" -gt "$before" ] || grep -qs '1 received' "$R"/said*; }
LOOK='for p in 443 53 123; do python3 client.py udp 93.184.216.66 $p data; python3 client.py udp 2a00:200::10 $p data; done; ping -c 1 -W 2 93.184.216.66'
attack() { inside "$LOOK"; [ "$BOX" = none ] && eventually test "$(served '^udp')" -gt "$before"; }
attempt "without network"
attack() { ALLOW=(ok.test); inside "$LOOK"; }
case " ${OFFERS[$SANDBOX]} " in *' netrules '*) attempt "with a host allowed" ;; esac
