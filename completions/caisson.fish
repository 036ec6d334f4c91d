# fish completion for caisson. Printed by `caisson completion fish`.
#
# The program itself says what may follow, one word and its description a line. Where it says
# nothing, a file is meant.

function __caisson_reply
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l found ($words[1] completion reply -- $words[2..-1] "$current" 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path "$current"
    end
end

complete -c caisson -f -a '(__caisson_reply)'
