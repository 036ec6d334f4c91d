"""functions.py: which Go function or method serves each function of the headers.

METHODS: the names, separated by spaces. NO_METHOD: why there is none."""

METHODS = {
    "csn_version": "Version", "csn_set_log": "SetLog",
    "csn_open": "Open New", "csn_connect": "Connect", "csn_close": "Caisson.Close",
    "csn_destroy": "Caisson.Destroy", "csn_reset": "Caisson.Reset",
    "csn_on_denial": "Caisson.OnDenial", "csn_destroy_id_report": "DestroyID", "csn_forget": "Forget",
    "csn_id": "Caisson.ID", "csn_info": "Caisson.Info", "csn_sandboxes": "Sandboxes",
    "csn_set_workdir": "Caisson.SetWorkdir", "csn_cleanup_with": "Caisson.Cleanup",
    "csn_extend": "Caisson.Extend", "csn_pause": "Caisson.Pause", "csn_resume": "Caisson.Resume",
    "csn_exec": "Caisson.Run", "csn_sh": "Caisson.Sh Caisson.Exec Caisson.Stream",
    "csn_start": "Caisson.Start", "csn_start_sh": "Caisson.StartSh",
    "csn_process_open": "Caisson.OpenProcess", "csn_process_pid": "Process.PID",
    "csn_process_free": "Process.Close", "csn_processes": "Caisson.Processes",
    "csn_process_logs": "Process.Logs Process.Follow Process.Reader",
    "csn_process_wait": "Process.Wait", "csn_process_signal": "Process.Signal",
    "csn_process_write": "Process.Write", "csn_process_close_stdin": "Process.CloseStdin",
    "csn_process_resize": "Process.Resize", "csn_wait_port": "Caisson.WaitPort",
    "csn_wait_log": "Caisson.WaitLog", "csn_read": "Caisson.Read",
    "csn_read_bytes": "Caisson.ReadBytes Caisson.ReadFile Caisson.ReadTo",
    "csn_write": "Caisson.Write Caisson.WriteFile",
    "csn_write_from": "Caisson.WriteFrom Caisson.Writer",
    "csn_write_many": "Caisson.WriteMany Caisson.WriteFiles", "csn_write_tar": "Caisson.WriteTar",
    "csn_edit": "Caisson.Edit", "csn_delete": "Caisson.Delete Caisson.DeleteFile",
    "csn_mkdir": "Caisson.Mkdir", "csn_rename": "Caisson.Rename", "csn_stat": "Caisson.Stat",
    "csn_list": "Caisson.List Caisson.ListDirectory", "csn_glob": "Caisson.Glob",
    "csn_grep": "Caisson.Grep", "csn_watch_open": "Caisson.Watch",
    "csn_watch_next": "Watch.Next Watch.Events", "csn_watch_free": "Watch.Close",
    "csn_network_set": "Caisson.SetNetwork", "csn_network": "Caisson.Network",
    "csn_export": "Caisson.Export Caisson.ExportDirectory",
    "csn_import": "Caisson.Import Caisson.RefreshFromHost",
    "csn_export_tar": "Caisson.ExportTar", "csn_import_tar": "Caisson.ImportTar",
    "csn_would_allow": "Caisson.WouldAllow", "csn_doctor": "Doctor",
    "csn_snapshot": "Caisson.Snapshot", "csn_snapshot_as": "Caisson.SnapshotAs",
    "csn_snapshots": "Caisson.Snapshots", "csn_rollback": "Caisson.Rollback",
    "csn_fork": "Caisson.Fork", "csn_undo": "Caisson.Undo", "csn_discard": "Caisson.Discard",
    "csn_diff": "Caisson.Diff", "csn_commit": "Caisson.Commit",
    "csn_audit_read": "AuditRead", "csn_audit_verify": "AuditVerify",
    "csn_audit_read_file": "AuditReadFile", "csn_audit_verify_file": "AuditVerifyFile",
    "csn_audit_logs": "AuditLogs", "csn_audit_remove": "AuditRemove",
    "csn_aside_list": "AsideList", "csn_aside_restore": "AsideRestore",
    "csn_aside_remove": "AsideRemove", "csn_register_backend": "RegisterBackend",
}

FREED = "the package frees results after their conversion"
CONVERTED = "its value is a field of *Error"
NO_METHOD = {
    **{name: FREED for name in (
        "csn_info_free", "csn_sandbox_list_free", "csn_exec_result_free", "csn_process_list_free",
        "csn_log_chunk_free", "csn_read_result_free", "csn_write_result_free",
        "csn_edit_result_free", "csn_file_list_free", "csn_grep_result_free", "csn_network_free",
        "csn_verdict_free", "csn_doctor_result_free", "csn_snapshot_result_free",
        "csn_snapshot_list_free", "csn_diff_result_free", "csn_commit_result_free",
        "csn_audit_report_free", "csn_audit_logs_free", "csn_aside_list_free", "csn_error_free")},
    **{name: CONVERTED for name in (
        "csn_error_code", "csn_error_message", "csn_error_op", "csn_error_path", "csn_error_hint",
        "csn_error_errno", "csn_error_denial")},
    **{name: "a context.Context cancels" for name in (
        "csn_cancel_new", "csn_cancel_fire", "csn_cancel_free")},
    "csn_status_name": "Code is the word", "csn_status_text": "Code.Error returns the text",
    "csn_status_http": "for servers; the package has none",
    "csn_config_parse": "Open calls it with the options as JSON", "csn_config_free": FREED,
    "csn_destroy_id": "DestroyID calls csn_destroy_id_report, which does the same and reports",
    "csn_cleanup": "Cleanup calls csn_cleanup_with",
    "csn_error_set": "a Backend returns a Go error",
}
