#compdef caisson
# zsh completion for caisson. Printed by `caisson completion zsh`; as a file in $fpath it is
# named _caisson.
#
# The program itself says what may follow, one word and its description a line. Where it says
# nothing, a file is meant.

_caisson()
{
    local -a found
    found=("${(@f)$("${words[1]}" completion reply -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
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
