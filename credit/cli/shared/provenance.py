"""What made a file: the release, the commit of what was not released, and the command."""

from __future__ import annotations

import functools
import importlib.metadata
import json
import shlex
import subprocess
from pathlib import Path

import click

from credit import __version__

__all__ = ["CALL", "commit_of", "release", "source"]

CALL = "credit.call"  # the key of a call's context that holds its words


def release() -> str:
    """The release of this package, with the commit of what was not released."""
    return ", ".join(filter(None, [f"orchestration-credit {__version__}", commit_of(Path(__file__))]))


def source() -> str:
    """The release and the command that runs now, which a shell would take."""
    context = click.get_current_context(silent=True)
    call = [] if context is None else context.meta.get(CALL, [])
    return release() + f"; {shlex.join(['credit', *call])}" * bool(call)


@functools.cache
def commit_of(file: Path) -> str:
    """The commit from which a file of the package was installed or is run, in words; "" of a release."""
    try:
        installed = importlib.metadata.distribution("orchestration-credit").read_text("direct_url.json")
    except importlib.metadata.PackageNotFoundError:
        installed = None
    if commit := json.loads(installed or "{}").get("vcs_info", {}).get("commit_id", ""):
        return f"commit {commit[:12]}"
    git = ["git", "-C", str(file.parent)]
    try:
        subprocess.run([*git, "ls-files", "--error-unmatch", file.name], check=True, capture_output=True)
        told = subprocess.run([*git, "describe", "--always", "--dirty", "--exclude=*", "--abbrev=12"], check=True,
                              capture_output=True, text=True).stdout.strip()  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f"commit {told.removesuffix('-dirty')}{' with changes' * told.endswith('-dirty')}"
