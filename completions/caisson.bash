# bash completion for caisson. Printed by `caisson completion bash`.
#
# Commands and options are asked from the program itself, so they are those of the caisson that
# is installed. Sandboxes complete by id and by name.

_caisson_words()
{
    "${COMP_WORDS[0]/#\~/$HOME}" completion words "$@" 2>/dev/null
}

_caisson_sandboxes()
{
    "${COMP_WORDS[0]/#\~/$HOME}" list 2>/dev/null |
        while read -r id name _ state _; do
            # an attached sandbox belongs to the process that runs it
            if [ "$id" = ID ] || [ "$state" = attached ]; then continue; fi
            printf '%s\n' "$id"
            [ "$name" = - ] || printf '%s\n' "$name"
        done
}

_caisson_reply()
{
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur")
}

# What follows an option that takes a value; 1 when it takes none we know.
_caisson_value()
{
    case $1 in
    --backend) _caisson_reply "local jail e2b vercel dagger docker" ;;
    --workspace | --read | --write | --home) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
    --policy | --ask-file | --edits | --token-file | --file) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    --net) _caisson_reply "none all" ;;
    --agent) _caisson_reply "claude codex gemini" ;;
    --keep) _caisson_reply "head tail both" ;;
    --encoding) _caisson_reply "text base64" ;;
    --packages | --package-manager) _caisson_reply "npm pnpm yarn bun pip uv poetry cargo go maven gradle apt gem composer github" ;;
    *) return 1 ;;
    esac
}

_caisson()
{
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    local cmd=${COMP_WORDS[1]} i

    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        _caisson_reply "$(_caisson_words)"
        return
    fi
    for ((i = 2; i < COMP_CWORD; i++)); do
        # after -- comes a command of the sandbox, of which nothing is known here
        [ "${COMP_WORDS[i]}" = -- ] && return
    done
    _caisson_value "$prev" && return
    if [[ $cur == -* ]]; then
        _caisson_reply "$(_caisson_words "$cmd")"
        return
    fi
    case $cmd in
    help) [ "$COMP_CWORD" -eq 2 ] && _caisson_reply "$(_caisson_words)" ;;
    completion) [ "$COMP_CWORD" -eq 2 ] && _caisson_reply "bash zsh fish" ;;
    run | create | list | version) ;;
    doctor | init | trust | untrust) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
    aside) [ "$COMP_CWORD" -eq 2 ] && _caisson_reply "list restore clear" ;;
    policy)
        if [ "$COMP_CWORD" -eq 2 ]; then
            _caisson_reply "agent check import schema"
        elif [ "$COMP_CWORD" -eq 3 ] && [ "${COMP_WORDS[2]}" = import ]; then
            _caisson_reply "srt codex"
        elif [ "$COMP_CWORD" -eq 3 ] && [ "${COMP_WORDS[2]}" = agent ]; then
            _caisson_reply "claude codex gemini"
        else
            mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        fi
        ;;
    why)
        case $COMP_CWORD in
        2) _caisson_reply "$(_caisson_sandboxes)" ;;
        3) _caisson_reply "read write delete exec net" ;;
        esac
        ;;
    import | export)
        if [ "$COMP_CWORD" -eq 2 ]; then
            _caisson_reply "$(_caisson_sandboxes)"
        else
            mapfile -t COMPREPLY < <(compgen -d -- "$cur")
        fi
        ;;
    *) { [ "$COMP_CWORD" -eq 2 ] || [ "$cmd" = destroy ]; } && _caisson_reply "$(_caisson_sandboxes)" ;;
    esac
}

complete -o filenames -F _caisson caisson
