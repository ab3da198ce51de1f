"""Training with the groups of a step over eight devices is training on one."""

from __future__ import annotations

import json
import subprocess
import sys

import jax
import pytest
from several_devices import with_devices

from credit.bench.training.learning_tasks import learning_task
from credit.bench.training.training_loop import TrainingSettings, train
from credit.bench.training.training_signals import training_signal
from graphs.errors import CreditError

TRAIN = """
import json, sys
import jax, numpy as np
from credit.bench.training import training_loop
from credit.bench.training.learning_tasks import learning_task
from credit.bench.training.training_signals import training_signal

assert len(jax.devices()) == 8
settings = training_loop.TrainingSettings(steps=19, groups=8)
for name in sys.argv[1:]:
    one, many = (
        training_loop.train(learning_task("pivotal"), training_signal(name), settings, 0, 0.2, devices)
        for devices in (None, jax.devices())
    )
    print(json.dumps({
        "signal": name, "updates": [len(one.spent), len(many.spent)], "learned": one.expected[-1] - one.expected[0],
        "spent": one.spent.tolist() == many.spent.tolist(),
        "expected": float(np.abs(one.expected - many.expected).max()),
    }), flush=True)
"""
SIGNALS = ("reinforce_batch", "gae")  # of scope "batch", and of "group" with a critic that learns on the way


@pytest.mark.study
def test_eight_devices_learn_what_one_learns() -> None:
    """The exact expected return of every policy on the way differs by at most 1e-4."""
    command = [sys.executable, "-c", TRAIN, *SIGNALS]
    done = subprocess.run(command, env=with_devices(8), capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr[-2000:]
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert [result["signal"] for result in results] == list(SIGNALS)
    for result in results:
        one, many = result["updates"]
        assert result["spent"] and one == many > 10 and result["learned"] > 0.05, result
        assert result["expected"] < 1e-4, result


def test_groups_that_cannot_be_spread_are_refused() -> None:
    devices = [jax.devices()[0]] * 3
    with pytest.raises(CreditError, match="groups is 4; expected a multiple of 3"):
        train(learning_task("pivotal"), training_signal("rloo"), TrainingSettings(), 0, 0.2, devices)
