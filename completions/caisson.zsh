#compdef caisson
# zsh completion for caisson. Printed by `caisson completion zsh`; as a file in $fpath it is
# named _caisson.
#
# The program itself says what may follow, one word and its description a line. Where it says
# nothing, a file is meant. After -- comes a command of its own.

_caisson()
{
    local -a found ask
    local -i at=${words[(ie)--]}
    if ((at < CURRENT)); then
        shift $at words
        ((CURRENT -= at))
        _normal
        return
    fi
    ask=("${(@)words[2,CURRENT]}")
    # --option=value is completed as --option value
    if [[ "${ask[-1]}" == --*=* ]] && compset -P '*='; then
        ask=("${(@)ask[1,-2]}" "${ask[-1]%%=*}" "${ask[-1]#*=}")
    fi
    found=("${(@f)$(${~words[1]} completion reply -- "${ask[@]}" 2>/dev/null)}")
    if [[ -n "${found[1]}" ]]; then
        found=("${(@)found/$'\t'/:}")
        _describe caisson found
    else
        _files
    fi
}

if [[ "${funcstack[1]}" == _caisson ]]; then
    _caisson "$@"
else
    compdef _caisson caisson
fi
