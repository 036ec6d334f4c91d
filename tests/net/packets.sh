#!/bin/bash
# What is no TCP connection, and what would change the network (cases 24 to 28). The control of each
# is the same call on the host beside, where its caller may do it.
# shellcheck disable=SC2016 # expanded inside
# shellcheck source=tests/net/lib.sh
. "${0%/*}/lib.sh"
NET=(--allow ok.test)
quiet() { "$@" >/dev/null 2>&1; }
# in a network of one's own, where one may do everything
alone() { unshare -Urn bash -c 'PATH=$PATH:/sbin:/usr/sbin ip link set lo up; echo 0 0 >/proc/sys/net/ipv4/ping_group_range; exec /usr/bin/python3 "$@"' - "$WS/client.py" "$@"; }
# refused NAME WORD...: an errno inside, success beside, or at least in a network of one's own
refused()
{
    local name=$1 in out
    shift
    in=$(try "$@") out=$(beside "$@")
    case $out in EPERM | EACCES) out=$(alone "$@" 2>/dev/null) ;; esac
    case $in in E[A-Z]*) ;; *) fail "$name" "inside: $in" && return ;; esac
    case $out in
    made | sent | answered) pass "$name" ;;
    '' | EPERM | EACCES | EAFNOSUPPORT | EPROTONOSUPPORT | ENODEV) skip "$name" "inside $in; no control for this caller: $out" ;;
    *) fail "$name" "control: $out" ;;
    esac
}

# ---- 24: sockets of other kinds ----
refused "case 24: a raw socket" socket 2 3 1
refused "case 24: a raw socket of IPv6" socket 10 3 58
refused "case 24: a raw socket that writes its own header" socket 2 3 255
refused "case 24: a packet socket" socket 17 3 768
refused "case 24: an old packet socket" socket 2 10 768
refused "case 24: an ICMP socket" socket 2 2 1
refused "case 24: vsock" socket 40 1 0
refused "case 24: SCTP" socket 2 1 132
refused "case 24: netlink of netfilter" socket 16 3 12
refused "case 24: a route by netlink" route
if has ping "case 24: ping"; then
    holds "case 24: ping" ! quiet "${IN[@]}" "${NET[@]}" -- ping -c1 -W2 ok.test
fi
name=csn-net-$$
python='import socket, sys
s = socket.socket(socket.AF_UNIX)
try:
    s.connect("\0" + sys.argv[1]); print("made")
except OSError as e:
    print("E", e.errno)'
/usr/bin/python3 -c 'import socket, sys, time
s = socket.socket(socket.AF_UNIX); s.bind("\0" + sys.argv[1]); s.listen(); print(1, flush=True); time.sleep(600)' $name >"$T/up" &
server=$!
eventually test -s "$T/up"
like "case 24: an abstract socket of the host" "$("${IN[@]}" "${NET[@]}" -- /usr/bin/python3 -c "$python" $name)" "E*"
is "case 24: the control: on the host" "$(/usr/bin/python3 -c "$python" $name)" made
kill $server

# ---- 25: everybody on the link ----
to_link() # NAME WORD...: a datagram that comes, from the host, and not from inside
{
    local what=$1 before
    shift
    before=$(served "^udp:4433")
    like "case 25: $what" "$(try "${@/host0/lo}")" "E[A-Z]*"
    is "case 25: $what: it did not come" "$(served "^udp:4433")" "$before"
    is "case 25: the control: $what, on the host" "$(beside "$@")" sent
    holds "case 25: the control: it comes" eventually comes "^udp:4433" "$before"
}
to_link "broadcast" udp 255.255.255.255 4433 all broadcast
to_link "multicast" udp 224.0.0.1 4433 all
to_link "multicast of IPv6" udp ff02::1%host0 4433 all
like "case 25: router solicitations" "$(try socket 10 3 58)" "E[A-Z]*"
is "case 25: a link-local address" "$(try tcp fe80::1%lo 80)" reset
is "case 25: no address of a link is there" "$("${IN[@]}" "${NET[@]}" -- cat /proc/net/if_inet6 | grep -c '^fe80')" 0
is "case 25: and no device but lo" "$("${IN[@]}" "${NET[@]}" -- cat /proc/net/dev | tail -n +3 | grep -vc ' lo:')" 0

# ---- 26: packets that are made to look otherwise ----
odd() # NAME WORD...: a datagram to another port, and a connection to another host
{
    local what=$1 before
    shift
    before=$(served '^udp:4433')
    like "case 26: a datagram with $what" "$(try udp 93.184.216.66 4433 odd "$@")" "E[A-Z]*"
    is "case 26: $what: it did not come" "$(served '^udp:4433')" "$before"
    is "case 26: the control: $what, on the host" "$(beside udp 93.184.216.66 4433 odd "$@")" sent
    holds "case 26: the control: it comes" eventually comes '^udp:4433' "$before"
}
odd "a short life" ttl=3
odd "IP options" options=94040000
odd "more than a packet holds" big
like "case 26: from port 53" "$(try udp 93.184.216.66 4433 odd from=53)" "E[A-Z]*"
for word in ttl=1 ttl=255 options=94040000 options=4404050000000000; do
    before=$(served 93.184.216.66:7)
    like "case 26: a connection with $word" "$(try tcp 93.184.216.66 7 $word)" "reset"
    is "case 26: $word: it did not come" "$(served 93.184.216.66:7)" "$before"
    is "case 26: the control: $word, to an allowed host" "$(try tcp ok.test 7 $word)" answered
done
# Source routes need a capability, and lead nowhere.
like "case 26: a source route" "$(try tcp 93.184.216.66 7 options=830704c0a80001)" "E[A-Z]*"

# ---- 27: other sandboxes, and what serves them ----
port=$(/usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
id=$(new --allow ok.test --publish "$port:8080")
cs exec "$id" -- bash -c 'nohup /usr/bin/python3 client.py serve 8080 >/dev/null 2>&1 &'
status "case 27: another sandbox listens" 0 cs wait "$id" --port 8080 --timeout 60s
is "case 27: the control: it is published" "$(curl -sS --max-time 60 "http://127.0.0.1:$port/")" "the host itself"
for to in 127.0.0.1 198.18.0.1 198.18.0.2 '[fd63:6169:7373::1]' 100.127.255.2 93.184.216.200; do
    holds "case 27: $to:8080" ! get "http://$to:8080/"
    holds "case 27: $to, as published" ! get "http://$to:$port/"
done
NET=(--net all)
for to in 127.0.0.1 100.127.255.2 93.184.216.200; do
    holds "case 27: $to with everything allowed" ! get "http://$to:$port/"
done
NET=(--host-port "$port")
is "case 27: the control: lent by a rule it is reached" "$(get "http://127.0.0.1:$port/")" "the host itself"
NET=(--allow ok.test)
is "case 27: the sockets of a gateway cannot be seen inside" \
    "$("${IN[@]}" "${NET[@]}" -- bash -c "ls $XDG_RUNTIME_DIR 2>&1 | grep -c caisson; cat /proc/net/unix | grep -c net.sock")" "0
0"
cs destroy "$id"

# ---- 28: rules changed from inside ----
for tool in nft iptables; do
    if has $tool "case 28: $tool"; then
        word=$([ $tool = nft ] && echo 'flush ruleset' || echo '-F')
        # shellcheck disable=SC2086
        holds "case 28: $tool" ! quiet "${IN[@]}" "${NET[@]}" --env PATH=/usr/sbin:/usr/bin:/bin -- $tool $word
    fi
done
like "case 28: no netlink of netfilter" "$(try socket 16 3 12)" "E[A-Z]*"
holds "case 28: no network of its own to try in" ! "${IN[@]}" "${NET[@]}" -- unshare -Urn true 2>/dev/null
like "case 28: no capability" "$("${IN[@]}" "${NET[@]}" -- grep CapEff /proc/self/status)" "*0000000000000000"
for change in 'link set lo down' 'addr add 10.9.9.9/8 dev lo' 'route del default' 'link add x type veth peer name y' 'rule add table local'; do
    # shellcheck disable=SC2086
    holds "case 28: ip $change" ! "${IN[@]}" "${NET[@]}" --env PATH=/usr/sbin:/usr/bin:/bin:/sbin -- ip $change 2>/dev/null
done
holds "case 28: settings of the network" ! "${IN[@]}" "${NET[@]}" -- bash -c 'echo 0 >/proc/sys/net/ipv4/ip_unprivileged_port_start' 2>/dev/null
is "case 28: the control: in a network of one's own all that works" "$(PATH=$PATH:/usr/sbin:/sbin unshare -Urn bash -c 'ip link set lo up &&
    ip link add x type veth peer name y && echo 0 >/proc/sys/net/ipv4/ip_unprivileged_port_start && echo yes' 2>&1)" yes
