"""The functions of the package that need no sandbox, as coroutines."""
from ._aio import (aside_list, aside_remove, aside_restore, audit_logs, audit_read, audit_read_file,
                   audit_remove, audit_verify, audit_verify_file, destroy_id, doctor,
                   forget, sandboxes)
from ._aio import AsyncSandbox as Sandbox

__all__ = ["Sandbox", "aside_list", "aside_remove", "aside_restore", "audit_logs", "audit_read",
           "audit_read_file", "audit_remove", "audit_verify", "audit_verify_file", "destroy_id",
           "doctor", "forget", "sandboxes"]
