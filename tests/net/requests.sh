#!/bin/bash
# Requests that must not leave (cases 19 to 23): redirects, proxies' forms, TLS without or with another
# name, later requests on a connection. Bytes are sent as they are here, by client.py.
# shellcheck source=tests/net/lib.sh
. "${0%/*}/lib.sh"
NET=(--allow 'ok.test:443,444,80,7')
BOTH=(--allow 'ok.test:443,80' --allow 'evil.test:443,80')
ASK='GET / HTTP/1.1\r\nHost: ok.test\r\n\r\n'
TLS="server 93.184.216.10:443 host ok.test path /tls"
RETRY="server 93.184.216.10:444 host ok.test path /tls"
# nothing NAME: since the last `mark` no server saw anything that was for evil.test, by name or address
mark() { marked=$(served '^93.184.216.66\| evil.test'); }
nothing() { is "$1: nothing of it came anywhere" "$(served '^93.184.216.66\| evil.test')" "$marked"; }

# ---- 19: redirects ----
status "case 19: a redirect to another host" 6 get -L http://ok.test/to/http://evil.test/
mark
holds "case 19: or to its address" ! get -L http://ok.test/to/http://93.184.216.66/
nothing "case 19"
NET=("${BOTH[@]}")
is "case 19: the control: with a rule for it" "$(get -L http://ok.test/to/http://evil.test/)" "server 93.184.216.66:80 host evil.test path /"
NET=(--allow 'ok.test:443,444,80,7')
is "case 19: the control: to an allowed one" "$(get -L http://ok.test/to/http://ok.test/x)" "server 93.184.216.10:80 host ok.test path /x"

# ---- 20: forms that proxies use ----
mark
like "case 20: CONNECT to another host" "$(try raw ok.test 80 'CONNECT evil.test:443 HTTP/1.1\r\nHost: ok.test\r\n\r\n')" "HTTP/1.1 403*"
like "case 20: CONNECT to the allowed one" "$(try raw ok.test 80 'CONNECT ok.test:443 HTTP/1.1\r\nHost: ok.test\r\n\r\n')" "HTTP/1.1 403*"
like "case 20: an absolute target with a good Host" "$(try raw ok.test 80 'GET http://evil.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n')" "HTTP/1.1 403*"
like "case 20: a good absolute target with another Host" "$(try raw ok.test 80 'GET http://ok.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n')" "HTTP/1.1 403*"
like "case 20: two Hosts" "$(try raw ok.test 80 'GET / HTTP/1.1\r\nHost: ok.test\r\nHost: evil.test\r\n\r\n')" "HTTP/1.1 4*"
like "case 20: a Host that is folded" "$(try raw ok.test 80 'GET / HTTP/1.1\r\nHost: ok.test\r\nX: a\r\n Host: evil.test\r\n\r\n')" "HTTP/1.1 4*"
like "case 20: a Host with a space before its colon" "$(try raw ok.test 80 'GET / HTTP/1.1\r\nHost : evil.test\r\nHost: ok.test\r\n\r\n')" "HTTP/1.1 4*"
like "case 20: a good Host with userinfo of another" "$(try raw ok.test 80 'GET http://ok.test@evil.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n')" "HTTP/1.1 4*"
like "case 20: behind a balancer's header" "$(try raw ok.test 80 'PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n')" "HTTP/1.1 4*"
like "case 20: behind the other kind of it" "$(try raw ok.test 80 '\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n')" "HTTP/1.1 4*"
while read -r odd; do
    like "case 20: $odd" "$(try raw ok.test 80 "$odd"'\r\nHost: evil.test\r\n\r\n')" "HTTP/1.1 403*"
done <<'R'
\r\nGET / HTTP/1.1
\x20GET / HTTP/1.1
GET\t/\tHTTP/1.1
get / HTTP/1.1
GET / http/1.1
GET /
GET / HTTP/9.9
GET / HTTP/1.0
GET /\x00 HTTP/1.1
GET / HTTP/1.1\r
FOO / HTTP/1.1
FOO /
get /
FOO http://evil.test/
F(O / HTTP/1.1
(FOO / HTTP/1.1
F\x01O / HTTP/1.1
\x80 / HTTP/1.1
R
like "case 20: no Host at all" "$(try raw ok.test 80 'GET / HTTP/1.0\r\n\r\n')" "HTTP/1.1 403*"
like "case 20: a malformed method in pieces" "$(try raw ok.test 7 '(FOO / HT' 'TP/1.1\r\nHost: evil.test\r\n\r\n')" "*reset"
like "case 20: an upgrade to TLS, which could name another host" "$(try raw ok.test 80 'GET / HTTP/1.1\r\nHost: ok.test\r\nConnection: Upgrade\r\nUpgrade: TLS/1.0\r\n\r\n')" "HTTP/1.1 403*"
nothing "case 20"
like "case 20: the control: a good absolute target" "$(try raw ok.test 80 'GET http://ok.test/abs HTTP/1.1\r\nHost: ok.test\r\n\r\n')" "*server 93.184.216.10:80 host ok.test path http://ok.test/abs*"
like "case 20: the control: another method" "$(try raw ok.test 80 'PROPFIND /dav HTTP/1.1\r\nHost: ok.test\r\n\r\n')" "*server 93.184.216.10:80 host ok.test path /dav*"
like "case 20: the control: HTTP/1.0 with a Host" "$(try raw ok.test 80 'GET /old HTTP/1.0\r\nHost: OK.test.\r\n\r\n')" "*host OK.test. path /old*"
is "case 20: the control: another protocol" "$(try raw ok.test 7 'EHLO ok.test\r\n' | tr '\n' '|')" "EHLO ok.test|silent|"
is "case 20: the control: another one without a line end" "$(try raw ok.test 7 '( 2 ( edit-pipeline ) )' | tr '\n' '|')" "( 2 ( edit-pipeline ) )silent|"
like "case 20: the control: sent to the server itself, it answers" "$(beside raw 93.184.216.10 80 'GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n')" "*host evil.test*"

# ---- 21: what a ClientHello says ----
mark
is "case 21: the control: the right name" "$(try tls ok.test 443 ok.test ok.test)" "$TLS"
is "case 21: no name" "$(try tls ok.test 443 - ok.test)" reset
is "case 21: another name" "$(try tls ok.test 443 evil.test ok.test)" reset
is "case 21: the right name in three segments" "$(try tls ok.test 443 ok.test ok.test segments=3)" "$TLS"
is "case 21: in a segment for each byte of it, nearly" "$(try tls ok.test 443 ok.test ok.test segments=40)" "$TLS"
is "case 21: in five records" "$(try tls ok.test 443 ok.test ok.test records=5)" "$TLS"
is "case 21: in both" "$(try tls ok.test 443 ok.test ok.test records=7 segments=9)" "$TLS"
is "case 21: another name in three segments" "$(try tls ok.test 443 evil.test ok.test segments=3)" reset
is "case 21: another name in five records" "$(try tls ok.test 443 evil.test ok.test records=5)" reset
is "case 21: another name in both" "$(try tls ok.test 443 evil.test ok.test records=7 segments=9)" reset
is "case 21: an encrypted hello below another name" "$(try tls ok.test 443 evil.test ok.test ech)" reset
is "case 21: an encrypted hello without a name" "$(try tls ok.test 443 - ok.test ech)" reset
is "case 21: a warning before the hello" "$(try raw ok.test 443 '\x15\x03\x01\x00\x02\x01\x5a\x16\x03\x01')" reset
is "case 21: a hello in the form of SSL 2" "$(try raw ok.test 443 '\x80\x2e\x01\x03\x01\x00\x15\x00\x00\x00\x10')" reset
is "case 21: a second hello without a question for it" "$(try tls ok.test 443 ok.test ok.test 'after=\x16\x03\x01\x00\x01\x01')" reset
is "case 21: the control: a hello after a HelloRetryRequest" "$(try tls ok.test 444 ok.test ok.test)" "$RETRY"
is "case 21: in records and segments" "$(try tls ok.test 444 ok.test ok.test records2=5 segments2=7)" "$RETRY"
is "case 21: another name in the second hello" "$(try tls ok.test 444 ok.test ok.test again=no.test)" reset
is "case 21: in records and segments" "$(try tls ok.test 444 ok.test ok.test again=no.test records2=5 segments2=7)" reset
is "case 21: the control: TLS 1.2" "$(try tls ok.test 443 ok.test ok.test old)" "$TLS"
nothing "case 21"
is "case 21: the control: the server takes another name in the second hello" "$(beside tls 93.184.216.10 444 ok.test ok.test again=no.test)" answered
is "case 21: the control: the server takes another name" "$(beside tls 93.184.216.10 443 evil.test ok.test)" "$TLS"
is "case 21: the control: and none" "$(beside tls 93.184.216.10 443 - ok.test)" "$TLS"
is "case 21: the control: and an encrypted one" "$(beside tls 93.184.216.10 443 evil.test ok.test ech)" answered
# Known limits, as SECURITY.md has them: what TLS hides is not seen.
is "case 21: known limit: below the right name an encrypted hello passes" "$(try tls ok.test 443 ok.test ok.test ech)" answered
is "case 21: known limit: and a request for another host, inside" "$(try tls ok.test 443 ok.test evil.test)" "server 93.184.216.10:443 host evil.test path /tls"
is "case 21: no HTTPS record, so no key for such a hello, is ever given" "$(try dns HTTPS ok.test)" "NOERROR 0"

# ---- 22: a later request ----
mark
out=$(try raw ok.test 80 "$ASK" 'GET /second HTTP/1.1\r\nHost: evil.test\r\n\r\n')
like "case 22: the first request passes" "$out" "*server 93.184.216.10:80 host ok.test path /*"
like "case 22: the second, for another host, does not" "$out" "*reset"
out=$(try raw ok.test 80 "$ASK"'GET /second HTTP/1.1\r\nHost: evil.test\r\n\r\n')
like "case 22: nor in the same segment" "$out" "*reset"
out=$(try raw ok.test 80 'POST / HTTP/1.1\r\nHost: ok.test\r\nContent-Length: 4\r\n\r\nbodyGET /second HTTP/1.1\r\nHost: evil.test\r\n\r\n')
like "case 22: nor behind a body" "$out" "*reset"
out=$(try raw ok.test 80 'POST / HTTP/1.1\r\nHost: ok.test\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\nGET /second HTTP/1.1\r\nHost: evil.test\r\n\r\n')
like "case 22: nor behind chunks" "$out" "*reset"
like "case 22: a length and chunks at once are refused" \
    "$(try raw ok.test 80 'POST / HTTP/1.1\r\nHost: ok.test\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n')" "HTTP/1.1 4*"
like "case 22: two lengths too" \
    "$(try raw ok.test 80 'POST / HTTP/1.1\r\nHost: ok.test\r\nContent-Length: 4\r\nContent-Length: 50\r\n\r\nbody')" "HTTP/1.1 4*"
nothing "case 22"
out=$(try raw ok.test 80 "$ASK" 'GET /second HTTP/1.1\r\nHost: ok.test\r\n\r\n')
like "case 22: the control: a second one for the same host" "$out" "*path /second*"
out=$(beside raw 93.184.216.10 80 "$ASK" 'GET /second HTTP/1.1\r\nHost: evil.test\r\n\r\n')
like "case 22: the control: the server would answer the other" "$out" "*host evil.test path /second*"

# ---- 23: HTTP/2 ----
mark
like "case 23: HTTP/2 without TLS is refused" "$(try raw ok.test 80 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00')" "HTTP/1.1 4*"
like "case 23: an upgrade to it too" "$(try raw ok.test 80 'GET / HTTP/1.1\r\nHost: ok.test\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n')" "HTTP/1.1 4*"
is "case 23: with TLS for another host" "$(try tls ok.test 443 evil.test evil.test h2)" reset
nothing "case 23"
is "case 23: the control: with TLS for the right one" "$(try tls ok.test 443 ok.test ok.test h2)" "h2 for ok.test"
is "case 23: known limit: another :authority inside TLS is not seen" "$(try tls ok.test 443 ok.test evil.test h2)" "h2 for evil.test"
