#!/bin/bash
# interface.sh: what the documents that caisson unites ask of the command line.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

id=$(cs create --workspace "$T/ws") || exit 1

# --- read with limit 0 ------------------------------------------------------------------------
seq 5 >"$T/ws/five"
status 'read --limit 0 succeeds' 0 cs read "$id" five --limit 0
is 'read --limit 0 prints no line' "$out" ''
like 'read --limit 0 says how many there are' "$err" '*5 lines, 10 bytes*'
status 'read --limit 0 --json succeeds' 0 cs read "$id" five --limit 0 --json
json 'read --limit 0 --json has all counts' "$out" \
    'v["content"] == "" and v["total_lines"] == 5 and v["output_lines"] == 0 and v["bytes"] == 10 and v["truncated"]'
status 'read without --limit succeeds' 0 cs read "$id" five
is 'read without --limit prints the file' "$out" "$(seq 5)"

# --- an edit that changes nothing -------------------------------------------------------------
status 'edit with equal strings succeeds' 0 cs edit "$id" five 3 3 --json
json 'edit with equal strings counts' "$out" 'v["occurrences"] == 1 and v["bytes"] == 10'
status 'edit with equal strings that are not there fails' 1 cs edit "$id" five 9 9

