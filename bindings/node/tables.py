"""tables.py: what the generator of the Node package cannot know from the headers: the method of each
function, names and types in JavaScript, and which flags an option type has."""

# C function -> method. `Sandbox.x` is an instance method, `x` a function of the module.
METHODS = {
    "csn_version": "version", "csn_set_log": "setLog", "csn_open": "open",
    "csn_connect": "connect", "csn_close": "Sandbox.close", "csn_destroy": "Sandbox.destroy",
    "csn_reset": "Sandbox.reset", "csn_destroy_id_report": "destroyId", "csn_forget": "forget", "csn_id": "Sandbox.id",
    "csn_info": "Sandbox.info", "csn_sandboxes": "sandboxes",
    "csn_set_workdir": "Sandbox.setWorkdir", "csn_cleanup_with": "Sandbox.cleanup",
    "csn_extend": "Sandbox.extend", "csn_pause": "Sandbox.pause", "csn_resume": "Sandbox.resume",
    "csn_exec": "Sandbox.exec", "csn_sh": "Sandbox.sh", "csn_start": "Sandbox.start",
    "csn_start_sh": "Sandbox.startSh", "csn_process_open": "Sandbox.process",
    "csn_process_pid": "Process.pid", "csn_process_free": "Process.release",
    "csn_processes": "Sandbox.processes", "csn_process_logs": "Process.logs",
    "csn_process_wait": "Process.wait", "csn_process_signal": "Process.signal",
    "csn_process_write": "Process.write", "csn_process_close_stdin": "Process.closeStdin",
    "csn_process_resize": "Process.resize", "csn_wait_port": "Sandbox.waitPort",
    "csn_wait_log": "Sandbox.waitLog", "csn_read": "Sandbox.read",
    "csn_read_bytes": "Sandbox.readBytes", "csn_write": "Sandbox.write",
    "csn_write_from": "Sandbox.writeFrom", "csn_write_many": "Sandbox.writeMany",
    "csn_write_tar": "Sandbox.writeTar", "csn_edit": "Sandbox.edit",
    "csn_delete": "Sandbox.delete", "csn_mkdir": "Sandbox.mkdir", "csn_rename": "Sandbox.rename",
    "csn_stat": "Sandbox.stat", "csn_list": "Sandbox.list", "csn_glob": "Sandbox.glob",
    "csn_grep": "Sandbox.grep", "csn_watch_open": "Sandbox.watch", "csn_watch_next": "Watch.next",
    "csn_watch_free": "Watch.release", "csn_network_set": "Sandbox.networkSet",
    "csn_network": "Sandbox.network", "csn_export": "Sandbox.export",
    "csn_import": "Sandbox.import", "csn_export_tar": "Sandbox.exportTar",
    "csn_import_tar": "Sandbox.importTar", "csn_would_allow": "Sandbox.wouldAllow",
    "csn_doctor": "doctor", "csn_snapshot": "Sandbox.snapshot", "csn_rollback": "Sandbox.rollback",
    "csn_fork": "Sandbox.fork", "csn_snapshot_as": "Sandbox.snapshotAs",
    "csn_snapshots": "Sandbox.snapshots", "csn_undo": "Sandbox.undo",
    "csn_discard": "Sandbox.discard", "csn_diff": "Sandbox.diff", "csn_commit": "Sandbox.commit",
    "csn_audit_read": "auditRead", "csn_audit_verify": "auditVerify",
    "csn_audit_read_file": "auditReadFile", "csn_audit_verify_file": "auditVerifyFile",
    "csn_audit_logs": "auditLogs", "csn_audit_remove": "auditRemove",
    "csn_aside_list": "asideList", "csn_aside_restore": "asideRestore",
    "csn_aside_remove": "asideRemove",
}
WITHOUT_METHOD = {
    "csn_status_name": "CaissonError.code has the word",
    "csn_status_text": "CaissonError.message has the text",
    "csn_status_http": "STATUSES has the number",
    "csn_cancel_new": "an AbortSignal", "csn_cancel_fire": "an AbortSignal",
    "csn_cancel_free": "an AbortSignal", "csn_config_parse": "open() does it",
    "csn_config_free": "open() does it", "csn_destroy_id": "destroyId() uses the form that reports",
    "csn_on_denial": "close() and destroy() return these denials",
    "csn_cleanup": "cleanup() uses the form with flags",
}
for part in ("code", "message", "op", "path", "hint", "errno", "denial"):
    WITHOUT_METHOD[f"csn_error_{part}"] = "CaissonError has it"
# Written by hand in addon/special.c, with the letters of their arguments.
SPECIAL = {"csn_open": "b", "csn_close": "h", "csn_destroy": None, "csn_reset": None,
           "csn_destroy_id_report": "s", "csn_wait_port": None, "csn_wait_log": None,
           "csn_process_wait": None, "csn_process_logs": None, "csn_watch_next": "HU",
           "csn_read_bytes": "HsoS", "csn_audit_read": "sL", "csn_audit_read_file": "sL"}
RETURNS = {"csn_open": "R_SANDBOX", "csn_close": "R_DENIALS", "csn_destroy": "R_DENIALS",
           "csn_destroy_id_report": "R_DENIALS", "csn_read_bytes": "R_BYTES"}
NATIVE_ONLY = ("csn_version", "csn_set_log", "csn_id", "csn_process_pid", "csn_process_free",
               "csn_watch_free")  # functions of addon.c, without a promise

# Structs inside of results whose fields become fields of the result.
FLAT = {("csn_exec_result", "out"): "stdout", ("csn_exec_result", "err"): "stderr",
        ("csn_exec_result", "merged"): "output"}
CLASSES = {"csn_exec_result": ("stdout", "stderr", "output"), "csn_read_result": ("content",)}
TYPE_NAMES = {"csn_info_result": "SandboxInfo", "csn_net_result": "NetworkInfo",
              "csn_net_event": "NetworkEvent", "csn_event": "WatchEvent",
              "csn_audit_logs_result": "AuditLogs", "csn_aside_list_result": "AsideList"}
NULLABLE = {"csn_denial": "target resolved rule source hint", "csn_info_result": "workspace home workdir",
            "csn_sandbox_entry": "name workspace", "csn_net_event": "protocol address rule hint why",
            "csn_conflict": "base host sandbox merged why", "csn_change": "hash_before",
            "csn_doctor_result": "rung", "csn_exec_result": "killed_by sandbox",
            "csn_write_result": "note resolved_path", "csn_edit_result": "hash resolved_path",
            "csn_net_result": "detail network", "csn_layer": "detail",
            "csn_rule_info": "source enforced", "csn_check": "detail"}

# Option types: (TypeScript name, struct or None, prefix of flags, flags, what else it is for).
FILE = "CSN_FILE_"
OPTION_TYPES = [
    ("ExecOptions", "csn_exec_opts", "CSN_EXEC_", "MERGE RESTART SUDO PTY"),
    ("StartOptions", "csn_exec_opts", "CSN_EXEC_", "MERGE SUDO PTY TIED"),
    ("ReadOptions", "csn_read_opts", FILE, "NOFOLLOW NUMBERS TEXT HASH"),
    ("ReadBytesOptions", "csn_read_opts", FILE, "NOFOLLOW"),
    ("WriteOptions", "csn_write_opts", FILE, "NOFOLLOW CREATE APPEND SYNC NO_PARENTS"),
    ("WriteManyOptions", None, FILE, "NOFOLLOW CREATE SYNC NO_PARENTS"),
    ("EditOptions", None, FILE, "NOFOLLOW SYNC"),
    ("DeleteOptions", None, FILE, "NOFOLLOW RECURSIVE"),
    ("MkdirOptions", None, FILE, "NOFOLLOW NO_PARENTS"),
    ("StatOptions", None, FILE, "NOFOLLOW"),
    ("GlobOptions", None, FILE, "NOFOLLOW GITIGNORE"),
    ("WatchOptions", None, FILE, "NOFOLLOW RECURSIVE"),
    ("GrepOptions", "csn_grep_opts", "CSN_GREP_", "REGEX IGNORE_CASE GITIGNORE"),
    ("NetworkRules", "csn_net_opts", "", ""),
    ("TransferOptions", "csn_transfer_opts", "", ""),
    ("ExportOptions", "csn_transfer_opts", "CSN_TRANSFER_", "PROTECTED"),
    ("DiffOptions", "csn_diff_opts", "CSN_DIFF_", "PATCH COUNTS HASHES"),
    ("CommitOptions", "csn_commit_opts", "CSN_COMMIT_", "DRY_RUN PROTECTED MINE THEIRS"),
    ("CleanupOptions", None, "CSN_CLEANUP_", "FORCE"),
    ("AsideRestoreOptions", None, "CSN_ASIDE_", "REPLACE"),
]
# Fields that an option type leaves out, and those that JavaScript gives in another form.
LEFT_OUT = {"StartOptions": {"on_output", "on_denial", "session", "allowed_domains", "package_managers"},
            "ReadBytesOptions": {"byte_max"},
            "TransferOptions": {"on_protected"}}
NEVER = {"flags", "cancel", "stdin_fd", "reserved"}
CALLBACK_TYPES = {"on_output": "(stream: 'stdout' | 'stderr', data: Buffer) => unknown",
                  "on_denial": "(denial: Denial) => unknown",
                  "on_progress": "(entries: number, bytes: number) => unknown",
                  "on_protected": "(path: string, rule: string) => unknown"}
OPTION_ITEMS = {"csn_file_content": "FileContent", "csn_edit_item": "EditItem",
                "csn_resolution": "Resolution"}
BANNER = "generated by bindings/node/generate; do not edit"
