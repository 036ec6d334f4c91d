# shellcheck shell=bash
# sandboxes.sh: how each product runs a command for "an agent works in this project directory".
#
# For each product: what it offers (OFFERS), and box_run FRAGMENT, which runs bash in it. The command
# lines are the ones that its own documentation shows for this purpose. What a file asks for in
# addition is in the arrays DENY (paths hidden), READ and WRITE (further directories), ALLOW (hosts),
# EXTRA (further words of caisson's command line). `none` is the control.

PEERS=${ADVISORY_PEERS:-/usr} # where npm put srt and codex
BWRAP=${BWRAP:-bwrap} FIREJAIL=${FIREJAIL:-firejail}
SRT=${SRT:-$PEERS/node_modules/.bin/srt} CODEX=${CODEX:-$PEERS/node_modules/.bin/codex}

# commands: confines what a command reads and writes. deny: hides a path inside what it grants.
# protect: keeps files of the project that the host would run. netrules: allows hosts by name.
# filecalls: reads and writes files of the sandbox for a caller on the host. service: is reached by a
# socket or a protocol of its own. keeps: a sandbox that outlives a command.
declare -A OFFERS=(
    [caisson]="commands deny readonly protect nonet netrules filecalls service keeps privatetmp syscalls landlock anycase commandlist world caisson"
    [bwrap]="commands deny readonly nonet privatetmp world"
    [firejail]="commands deny readonly nonet privatetmp syscalls world"
    [srt]="commands deny readonly protect nonet netrules world"
    [codex]="commands deny readonly protect nonet syscalls world"
)
declare -A LACKS=(
    [deny]="cannot hide a path inside a granted directory"
    [protect]="makes no promise about files inside the writable directory"
    [netrules-codex]="has no rules for host names in its sandbox command"
    [commandlist]="has no list of allowed commands"
    [anycase]="the file system of this host tells letter cases apart"
    [netrules]="has no rules for host names"
    [filecalls]="has no file operations on the host side"
    [service]="has no service that a process inside could call"
    [keeps]="has no sandbox that outlives a command"
    [syscalls]="does not filter system calls in this configuration"
    [landlock]="does not use Landlock"
    [privatetmp]="shares the host's /tmp by design"
    [caisson]="concerns caisson's own command line and files"
)
# lacks: 1 and the reason when the advisory does not concern $SANDBOX or it does not run here
lacks()
{
    local need
    for need in $NEEDS; do
        case " ${OFFERS[$SANDBOX]} " in
        *" $need "*) ;;
        *) echo "${LACKS[$need-$SANDBOX]:-${LACKS[$need]:-does not offer $need}}" && return 1 ;;
        esac
    done
    [ -n "${NO_JAIL-}" ] && return 0
    mkdir -p "$T/out"
    BOX=$SANDBOX WS=$T/ws OUT=$T/out R=$T DENY=() READ=() WRITE=() ALLOW=() EXTRA=() CAISSON_RUN=("$CAISSON")
    (cd "$WS" && box_run 'echo runs' 2>&1) | grep -q '^runs' && return 0
    # shellcheck disable=SC2154 # lib.sh sets it
    why=$( (cd "$WS" && box_run 'echo runs') 2>&1 | grep -v "$here" | tail -n 1)
    echo "does not start here${why:+: $why}"
    return 1
}

# inside FRAGMENT: in the sandbox of this round, in $WS; what it prints is kept in $R/said.*;
# $idle is not 0 after a fragment that was not started at all
inside()
{
    local fragment="WS='$WS' OUT='$OUT'; echo = ran; $1"
    cd "$WS" || return
    idle=$((idle + 1))
    if [ -n "$BOX_ID" ]; then
        "$CAISSON" exec "$BOX_ID" -c "$fragment"
    else
        box_run "$fragment"
    fi >"$R/said.$idle" 2>&1 </dev/null
    local code=$?
    cat "$R/said.$idle"
    grep -q '^= ran' "$R/said.$idle" && idle=0
    return $code
}
box_run() { "run_$BOX" "$1"; }

run_none() { bash -c "$1"; }

caisson_words()
{
    local x
    words=(--backend jail --workspace "$WS")
    for x in "${DENY[@]}"; do words+=(--deny "$x"); done
    for x in "${READ[@]}"; do words+=(--read "$x"); done
    for x in "${WRITE[@]}"; do words+=(--write "$x"); done
    for x in "${ALLOW[@]}"; do words+=(--allow "$x"); done
    words+=("${EXTRA[@]}")
}
run_caisson() { caisson_words && "${CAISSON_RUN[@]}" run "${words[@]}" --timeout 120s -c "$1"; }

# The form of bubblewrap's own demo script: the system read-only, the project writable, no network.
run_bwrap()
{
    local x binds=()
    for x in "${READ[@]}"; do binds+=(--ro-bind "$x" "$x"); done
    for x in "${WRITE[@]}"; do binds+=(--bind "$x" "$x"); done
    for x in "${DENY[@]}"; do
        if [ -d "$x" ]; then binds+=(--tmpfs "$x"); elif [ -e "$x" ]; then binds+=(--ro-bind /dev/null "$x"); fi
    done
    "$BWRAP" --ro-bind /usr /usr --ro-bind /etc /etc --symlink usr/bin /bin --symlink usr/sbin /sbin \
        --symlink usr/lib /lib --symlink usr/lib64 /lib64 --proc /proc --dev /dev --tmpfs /tmp \
        --bind "$WS" "$WS" "${binds[@]}" --chdir "$WS" --unshare-all --new-session --die-with-parent \
        bash -c "$1"
}

# Its hardening options for a program of which it has no profile; of the places that it may hide only
# the project is visible.
run_firejail()
{
    local x more=()
    for x in "${READ[@]}"; do more+=("--whitelist=$x" "--read-only=$x"); done
    for x in "${WRITE[@]}"; do more+=("--whitelist=$x"); done
    for x in "${DENY[@]}"; do more+=("--blacklist=$x"); done
    "$FIREJAIL" --quiet --noprofile --caps.drop=all --nonewprivs --noroot --seccomp --net=none \
        --private-dev --private-tmp "--whitelist=$WS" "${more[@]}" -- bash -c "$1"
}

json_list()
{
    local x sep=
    printf '['
    for x in "$@"; do printf '%s"%s"' "$sep" "$x" && sep=,; done
    printf ']'
}
# Its settings file: the project is writable, what is outside of it and denied is not readable.
run_srt()
{
    printf '{"network":{"allowedDomains":%s,"deniedDomains":[]},"filesystem":{"denyRead":%s,"allowWrite":%s,"denyWrite":%s}}\n' \
        "$(json_list "${ALLOW[@]}")" "$(case " ${READ[*]} " in *" $OUT "*) json_list "${DENY[@]}" ;; *) json_list "$OUT" "${DENY[@]}" ;; esac)" "$(json_list "$WS" "${WRITE[@]}")" "$(json_list "${READ[@]}")" \
        >"$R/srt.json"
    "$SRT" -s "$R/srt.json" -c "$1"
}

# Its permission profile :workspace, extended by what is denied; what is outside is not readable.
run_codex()
{
    local x
    mkdir -p "$R/codex"
    {
        printf '[permissions.agent]\nextends = ":workspace"\n[permissions.agent.filesystem]\n'
        for x in "${DENY[@]}"; do printf '"%s" = "none"\n' "$x"; done
        for x in "${READ[@]}"; do printf '"%s" = "read"\n' "$x"; done
        for x in "${WRITE[@]}"; do printf '"%s" = "write"\n' "$x"; done
        case " ${READ[*]} ${WRITE[*]} " in *" $OUT "*) ;; *) printf '"%s" = "none"\n' "$OUT" ;; esac
    } >"$R/codex/config.toml"
    CODEX_HOME=$R/codex "$CODEX" sandbox -P agent -- bash -c "$1"
}

# ---- a sandbox that stays, for file calls; the control does with the host's tools what they do ----
box_open()
{
    [ "$BOX" = none ] && return
    caisson_words
    BOX_ID=$("$CAISSON" create "${words[@]}") || idle=1
}
box_close()
{
    [ -n "${BOX_ID-}" ] && "$CAISSON" destroy "$BOX_ID" >/dev/null 2>&1
    BOX_ID=
}
fs_cat() { if [ "$BOX" = none ]; then cat "$WS/$1"; else "$CAISSON" cat "$BOX_ID" "$1"; fi >>"$R/said" 2>&1; }
fs_grep() { if [ "$BOX" = none ]; then grep -R "$1" "$WS/$2"; else "$CAISSON" grep "$BOX_ID" "$1" "$2"; fi >>"$R/said" 2>&1; }
fs_write() { if [ "$BOX" = none ]; then cat >"$WS/$1"; else "$CAISSON" write "$BOX_ID" "$1"; fi; }
fs_edit() { if [ "$BOX" = none ]; then python3 -c 'import sys; p, a, b = sys.argv[1:]; t = open(p).read(); open(p, "w").write(t.replace(a, b))' "$WS/$1" "$2" "$3"; else "$CAISSON" edit "$BOX_ID" "$1" "$2" "$3"; fi; }
fs_mv() { if [ "$BOX" = none ]; then mv "$WS/$1" "$WS/$2"; else "$CAISSON" mv "$BOX_ID" "$1" "$2"; fi; }
fs_rm() { if [ "$BOX" = none ]; then find "$WS/$1/" -delete; else "$CAISSON" rm -r "$BOX_ID" "$1"; fi; }
fs_mkdir() { if [ "$BOX" = none ]; then mkdir -p "$WS/$1"; else "$CAISSON" mkdir "$BOX_ID" "$1"; fi; }
fs_import() { if [ "$BOX" = none ]; then cp -r "$1/." "$WS/$2"; else "$CAISSON" import "$BOX_ID" "$1" "$2"; fi; }
fs_export() { if [ "$BOX" = none ]; then cp -rL "$WS/$1/." "$2"; else "$CAISSON" export "$BOX_ID" "$1" "$2"; fi; }
