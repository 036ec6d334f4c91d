#!/bin/bash
# anthropics/claude-code#87381: a CONNECT inside an allowed connection asks the server behind it to relay to
# another host.
# Escaped: a server that is allowed receives a CONNECT, or a request for another host, from inside.
# shellcheck disable=SC2317,SC2034
NEEDS="world netrules"
. "${0%/*}/../lib.sh"
prepare() { ALLOW=(ok.test); echo mark >>"$WORLD/served"; before=$(wc -l <"$WORLD/served"); cp "$here/through.py" "$WS"; }
escaped() { settle; tail -n "+$((before + 1))" "$WORLD/served" | grep -v 93.184.216.20 | grep 'evil\|CONNECT'; }
CONNECT="CONNECT evil.test:80 HTTP/1.1\r\nHost: evil.test\r\n\r\n"
ABSOLUTE="GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n"
attack() { inside "python3 through.py connect ok.test 80 '$CONNECT'; python3 through.py socks ok.test 80 '$CONNECT'"; }
attempt "CONNECT through an allowed server"
attack() { inside "python3 through.py connect ok.test 80 '$ABSOLUTE'; python3 through.py socks ok.test 80 '$ABSOLUTE'"; }
attempt "a request for another host through an allowed server"
