# fish completion for caisson. Printed by `caisson completion fish`.
#
# The program itself says what may follow, one word and its description a line. Where it says
# nothing, a file is meant. After -- comes a command of its own.

function __caisson_reply
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program (string replace -r -- '^~' $HOME $words[1])
    if set -l at (contains -i -- -- $words)
        set -l rest $words
        set -e rest[1..$at]
        complete -C (string join ' ' -- (string escape -- $rest) "$current")
        return
    end
    set -l ask $words[2..-1]
    set -l prefix ''
    # --option=value is completed as --option value
    if set -l option (string match -r -- '^--[^=]+(?==)' "$current")
        set -a ask $option
        set prefix "$option="
        set current (string replace -- $prefix '' "$current")
    end
    command -q $program; or return
    set -l found ($program completion reply -- $ask "$current" 2>/dev/null)
    test (count $found) -gt 0; or set found (__fish_complete_path "$current")
    test (count $found) -gt 0; and printf '%s\n' $prefix$found
end

complete -c caisson -f -a '(__caisson_reply)'
