#!/bin/bash
# CVE-2026-9368, hermes: a variable in front of a command, or one that the caller passes, decides what an
# allowed program executes.
# Escaped: with a list, a variable of the dynamic loader or the shell runs something else.
# shellcheck disable=SC2317,SC2034,SC2016
NEEDS="commandlist"
. "${0%/*}/../lib.sh"
prepare()
{
    mkdir "$WS/bin" && printf '#!/bin/sh\ntouch %s/ran\n' "$WS" | tee "$WS/bin/ls" >"$WS/rc" && chmod +x "$WS/bin/ls"
    [ "$BOX" = none ] || EXTRA=(--allow-command ls --allow-command bash)
    MAY_REFUSE=1
}
escaped() { [ -e "$WS/ran" ]; }
attack()
{
    local v
    for v in "PATH=$WS/bin" "BASH_ENV=$WS/rc" "ENV=$WS/rc" "BASH_FUNC_ls%%=() { touch $WS/ran; }" "PS4=\$(touch $WS/ran)" "PROMPT_COMMAND=touch $WS/ran"; do
        if [ "$BOX" = none ]; then
            env "PATH=$PATH" "$v" /bin/bash -c ls
        else
            caisson_words
            id=$("$CAISSON" create "${words[@]}")
            "$CAISSON" exec "$id" --env "$v" -c ls
            "$CAISSON" exec "$id" --env "$v" -- ls
            "$CAISSON" exec "$id" --session s --env "$v" -c ls
            "$CAISSON" exec "$id" -c "${v%%=*}='${v#*=}' ls"
            "$CAISSON" destroy "$id"
            "$CAISSON" run "${words[@]}" -c "${v%%=*}='${v#*=}' ls"
        fi
    done
}
attempt "a variable that decides what runs"
