"""Options of a sandbox: the keys of `caisson policy schema`. Generated: do not edit."""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict, Union

Path = Union[str, "os.PathLike[str]"]
Paths = Union[Path, Sequence[Path]]
Words = Union[str, Sequence[str]]


class Limits(TypedDict, total=False):
    """The option `limits` of a sandbox."""

    #: memory of all commands together
    memory: Union[int, str]
    #: processes at one time
    pids: Union[int, str]
    #: processors, such as 0.5 or 2
    cpus: Union[int, float, str]
    #: what may be written in all
    disk: Union[int, str]
    #: size of one file
    file_size: Union[int, str]


class Network(TypedDict, total=False):
    """The option `network` of a sandbox."""

    #: network, when no host is named
    mode: Literal["none", "all"]
    #: a host that may be reached
    allow: Words
    deny: Words
    #: hosts of package managers: npm,pip,cargo,go ... (caisson(1) lists all)
    packages: Words
    #: make a port inside reachable on the host's loopback
    publish: Words
    #: make a port of the host's loopback reachable inside
    host_ports: Words


class SandboxOptions(TypedDict, total=False):
    """Options of a sandbox; caisson(1) and caisson-policy(5) describe them."""

    #: jail (default; or $CAISSON_BACKEND), local, e2b, vercel, dagger, docker
    backend: str
    name: str
    #: the directory to work in; default: the current one; auto: its git repository
    workspace: Path
    workspaces: Paths
    #: make the workspace if it is missing
    create_workspace: bool
    #: keep changes apart from the workspace until commit; as HOST:cow
    cow: bool
    #: with --cow: a snapshot before each command, for undo
    undo: bool
    #: with --cow: the files that a command changed go to the audit log
    record_changes: bool
    #: first working directory; default: the workspace
    workdir: Path
    #: another directory that may be read
    read: Paths
    #: another directory that may be written
    write: Paths
    #: refuse this path inside the above; patterns: '**/.env*'
    deny: Paths
    #: the same for a path that may not exist yet
    deny_missing_ok: Paths
    rules: Sequence[Mapping[str, Any]]
    #: home, hosts and variables for claude, codex or gemini; caisson policy agent NAME
    agent: Literal["claude", "codex", "gemini"]
    #: host directory for HOME; default: a private one
    home: Path
    #: run only commands with this name; may be repeated
    commands: Words
    #: a variable for every command
    env: Union[Words, Mapping[str, str]]
    #: of one command; default: none for run, 120s for mcp, else 30s
    timeout: Union[int, str]
    #: bytes kept per stream with --json, default 1M
    output_max: Union[int, str]
    #: of the sandbox
    lifetime: Union[int, str]
    #: image or template, where a backend has them
    image: str
    #: file calls refuse every symlink
    nofollow: bool
    #: accept less isolation than the backend promises
    allow_weaker: bool
    #: commands may make namespaces and mounts, for sandboxes inside
    nested: bool
    detached: bool
    #: file for the audit log, or no log; default: one per sandbox
    audit: Path
    #: days of use that logs of ended sandboxes are kept, default 30
    audit_keep: Union[int, str]
    #: of all logs together, default 1G; the oldest are removed
    audit_max: Union[int, str]
    limits: Limits
    network: Union[Network, Literal["none", "all"]]
