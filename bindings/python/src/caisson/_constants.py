"""Status words and flags of the library. Generated: do not edit."""
from __future__ import annotations

from typing import Literal


#: The word of each status, as `code` of an Error.
Code = Literal["invalid", "auth", "denied", "outside", "not_found", "exists", "conflict",
               "wrong_type", "gone", "too_large", "no_match", "ambiguous", "timeout",
               "cancelled", "unsupported", "unavailable", "io", "nomem", "internal"]

CODES: dict[int, Code] = {
    -1: "invalid",  # invalid argument
    -2: "auth",  # credentials missing or refused
    -3: "denied",  # denied by policy
    -4: "outside",  # path outside base directory
    -5: "not_found",  # not found
    -6: "exists",  # already exists
    -7: "conflict",  # changed meanwhile, or not empty
    -8: "wrong_type",  # not the kind of file this needs
    -9: "gone",  # sandbox has ended
    -10: "too_large",  # over a limit
    -11: "no_match",  # string not found in file
    -12: "ambiguous",  # string appears more than once
    -13: "timeout",  # deadline passed
    -14: "cancelled",  # cancelled by caller
    -15: "unsupported",  # backend cannot do this
    -16: "unavailable",  # did not answer
    -17: "io",  # input or output failed
    -18: "nomem",  # out of memory
    -19: "internal",  # internal error
}
STATUSES: dict[str, int] = {word: value for value, word in CODES.items()}

OPEN_DETACHED = 1  # outlives csn_close and this process
OPEN_NOFOLLOW = 2  # file calls refuse every symlink
OPEN_ALLOW_WEAKER = 4  # accept less isolation than the backend promises
OPEN_NESTED = 8  # commands may make namespaces and mounts
OPEN_CREATE = 16  # make the workspace if it is missing
OPEN_COW = 32  # the workspace is copy-on-write: workspace.h
OPEN_UNDO = 64  # a snapshot before each command: csn_undo
OPEN_RECORD = 128  # each command's changes go to the audit log
OP_READ = 1
OP_WRITE = 2
OP_DELETE = 4
OP_EXEC = 8
OP_NET = 16
RULE_FILES = 1073741824
CLEANUP_FORCE = 1  # also a workspace that existed before the sandbox
EXEC_MERGE = 1  # one pipe for both streams: true arrival order
EXEC_KEEP_TAIL = 2  # keep the end of output over output_max
EXEC_KEEP_BOTH = 4  # keep half at the start and half at the end
EXEC_STDIN_FD = 8  # stdin comes from stdin_fd
EXEC_RESTART = 16  # restart the session
EXEC_SUDO = 32  # if the backend supports it
EXEC_PTY = 64  # a terminal, rows x cols; csn_exec(3), csn_start(3)
EXEC_STDIN = 128  # csn_start only: open a pipe for csn_process_write
EXEC_TIED = 256  # csn_start only: ends with its handle or its owner
FILE_NOFOLLOW = 1  # refuse symlinks in the path; stat: the link itself
FILE_CREATE = 2  # write: fail if the file exists
FILE_APPEND = 4
FILE_SYNC = 8  # on disk before the call returns
FILE_RECURSIVE = 16  # delete, watch
FILE_NUMBERS = 32  # read: "%6d\t" before each line
FILE_TEXT = 64  # read: no image detection
FILE_NO_PARENTS = 128  # write, mkdir: do not create missing directories
FILE_HASH = 256  # read: fill `hash`
FILE_GITIGNORE = 512  # glob: leave out what .gitignore files name
GREP_REGEX = 1
GREP_IGNORE_CASE = 2
GREP_GITIGNORE = 4  # leave out what .gitignore files name, and .git
TRANSFER_PROTECTED = 1  # csn_export: protected files are written too
DIFF_PATCH = 1  # also a patch that `git apply` takes
DIFF_COUNTS = 2
DIFF_HASHES = 4
COMMIT_DRY_RUN = 1  # decide, write nothing
COMMIT_PROTECTED = 2  # protected files too
COMMIT_MINE = 4  # conflicts: keep the host's files
COMMIT_THEIRS = 8  # conflicts: take the sandbox's files
ASIDE_REPLACE = 1  # replace a file that is at its place by now
STDOUT = 1
STDERR = 2

#: For times and sizes: unlimited.
NO_LIMIT = 2**64 - 1
LINES_DEFAULT = 2**64 - 2
