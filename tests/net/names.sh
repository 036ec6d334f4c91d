#!/bin/bash
# Names and addresses that must not be reached (cases 10 to 18). Each refusal has its control: the same
# attempt with the rule that allows it, or on the host beside.
# shellcheck source=tests/net/lib.sh
. "${0%/*}/lib.sh"
OK=(--allow 'ok.test:443,80')
EVIL="server 93.184.216.66:80 host evil.test path /"

# ---- 10: the address of an allowed server ----
NET=("${OK[@]}")
before=$(served 93.184.216.10)
is "case 10: its address, with another name in TLS" "$(try tls 93.184.216.10 443 evil.test evil.test)" reset
is "case 10: its address, with another Host" "$(try raw 93.184.216.10 80 'GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n')" reset
is "case 10: its address, even with its name" "$(try tls 93.184.216.10 443 ok.test ok.test)" reset
is "case 10: nothing of it came there" "$(served 93.184.216.10)" "$before"
is "case 10: its name, with another name in TLS" "$(try tls ok.test 443 evil.test evil.test)" reset
like "case 10: its name, with another Host" "$(try raw ok.test 80 'GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n')" "HTTP/1.1 403*"
is "case 10: nor of these" "$(served 93.184.216.10)" "$before"
NET=("${OK[@]}" --allow 93.184.216.10)
is "case 10: the control: with a rule for the address" "$(try tls 93.184.216.10 443 evil.test evil.test)" \
    "server 93.184.216.10:443 host evil.test path /tls"

# ---- 11: another port ----
NET=("${OK[@]}")
before=$(served 93.184.216.10:7)
is "case 11: another port" "$(try tcp ok.test 7)" reset
is "case 11: nothing came there" "$(served 93.184.216.10:7)" "$before"
NET=(--allow ok.test:7)
is "case 11: the control: with a rule for it" "$(try tcp ok.test 7)" answered

# ---- 12: names that look like it ----
for name in ok.test.evil.test evil-ok.test okxtest x.evil.test test; do
    NET=("${OK[@]}" --allow '*.ok.test')
    before=$(asked "$name")
    holds "case 12: $name" ! get "http://$name/"
    is "case 12: $name: nobody was asked" "$(asked "$name")" "$before"
    [ "$name" = test ] && continue
    NET=(--allow "$name")
    is "case 12: the control: $name with a rule" "$(get "http://$name/")" "server 93.184.216.66:80 host $name path /"
done
NET=(--allow ok.test --allow '*.ok.test')
is "case 12: a label with a dot in it" "$(try dns A 'ok\x2etest')" "NXDOMAIN 0"
is "case 12: a label with a zero byte" "$(try dns A 'ok.test\x00.evil.test')" "NXDOMAIN 0"
is "case 12: a zero byte below a wildcard" "$(try dns A 'a\x00.ok.test')" "NXDOMAIN 0"
is "case 12: a label that is too long" "$(try dns A "$(printf 'a%.0s' {1..64}).ok.test")" "FORMERR 0"
is "case 12: the control: a good one" "$(try dns A 'a.ok.test')" "NOERROR 1"

# ---- 13: UDP, QUIC ----
NET=("${OK[@]}")
for to in ok.test 93.184.216.10 2a00:200::10; do
    before=$(served '^udp:443')
    like "case 13: a datagram to $to:443" "$(try udp $to 443 quic)" "E[A-Z]*"
    is "case 13: and it did not come" "$(served '^udp:443')" "$before"
done
NET=(--net all)
like "case 13: nor with everything allowed" "$(try udp 93.184.216.10 443 quic)" "E[A-Z]*"
is "case 13: and it did not come" "$(served '^udp:443')" "$before"
is "case 13: the control: on the host" "$(beside udp 93.184.216.10 443 quic)" sent
holds "case 13: the control: it comes" eventually comes '^udp:443' "$before"

# ---- 14: a question for a foreign name stays inside ----
NET=("${OK[@]}" --allow '*.ok.test')
before=$(wc -l <"$WORLD/queries")
for kind in A AAAA TXT; do
    is "case 14: $kind of a name that carries something" "$(try dns $kind "c2VjcmV0.dGV4dA.x.evil.test")" "NXDOMAIN 0"
    is "case 14: the same by TCP" "$(try dns $kind "c2VjcmV0.dGV4dA.x.evil.test" tcp)" "NXDOMAIN 0"
done
is "case 14: an allowed one is answered" "$(try dns A ok.test)" "NOERROR 1"
is "case 14: one below a wildcard too" "$(try dns A c2VjcmV0.ok.test)" "NOERROR 1"
is "case 14: and no question left, not even for these" "$(wc -l <"$WORLD/queries")" "$before"
beside dns A c2VjcmV0.x.evil.test >/dev/null
more_queries() { [ "$(wc -l <"$WORLD/queries")" -gt "$before" ]; }
holds "case 14: the control: on the host it is asked" eventually more_queries

# ---- 15: other resolvers ----
before=$(served '^udp:53') queries=$(wc -l <"$WORLD/queries")
like "case 15: DNS to another server" "$(try dns A evil.test @93.184.216.66)" "E[A-Z]*"
like "case 15: DNS to the host's server" "$(try dns A ok.test @100.127.255.1)" "E[A-Z]*"
is "case 15: the same by TCP" "$(try dns A evil.test @93.184.216.66 tcp)" reset
is "case 15: nothing of it came" "$(served '^udp:53') $(wc -l <"$WORLD/queries")" "$before $queries"
beside udp 93.184.216.66 53 question >/dev/null
holds "case 15: the control: on the host it comes" eventually comes '^udp:53' "$before"
before=$(served 93.184.216.66)
is "case 15: DNS over TLS" "$(try tcp 93.184.216.66 853)" reset
is "case 15: DNS over HTTPS" "$(try tls 93.184.216.66 443 evil.test evil.test)" reset
is "case 15: DNS over HTTPS by the allowed name's address" "$(try tls ok.test 443 evil.test evil.test)" reset
is "case 15: nothing of it came either" "$(served 93.184.216.66)" "$before"
NET=(--allow evil.test)
is "case 15: the control: DNS over TLS by rule" "$(try tcp evil.test 853)" answered
is "case 15: the control: DNS over HTTPS by rule" "$(try tls evil.test 443 evil.test evil.test)" "server 93.184.216.66:443 host evil.test path /tls"

# ---- 16: questions of other kinds, and too many ----
NET=("${OK[@]}" --allow '*.ok.test')
long=$(printf 'aaaaaaaaa.%.0s' {1..24})ok.test # 247 bytes
longer=$(printf 'aaaaaaaaa.%.0s' {1..25})ok.test
before=$(wc -l <"$WORLD/queries")
for kind in TXT NULL ANY SVCB HTTPS 6; do
    is "case 16: $kind of an allowed name" "$(try dns $kind ok.test)" "NOERROR 0"
    is "case 16: $kind of another" "$(try dns $kind evil.test)" "NXDOMAIN 0"
done
is "case 16: the longest of names" "$(try dns A "$long")" "NOERROR 1"
like "case 16: a longer one" "$(try dns A "$longer")" "FORMERR 0"
like "case 16: the control: a hundred questions are answered" "$(try flood 100 evil.test)" "NXDOMAIN=100"
like "case 16: a flood is refused" "$(try flood 2000 evil.test)" "NXDOMAIN=*REFUSED=*"
is "case 16: and nothing of all that left" "$(wc -l <"$WORLD/queries")" "$before"

# ---- 17: allowed names with answers that no name may have ----
port=$(/usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
/usr/bin/python3 client.py serve "$port" >/dev/null &
server=$!
eventually curl -s "http://127.0.0.1:$port/"
bad() # NAME PORT RULE WANT
{
    NET=(--allow "$1")
    holds "case 17: $1" ! get "http://$1:$2/"
    like "case 17: $1: with its reason" "$(cat "$T/.get.err")" "*denied net '$1:$2'*"
    NET=(--net all)
    holds "case 17: $1: with everything allowed" ! get "http://$1:$2/"
    NET=(--allow "$1" --allow "$3")
    like "case 17: the control: $1 with a rule for the address" "$(get "http://$1:$2/")" "$4"
}
bad four.bad.test "$port" "127.0.0.1:$port" "the host itself"
bad six.bad.test "$port" "[::1]:$port" "the host itself"
bad mapped.bad.test "$port" "127.0.0.1:$port" "the host itself"
bad lan.bad.test "$port" "93.184.216.200:$port" "the host itself"
bad private.bad.test 80 10.1.2.3:80 "server 10.1.2.3:80*"
bad meta.bad.test 80 169.254.169.254:80 "server 169.254.169.254:80*"
bad meta6.bad.test 80 "[fd00:ec2::254]:80" "server fd00:ec2::254:80*"
bad meta100.bad.test 80 100.100.100.200:80 "server 100.100.100.200:80*"
bad nat64.bad.test 80 "[64:ff9b::7f00:1]:80" "server 64:ff9b::7f00:1:80*"
for name in zero zero6; do # what Linux takes for itself
    NET=(--allow "$name.bad.test")
    holds "case 17: $name.bad.test" ! get "http://$name.bad.test:$port/"
    is "case 17: the control: $name.bad.test on the host" "$(curl -sS "http://$name.bad.test:$port/")" "the host itself"
done
NET=(--allow four.bad.test --allow 127.0.0.0/8:80)
holds "case 17: a rule for another port does not help" ! get "http://four.bad.test:$port/"
NET=(--allow 0.0.0.0/0)
holds "case 17: nor does a network that only has it in it" ! get "http://127.0.0.1:$port/"
like "case 17: not by the address either" "$(try raw 10.1.2.3 80 'GET / HTTP/1.1\r\nHost: x\r\n\r\n')" reset
is "case 17: the control: that network is open" "$(get -H 'Host: evil.test' http://93.184.216.66/)" "$EVIL"
NET=(--allow mixed.test)
is "case 17: of several answers the good one is taken" "$(get http://mixed.test/)" "server 93.184.216.10:80 host mixed.test path /"

# ---- 18: answers that change ----
NET=(--allow "rebind.test" --allow "rebound.test")
"${IN[@]}" "${NET[@]}" -- bash -c "for n in 1 2 3; do curl -sS --max-time 60 http://rebind.test:80/; sleep 1.2; done; curl -sS --max-time 60 http://rebind.test:$port/" >"$T/rebind" 2>/dev/null
is "case 18: first good, then the host itself: only the first" "$(cat "$T/rebind")" "server 93.184.216.10:80 host rebind.test path /"
is "case 18: the other was an answer" "$(curl -sS "http://rebind.test:$port/")" "the host itself"
kill "$server"
wait
