"""`credit fit critic`, killed at random moments: nothing partial is left, and a rerun gives the identical critic."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
MOMENTS, LEAST = 12, 9  # how many operations on files there are differs a little from fit to fit
LONGEST = 500  # seconds, of a machine with much else to do

# A process that is killed leaves the files that it had when it was stopped. So one fit is stopped at random operations
# on its files, its folder copied, and the fit continued; then each copy is fitted to its end. All of it is one process,
# because starting and compiling would take nearly all the time.
DRIVER = """
import json, os, random, signal, sys
from pathlib import Path
signal.alarm(int(sys.argv[3]))
import jax, numpy as np
folder, log, moments = Path(sys.argv[1]), sys.argv[2], int(sys.argv[4])
from credit.__main__ import main
from credit.critics.fitting import load_critic

watched, calls, stops = None, 0, frozenset()

def hook(event, arguments):
    global calls
    if watched is None or event not in ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.truncate"):
        return
    if watched in str(arguments[0]):
        calls += 1
        if calls in stops:
            os.kill(os.getpid(), signal.SIGSTOP)

def fit(name):
    global watched, calls
    sys.argv = ["credit", "fit", "critic", log, "--model", "network", "--members", "2", "--epochs", "10",
                "--patience", "10", "-o", str(folder / name)]
    watched, calls = "/" + name, 0
    try:
        main()
    except SystemExit as ended:
        assert not ended.code, ended.code
    watched = None
    return calls

def content(name):
    critic = load_critic(folder / name)
    arrays = jax.tree.leaves(critic.fitted.parameters)
    return (folder / name / "critic.json").read_bytes(), [np.asarray(x).tobytes() for x in arrays]

sys.addaudithook(hook)
most = fit("whole")
stops = frozenset(random.Random(3).sample(range(1, most + 1), moments))
fit("stopped")
stops, expected = frozenset(), content("whole")
assert content("stopped") == expected
for name in sorted(path.name for path in folder.glob("killed*")):
    fit(name)
    assert content(name) == expected, name
(folder / "done").write_text(json.dumps(most))
"""


def logs(folder: Path) -> Path:
    """96 traces of 24 tasks whose outcomes follow from their events."""
    rng = np.random.default_rng(5)
    lines = []
    for i in range(96):
        kinds = ["message"] * int(rng.integers(1, 4)) + ["stop"]
        events = [{"id": f"e{j}", "t": j, "type": kind, "agent": "a"} for j, kind in enumerate(kinds)]
        edges = [{"src": f"e{j}", "dst": f"e{j + 1}", "type": "temporal"} for j in range(len(kinds) - 1)]
        rewards = {"team": float(len(kinds) > 2)}
        lines.append(
            {"trace_id": f"t{i}", "task_id": f"q{i // 4}", "events": events, "edges": edges, "rewards": rewards}
        )
    file = folder / "x.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    return file


@pytest.mark.study
def test_a_fit_killed_at_random_moments_ends_with_the_identical_critic(tmp_path: Path) -> None:
    pytest.importorskip("flax")
    arguments = [sys.executable, "-W", "ignore", "-c", DRIVER, str(tmp_path), str(logs(tmp_path)), str(LONGEST)]
    output = os.open(tmp_path / "output", os.O_CREAT | os.O_WRONLY)
    child = os.posix_spawn(
        sys.executable,
        [*arguments, str(MOMENTS)],
        os.environ | {"PYTHONPATH": str(ROOT), "XLA_FLAGS": "--xla_backend_optimization_level=0"},  # compiles faster
        file_actions=[(os.POSIX_SPAWN_DUP2, output, 1), (os.POSIX_SPAWN_DUP2, output, 2)],
    )
    os.close(output)
    states: list[set[str]] = []
    while True:
        _, status = os.waitpid(child, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            break
        if (tmp_path / "stopped").is_dir():
            shutil.copytree(tmp_path / "stopped", tmp_path / f"killed{len(states)}")
        states.append({str(path.relative_to(tmp_path / "stopped")) for path in (tmp_path / "stopped").rglob("*")})
        if "critic.json" in states[-1]:
            assert (tmp_path / "stopped" / "critic.json").read_bytes() == (tmp_path / "whole/critic.json").read_bytes()
        os.kill(child, signal.SIGCONT)
    assert os.waitstatus_to_exitcode(status) == 0, (tmp_path / "output").read_text()[-3000:]
    assert (tmp_path / "done").is_file()
    distinct = len({frozenset(state) for state in states})
    assert len(states) >= LEAST and distinct >= LEAST // 4, (len(states), distinct)
