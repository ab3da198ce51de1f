"""A fit on eight devices is that on one, but for the order of additions."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from several_devices import with_devices

from estimators.critic.data import CriticData, Room, in_batches, pack, room

FIT = """
import json, pathlib, sys, tempfile
import jax, numpy as np
from estimators.critic.data import CriticData, split_by_task
from estimators.critic.features import event_features
from estimators.critic.predict import predict_corpus
from estimators.critic.train import Settings, fit
from graphs.worlds.quality import QualityWorld

assert len(jax.devices()) == 8
episodes = QualityWorld(events=20, agents=4).sample(0, 40)
corpus = CriticData.of(episodes.graph, event_features(episodes.graph, dense=episodes.dense), episodes.reward)
split = split_by_task(corpus.group, corpus.reward, seed=1)
settings = Settings(epochs=5, lambda_=float(sys.argv[1]), members=2, hidden=4, sums=2, patience=5, batch_events=256)
one, many = (fit(corpus, split, settings, devices=devices) for devices in (None, jax.devices()))
assert len(one.history) == len(many.history) and one.history[-1].best < one.history[0].validation
values = [np.concatenate([part.ravel() for part in predict_corpus(fitted, corpus)]) for fitted in (one, many)]
losses = [[(e.train, e.validation) for e in fitted.history] for fitted in (one, many)]
said = {
    "values": float(np.abs(values[0] - values[1]).max()),
    "losses": float(np.abs(np.subtract(*losses)).max()),
    "moved": float(np.abs(values[0] - values[0].mean()).max()),
}
with tempfile.TemporaryDirectory() as folder:
    stopped = pathlib.Path(folder) / "state"
    class Killed(Exception): pass
    def kill(epoch):
        if epoch.number == 2:
            raise Killed
    try:
        fit(corpus, split, settings, checkpoint=stopped, after_epoch=kill, devices=jax.devices())
    except Killed:
        pass
    resumed = fit(corpus, split, settings, checkpoint=stopped, devices=jax.devices())
    said["resumed"] = resumed.history == many.history
print(json.dumps(said))
"""


@pytest.mark.study
@pytest.mark.parametrize("lambda_", ["0.9", pytest.param("1.0", marks=pytest.mark.study)])
def test_eight_devices_fit_what_one_fits(lambda_: str) -> None:
    """Values of prefixes differ by at most 1e-4 after five epochs, and a killed fit goes on bit for bit.

    λ < 1 has all that λ = 1 computes, and its targets rest on the values of the slowly moving network besides.
    """
    done = subprocess.run(
        [sys.executable, "-c", FIT, lambda_], env=with_devices(8), capture_output=True, text=True, timeout=1200
    )
    assert done.returncode == 0, done.stderr[-2000:]
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["resumed"]
    assert said["values"] < 1e-4 and said["losses"] < 1e-4 and said["moved"] > 1e-2, said


def test_parts_of_a_batch_hold_its_traces_whole(corpus: CriticData) -> None:
    """Any batch fits into eight parts of the smaller size, each trace in one of them."""
    from estimators.critic.steps import cut_batch

    to: Room = room(corpus, 256)
    for chosen in in_batches(corpus, np.arange(len(corpus.reward)), to):
        parts = cut_batch(corpus, chosen, 8)
        assert np.concatenate(parts).tolist() == chosen.tolist() and len(parts) == 8
        size = room(corpus, to.events // 8 + int(corpus.lengths.max()))
        held = [pack(corpus, part, size).trace_mask.sum() for part in parts]
        assert sum(held) == len(chosen) and max(held) < len(chosen)
