#!/bin/bash
# The same rules where the kernel has no nf_tables: a proxy on the jail's loopback (cases as they apply
# to it). What asks the proxy is judged as it would be without; what does not reaches nothing.
# shellcheck disable=SC2016 # expanded inside
# shellcheck source=tests/net/lib.sh
. "${0%/*}/lib.sh"
IN=("$PROBE" without netfilter "$CAISSON" run --workspace "$WS" --timeout 60s)
NET=(--allow 'ok.test:443,80' --allow '*.ok.test:443')
HTTPS="server 93.184.216.10:443 host ok.test path /" HTTP="server 93.184.216.10:80 host ok.test path /"
run() { "${IN[@]}" "${NET[@]}" -- "$@" 2>"$T/.get.err"; }
# through TEXT...: these bytes to the proxy; what it answers
through() { run env SILENCE="${SILENCE:-60}" bash -c 'p=${http_proxy#http://}; exec /usr/bin/python3 client.py raw "${p%:*}" "${p#*:}" "$@"' - "$@"; }
json "the layer says proxy" "$("${IN[@]}" "${NET[@]}" --json -- true)" \
    '[x["status"] for x in v["layers"] if x["name"] == "net"] == ["proxy"]'

# ---- must connect ----
is "case 01: curl" "$(get https://ok.test/)" "$HTTPS"
has wget "case 01: wget" && is "case 01: wget" "$(run wget -qO- --ca-certificate=ca.pem https://ok.test/)" "$HTTPS"
is "case 01: python urllib" "$(run /usr/bin/python3 -c 'import ssl, urllib.request as u
print(u.urlopen("https://ok.test/", context=ssl.create_default_context(cafile="ca.pem")).read().decode(), end="")')" "$HTTPS"
is "case 01: by SOCKS" "$(run bash -c 'curl -sS --cacert ca.pem -x "$ALL_PROXY" https://ok.test/')" "$HTTPS"
is "case 04: a name below" "$(get https://deep.sub.ok.test/)" "server 93.184.216.10:443 host deep.sub.ok.test path /"
is "case 05: upper case" "$(get https://OK.TEST/ | cut -d' ' -f1,2)" "server 93.184.216.10:443"

# ---- must not ----
before=$(wc -l <"$WORLD/queries")
is "case 03: who ignores the proxy finds no name" "$(try raw ok.test 80 x)" "[Errno -3] Temporary failure in name resolution"
like "case 10: and no address" "$(try tcp 93.184.216.10 80)" "E[A-Z]*"
like "case 10: an address, through the proxy" "$(through 'CONNECT 93.184.216.10:443 HTTP/1.1\r\nHost: ok.test\r\n\r\n')" "HTTP/1.1 403*"
like "case 11: another port" "$(through 'CONNECT ok.test:7 HTTP/1.1\r\nHost: ok.test:7\r\n\r\n')" "HTTP/1.1 403*"
for name in ok.test.evil.test evil-ok.test okxtest; do
    like "case 12: $name" "$(through "CONNECT $name:443 HTTP/1.1\r\nHost: $name\r\n\r\n")" "HTTP/1.1 403*"
done
like "case 13: a datagram" "$(try udp 93.184.216.10 443 quic)" "E[A-Z]*"
like "case 14: a name that carries something" "$(through 'CONNECT c2VjcmV0.x.evil.test:443 HTTP/1.1\r\nHost: x\r\n\r\n')" "HTTP/1.1 403*"
is "case 14: nobody was asked for any of these" "$(wc -l <"$WORLD/queries")" "$before"
NET=(--allow meta.bad.test --allow four.bad.test)
for name in meta four; do
    like "case 17: $name.bad.test" "$(through "CONNECT $name.bad.test:80 HTTP/1.1\r\nHost: $name.bad.test\r\n\r\n")" "HTTP/1.1 403*"
done
NET=(--allow meta.bad.test --allow 169.254.169.254:80)
like "case 17: the control: with a rule for the address" "$(get http://meta.bad.test/)" "server 169.254.169.254:80*"
NET=(--allow 'ok.test:443,80')
like "case 20: CONNECT with a good Host and another target" "$(through 'CONNECT evil.test:443 HTTP/1.1\r\nHost: ok.test\r\n\r\n')" "HTTP/1.1 403*"
like "case 20: an absolute target with a good Host" "$(through 'GET http://evil.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n')" "HTTP/1.1 403*"
like "case 20: a good target with another Host: the target's is sent" "$(through 'GET http://ok.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n')" "*$HTTP*"
like "case 20: the control: both good" "$(through 'GET http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n')" "*$HTTP*"
like "case 21: another name in TLS, through the tunnel" "$(through 'CONNECT ok.test:443 HTTP/1.1\r\nHost: ok.test\r\n\r\n' \
    '\x15\x03\x01\x00\x02\x01\x5a')" "HTTP/1.1 200*reset"
is "case 21: curl with another name" "$(run curl -sS -o /dev/null --cacert ca.pem --connect-to evil.test:443:ok.test:443 https://evil.test/ || echo refused)" refused
out=$(through 'CONNECT ok.test:80 HTTP/1.1\r\nHost: ok.test\r\n\r\n' 'GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n')
like "case 22: another Host inside a tunnel" "$out" "HTTP/1.1 200*403*"
# The server is asked to close behind its answer. This one does not, and nobody reads what comes then.
out=$(SILENCE=3 through 'GET http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n' 'GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n')
like "case 22: a second request for another host" "$out" "*$HTTP*"
holds "case 22: is not answered by it" test "$(grep -c 'host evil.test' <<<"$out")" -eq 0
holds "case 22: and did not come" ! grep -q ' evil.test' "$WORLD/served"

# ---- a call that names its domains ----
NET=(--allow ok.test --allow other.test)
IN+=(--allowed-domain ok.test)
is "narrow: what it names" "$(get http://ok.test/)" "$HTTP"
like "narrow: and nothing else" "$(through 'GET http://other.test/ HTTP/1.1\r\nHost: other.test\r\n\r\n')" "HTTP/1.1 403*"
