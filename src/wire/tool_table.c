/* tool_table.c: the table of an agent's tools.
 *
 * Models read the texts, which state when and how to use a tool and what it returns. Facts
 * about one sandbox are appended where the tools are listed. Parameters have the names that
 * models know from other agents' tools. `read` has no structured output: clients that receive
 * structured content show nothing else to the model, and an image would be lost. */
#include "base/limits.h"
#include "wire/tool_schema.h"

#define FIELD(k, n, need, t)    .kind = CSN_TOOL_##k, .required = need, .name = n, .text = t
#define STR(n, need, t)         FIELD(STRING, n, need, t)
#define BOOL(n, need, t)        FIELD(BOOLEAN, n, need, t)
#define NUM(n, need, t)         FIELD(NUMBER, n, need, t)
#define WORDS(n, need, t)       FIELD(STRINGS, n, need, t)
#define MAP(n, need, t)         FIELD(MAP, n, need, t)
#define INT(n, need, lo, hi, t) FIELD(INTEGER, n, need, t), .min = lo, .max = hi
#define WORD(n, need, words, t) FIELD(STRING, n, need, t), .choices = words
#define OBJ(n, need, table, t)  FIELD(OBJECT, n, need, t), .fields = table
#define LIST(n, need, table, t) FIELD(OBJECTS, n, need, t), .fields = table

#define BIG INT64_C(1000000000)

/* ---- results --------------------------------------------------------------------------- */

static const csn_tool_field denial[] = {
    {STR("op", true, "read, write, delete, exec, env, net, limit or syscall")},
    {STR("target", false, "what was asked for")},
    {STR("target_base64", false, "its bytes, when they are not UTF-8")},
    {STR("resolved", false, "the file or address it resolves to")},
    {STR("resolved_base64", false, "its bytes, when they are not UTF-8")},
    {STR("rule", false, "the rule that refused it")},
    {STR("source", false, "where that rule is from")},
    {STR("hint", false, "the smallest rule that would allow it; only the user can add it")},
    {0},
};
static const csn_tool_field totals[] = {
    {INT("stdout", true, 0, 0, NULL)},
    {INT("stderr", true, 0, 0, NULL)},
    {0},
};
static const csn_tool_field bash_out[] = {
    {STR("stdout", true, "standard output; omissions are marked in it")},
    {STR("stderr", true, "standard error")},
    {INT("exit_code", false, 0, 0, "missing when a signal ended it")},
    {STR("signal", false, "the signal that ended it")},
    {NUM("duration_ms", false, NULL)},
    {BOOL("timed_out", false, "it was ended at its timeout")},
    {BOOL("truncated", false, "some output is left out")},
    {OBJ("total_bytes", false, totals, "all it printed, shown or not")},
    {STR("killed_by", false, "timeout, cancel, memory, pids, cpu, disk, policy or signal")},
    {LIST("denials", false, denial, "what the sandbox refused")},
    {INT("pid", false, 0, 0, "with run_in_background: for the tool process")},
    {STR("note", false, "what else to know")},
    {0},
};
static const csn_tool_field process_entry[] = {
    {INT("pid", true, 0, 0, NULL)},
    {STR("command", false, NULL)},
    {STR("state", true, "running or exited")},
    {INT("exit_code", false, 0, 0, NULL)},
    {STR("signal", false, NULL)},
    {OBJ("total_bytes", false, totals, "printed so far")},
    {STR("started_at", false, NULL)},
    {BOOL("pty", false, NULL)},
    {0},
};
static const csn_tool_field process_out[] = {
    {LIST("processes", true, process_entry, "all of them, or the one asked for")},
    {STR("stdout", false, "new output since it was last asked for")},
    {STR("stderr", false, "new standard error")},
    {STR("note", false, "what else to know")},
    {0},
};
static const csn_tool_field write_out[] = {
    {STR("path", true, "as asked")},
    {STR("path_base64", false, NULL)},
    {INT("bytes", true, 0, 0, "how many were written")},
    {STR("resolved_path", false, "the file it really is")},
    {STR("resolved_path_base64", false, NULL)},
    {STR("hash", false, "SHA-256 of the content")},
    {STR("note", false, "set if the file is in a place that ends with the sandbox")},
    {0},
};
static const csn_tool_field edit_out[] = {
    {STR("path", true, "as asked")},
    {STR("path_base64", false, NULL)},
    {INT("occurrences", true, 0, 0, "how many were replaced")},
    {INT("bytes", true, 0, 0, "size of the file now")},
    {STR("resolved_path", false, "the file it really is")},
    {STR("resolved_path_base64", false, NULL)},
    {STR("hash", false, "SHA-256 of the content")},
    {0},
};
static const csn_tool_field file_entry[] = {
    {STR("path", true, NULL)},
    {STR("path_base64", false, "the bytes of a name that is not UTF-8")},
    {BOOL("is_dir", true, NULL)},
    {INT("size", true, 0, 0, NULL)},
    {STR("modified_at", false, NULL)},
    {STR("mode", false, NULL)},
    {BOOL("is_symlink", false, NULL)},
    {STR("target", false, "of a symlink")},
    {STR("target_base64", false, NULL)},
    {0},
};
static const csn_tool_field ls_out[] = {
    {LIST("entries", true, file_entry, "sorted by name")},
    {BOOL("truncated", true, NULL)},
    {STR("note", false, "what is left out, and how to get it")},
    {0},
};
static const csn_tool_field glob_out[] = {
    {WORDS("files", true, "relative to the path searched, sorted")},
    {BOOL("truncated", true, NULL)},
    {STR("note", false, "what is left out, and how to get it")},
    {0},
};
static const csn_tool_field match_entry[] = {
    {STR("path", true, NULL)},
    {STR("path_base64", false, NULL)},
    {INT("line", true, 0, 0, "counted from 1")},
    {STR("text", true, NULL)},
    {BOOL("is_context", false, "a line near a match")},
    {0},
};
static const csn_tool_field count_entry[] = {
    {STR("path", true, NULL)},
    {INT("count", true, 0, 0, "lines that match")},
    {0},
};
static const csn_tool_field grep_out[] = {
    {WORDS("files", false, "with output_mode files_with_matches")},
    {LIST("matches", false, match_entry, "with output_mode content")},
    {LIST("counts", false, count_entry, "with output_mode count")},
    {BOOL("truncated", true, NULL)},
    {STR("note", false, "what is left out, and how to get it")},
    {0},
};
static const csn_tool_field delete_out[] = {
    {STR("path", true, NULL)},
    {BOOL("deleted", true, NULL)},
    {0},
};
static const csn_tool_field layer[] = {
    {STR("name", true, NULL)},
    {STR("status", true, "on, off or weaker")},
    {STR("detail", false, NULL)},
    {0},
};
static const csn_tool_field rule[] = {
    {STR("rule", true, NULL)},
    {STR("source", true, NULL)},
    {STR("enforced", true, "by what, for commands")},
    {0},
};
static const csn_tool_field permissions[] = {
    {STR("working_dir", false, "where relative paths begin")},
    {STR("working_dir_base64", false, NULL)},
    {WORDS("write_dirs", true, "directories of the host that may be written")},
    {WORDS("read_dirs", true, "directories of the host that may only be read")},
    {0},
};
static const csn_tool_field info_out[] = {
    {STR("id", true, NULL)},
    {STR("name", false, NULL)},
    {STR("backend", true, NULL)},
    {STR("state", true, "running")},
    {STR("isolation", true, "none, kernel, container, microvm or custom")},
    {BOOL("detached", false, NULL)},
    {STR("workspace", false, "the directory of the user that is worked in")},
    {STR("workspace_base64", false, NULL)},
    {STR("workdir", false, "where commands start and relative paths begin")},
    {STR("workdir_base64", false, NULL)},
    {STR("home", false, "HOME inside")},
    {STR("home_base64", false, NULL)},
    {STR("rg_path", false, "ripgrep inside")},
    {OBJ("permissions", false, permissions, "besides a jail's own system and private places")},
    {WORDS("capabilities", false, NULL)},
    {LIST("layers", false, layer, "what is really enforced")},
    {LIST("rules", false, rule, "denied paths and rules")},
    {STR("created_at", false, NULL)},
    {STR("expires_at", false, NULL)},
    {INT("keeper_pid", false, 0, 0, NULL)},
    {0},
};

/* ---- arguments ------------------------------------------------------------------------- */

static const csn_tool_field bash_in[] = {
    {STR("command", true, "The command line, as typed to bash.")},
    {INT("timeout", false, 1, CSN_MCP_TIMEOUT_MS_MAX,
         "Milliseconds after which it is ended with everything it started; default 120000, at "
         "most 600000.")},
    {BOOL("run_in_background", false,
          "Start it and return at once with its pid: for servers and long jobs. Read its "
          "output, feed and stop it with the tool process.")},
    {STR("description", false, "What it is for, in a few words, shown to the user.")},
    {BOOL("restart", false,
          "First end the shell with everything it runs, and begin a new one. With an empty "
          "command that is all.")},
    {STR("cwd", false, "Directory to run it in, if not that of the shell.")},
    {MAP("env", false, "Variables for this command: {\"NAME\": \"value\"}.")},
    {WORDS(
        "allowed_domains", false,
        "Hosts that this command may reach, host or host:port; others are refused. Only hosts "
        "that the sandbox allows. An empty list: none.")},
    {WORDS(
        "package_managers", false,
        "Package managers whose hosts this command may reach, such as npm or pip; only those "
        "that the sandbox allows.")},
    {0},
};
static const csn_tool_field process_in[] = {
    {WORD("action", true, "list|output|input|stop",
          "list: all background processes. output: what one printed since you last asked. "
          "input: write to its standard input. stop: end it with everything it started.")},
    {INT("pid", false, 1, BIG, "The process; needed for all but list.")},
    {INT("timeout", false, 0, CSN_MCP_TIMEOUT_MS_MAX,
         "output, stop: milliseconds to wait for new output or the end; default 0 for output, "
         "5000 for stop.")},
    {STR("input", false, "input: the text, with the newline if there should be one.")},
    {BOOL("close_input", false, "input: then close its standard input (end of file).")},
    {STR("signal", false, "stop: the signal, default SIGTERM; SIGKILL follows by itself.")},
    {0},
};
static const csn_tool_field read_in[] = {
    {STR("file_path", true, "The file: absolute, or relative to the working directory.")},
    {INT("offset", false, 0, BIG, "How many lines to skip; default 0.")},
    {INT("limit", false, 0, BIG,
         "How many lines; default 2000. 0: only the number of lines and bytes.")},
    {0},
};
static const csn_tool_field write_in[] = {
    {STR("file_path", true, "The file; missing directories are made.")},
    {STR("content", true, "All of its new content, or what to append.")},
    {BOOL("append", false, "Add the content to the end of the file instead.")},
    {0},
};
static const csn_tool_field edit_in[] = {
    {STR("file_path", true, "The file.")},
    {STR("old_string", true,
         "The text to replace, exactly as in the file with all white space, without the line "
         "numbers that read shows.")},
    {STR("new_string", true, "The text to put there.")},
    {BOOL("replace_all", false,
          "Replace every occurrence; else old_string must occur exactly once.")},
    {0},
};
static const csn_tool_field ls_in[] = {
    {STR("path", false, "The directory; default: the working directory.")},
    {0},
};
static const csn_tool_field glob_in[] = {
    {STR("pattern", true, "Such as **/*.c or src/**/test_*.{py,js}; ** is any depth.")},
    {STR("path", false, "The directory to search; default: the working directory.")},
    {BOOL("gitignore", false, "Leave out what .gitignore files name, and .git.")},
    {0},
};
static const csn_tool_field grep_in[] = {
    {STR("pattern", true, "A regular expression (PCRE2), matched line by line.")},
    {STR("path", false, "File or directory; default: the working directory.")},
    {STR("glob", false, "Only files whose path matches, such as *.py or **/*.{ts,tsx}.")},
    {WORD("output_mode", false, "files_with_matches|content|count",
          "files_with_matches (default): names only. content: the lines, with numbers. count: "
          "how many lines of each file.")},
    {BOOL("-i", false, "Ignore case.")},
    {BOOL("gitignore", false, "Leave out what .gitignore files name, and .git.")},
    {INT("-C", false, 0, 100, "content: lines to show before and after each match.")},
    {INT("head_limit", false, 1, 10000, "At most this many lines or names; default 250.")},
    {0},
};
static const csn_tool_field delete_in[] = {
    {STR("file_path", true, "The file or directory.")},
    {BOOL("recursive", false, "Needed for a directory that is not empty.")},
    {0},
};
static const csn_tool_field nothing_in[] = {{0}};

/* ---- copy-on-write workspaces ---------------------------------------------------------- */

static const csn_tool_field change_entry[] = {
    {STR("path", true, "relative to the workspace")},
    {STR("path_base64", false, NULL)},
    {STR("kind", true, "added, deleted, modified, metadata or type")},
    {STR("mode_before", false, NULL)},
    {STR("mode_after", false, NULL)},
    {INT("size_before", true, 0, 0, NULL)},
    {INT("size_after", true, 0, 0, NULL)},
    {BOOL("binary", true, NULL)},
    {BOOL("host_changed", true, "the user changed it meanwhile")},
    {INT("lines_added", true, 0, 0, NULL)},
    {INT("lines_removed", true, 0, 0, NULL)},
    {STR("hash_before", false, NULL)},
    {STR("hash_after", false, NULL)},
    {STR("held", false, "why commit leaves it out; only the user can allow it")},
    {STR("outcome", false, "applied, merged, same, conflict, kept or held")},
    {STR("why", false, NULL)},
    {0},
};
static const csn_tool_field diff_in[] = {
    {WORDS("paths", false, "Only these files and directories; default: all.")},
    {BOOL("patch", false, "Also a patch, default true.")},
    {0},
};
static const csn_tool_field diff_out[] = {
    {LIST("changes", true, change_entry, "sorted by path")},
    {INT("files", true, 0, 0, NULL)},
    {INT("lines_added", true, 0, 0, NULL)},
    {INT("lines_removed", true, 0, 0, NULL)},
    {STR("patch", false, NULL)},
    {STR("patch_base64", false, NULL)},
    {0},
};
static const csn_tool_field commit_in[] = {
    {WORDS("paths", false, "Only these files and directories; default: all.")},
    {BOOL("dry_run", false, "Only tell what would be done.")},
    {WORD("conflicts", false, "mine|theirs",
          "Where the user changed a file too: keep the user's (mine) or take the sandbox's "
          "(theirs). Ask the user first.")},
    {0},
};
static const csn_tool_field conflict_entry[] = {{STR("path", true, NULL)}, {0}};
static const csn_tool_field commit_out[] = {
    {BOOL("written", true, "false: nothing was written")},
    {INT("applied", true, 0, 0, NULL)},
    {INT("merged", true, 0, 0, NULL)},
    {INT("held", true, 0, 0, NULL)},
    {LIST("changes", true, change_entry, "what was done with each")},
    {LIST("conflicts", true, conflict_entry, "always empty; see outcome")},
    {0},
};
static const csn_tool_field snapshot_in[] = {
    {STR("name", false, "A name for it; default: one is made up.")},
    {0},
};
static const csn_tool_field snapshot_out[] = {
    {STR("snapshot", true, NULL)},
    {STR("name", true, "for rollback")},
    {STR("how", false, NULL)},
    {0},
};
static const csn_tool_field rollback_in[] = {
    {STR("name", false, "A snapshot; default: the newest, or the start.")},
    {0},
};
static const csn_tool_field done_out[] = {{BOOL("ok", true, NULL)}, {0}};

/* ---- tools ----------------------------------------------------------------------------- */

const csn_tool_schema csn_wire_tools[] = {
    {
        .name = "bash",
        .title = "Run a command",
        .text =
            "Run a shell command in the sandbox. The shell stays between calls: its directory "
            "and its variables are those the last command left. Calls that overlap run side by "
            "side; one that finds the shell busy gets a shell of its own in the same "
            "directory. So does one with cwd, env, allowed_domains or package_managers: they "
            "hold for this command only.\n"
            "Returns stdout, stderr and the exit code; a code other than 0 is a result, not a "
            "failure of the tool. There is no terminal and no standard input: use options that "
            "ask nothing (-y). For servers and anything that does not end use "
            "run_in_background. Long output is cut in the middle; redirect it to a file and "
            "use read or grep. To read, search and change files prefer read, grep, glob, edit "
            "and write.",
        .input = bash_in,
        .output = bash_out,
        .hints = CSN_TOOL_DESTRUCTIVE | CSN_TOOL_OPEN_WORLD,
    },
    {
        .name = "process",
        .title = "Background processes",
        .text = "Look after the processes that bash started with run_in_background: list them, "
                "read what they printed since the last time, write to their standard input, "
                "stop them. To wait for a server, ask for output with a timeout until it says "
                "that it is ready.",
        .input = process_in,
        .output = process_out,
        .hints = CSN_TOOL_DESTRUCTIVE,
    },
    {
        .name = "read",
        .title = "Read a file",
        .text = "Read a file. Text comes with line numbers (counted from 1, then a tab), at "
                "most 2000 lines at a time; offset and limit choose others, and the end says "
                "where to go on. PNG, JPEG, GIF, WebP and BMP come as images, PDF as a "
                "document. For directories use ls.",
        .input = read_in,
        .hints = CSN_TOOL_READ_ONLY | CSN_TOOL_IDEMPOTENT,
    },
    {
        .name = "write",
        .title = "Write a file",
        .text =
            "Create a file or replace all of its content atomically; with append, add to its "
            "end. To change a part of a file use edit.",
        .input = write_in,
        .output = write_out,
        .hints = CSN_TOOL_DESTRUCTIVE,
    },
    {
        .name = "edit",
        .title = "Edit a file",
        .text = "Replace text in a file, exactly as given. Fails without changing anything "
                "when old_string is not there (and shows the nearest line) or occurs more than "
                "once without replace_all: then give more of the lines around it.",
        .input = edit_in,
        .output = edit_out,
        .hints = CSN_TOOL_DESTRUCTIVE,
    },
    {
        .name = "ls",
        .title = "List a directory",
        .text = "List a directory: names sorted, directories with a slash, sizes in bytes. "
                "Hidden files are shown.",
        .input = ls_in,
        .output = ls_out,
        .hints = CSN_TOOL_READ_ONLY | CSN_TOOL_IDEMPOTENT,
    },
    {
        .name = "glob",
        .title = "Find files by name",
        .text = "Find files by a pattern over their paths: ** * ? [..] {a,b}. Hidden files "
                "count. Paths come sorted and relative to the directory searched.",
        .input = glob_in,
        .output = glob_out,
        .hints = CSN_TOOL_READ_ONLY | CSN_TOOL_IDEMPOTENT,
    },
    {
        .name = "grep",
        .title = "Search in files",
        .text = "Search files by a regular expression; escape what is meant literally. Binary "
                "files are skipped, ignored and hidden ones are not. Faster and safer than "
                "grep in bash.",
        .input = grep_in,
        .output = grep_out,
        .hints = CSN_TOOL_READ_ONLY | CSN_TOOL_IDEMPOTENT,
    },
    {
        .name = "delete",
        .title = "Delete a file",
        .text = "Delete a file, a symlink (not what it points to) or, with recursive, a "
                "directory with everything in it. There is no undo.",
        .input = delete_in,
        .output = delete_out,
        .hints = CSN_TOOL_DESTRUCTIVE,
    },
    {
        .name = "sandbox_info",
        .title = "About the sandbox",
        .text = "Tell what this sandbox is: where it works, what isolates it, what is enforced "
                "and what is not. Use it when something is refused and you want to know why.",
        .input = nothing_in,
        .output = info_out,
        .hints = CSN_TOOL_READ_ONLY | CSN_TOOL_IDEMPOTENT,
    },
    {
        .name = "diff",
        .title = "Show all changes",
        .text = "Show what this sandbox changed in the workspace, compared with the user's "
                "files, which stay as they are until commit.",
        .input = diff_in,
        .output = diff_out,
        .hints = CSN_TOOL_COW | CSN_TOOL_READ_ONLY | CSN_TOOL_IDEMPOTENT,
    },
    {
        .name = "commit",
        .title = "Write changes to the user's files",
        .text = "Write changes of this sandbox to the user's files: all, or those of paths. "
                "Files that the user changed too are merged; if that is not possible nothing "
                "is written. No command may run meanwhile. Commit only what the user wants.",
        .input = commit_in,
        .output = commit_out,
        .hints = CSN_TOOL_COW | CSN_TOOL_DESTRUCTIVE,
    },
    {
        .name = "discard",
        .title = "Throw all changes away",
        .text = "Throw away all changes and snapshots: the workspace has the user's files "
                "again. There is no undo.",
        .input = nothing_in,
        .output = done_out,
        .hints = CSN_TOOL_COW | CSN_TOOL_DESTRUCTIVE | CSN_TOOL_IDEMPOTENT,
    },
    {
        .name = "snapshot",
        .title = "Save the workspace",
        .text = "Save the files of the workspace under a name, in a moment, before something "
                "risky; rollback restores them.",
        .input = snapshot_in,
        .output = snapshot_out,
        .hints = CSN_TOOL_COW,
    },
    {
        .name = "rollback",
        .title = "Restore a snapshot",
        .text = "Restore the files of a snapshot; later changes are lost. No command may run "
                "meanwhile; the shell keeps its directory and variables.",
        .input = rollback_in,
        .output = done_out,
        .hints = CSN_TOOL_COW | CSN_TOOL_DESTRUCTIVE,
    },
    {
        .name = "undo",
        .title = "Take back the last command",
        .text = "Restore the files that the workspace had before the last command, if the "
                "server was started with --undo.",
        .input = nothing_in,
        .output = done_out,
        .hints = CSN_TOOL_COW | CSN_TOOL_DESTRUCTIVE,
    },
    {.name = NULL},
};
