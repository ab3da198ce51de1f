"""What made a file: the release, the commit of what was not released, and the command."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import json
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import click

from credit import __version__

__all__ = ["CALL", "commit_of", "release", "source"]

CALL = "credit.call"  # the key of a call's context that holds its words
_NAMED = re.compile(r"([^\W\d][\w.]*):[^\W\d]")  # module:name
STARTED = time.time()  # of the program
_OURS = ("credit", "estimators", "graphs")


def release() -> str:
    """The release of this package, with the commit of what was not released."""
    return ", ".join(filter(None, [f"orchestration-credit {__version__}", commit_of(Path(__file__))]))


def source() -> str:
    """The release, the command that runs now, which a shell would take, and a digest of each module of yours in it."""
    context = click.get_current_context(silent=True)
    call = [] if context is None else context.meta.get(CALL, [])
    return "; ".join([release(), *[shlex.join(["credit", *call])] * bool(call), *_digests(call)])


def _digests(call: Iterable[str]) -> list[str]:
    """The file of each module that a call names as "module:name" and that is loaded, with the sha256 of its text.

    What the module imports has no digest, nor has what the commit tells. An edit during the run is said.
    """
    named = dict.fromkeys(name for word in call for name in _NAMED.findall(word) if name.split(".")[0] not in _OURS)
    files = [Path(getattr(sys.modules.get(name), "__file__", None) or "") for name in named]
    return [
        f"{file.name} sha256 {hashlib.sha256(file.read_bytes()).hexdigest()[:12]}"
        + ", changed after the program started" * (file.stat().st_mtime > STARTED)
        for file in files
        if file.is_file()
    ]


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
