"""Longer tasks of language teams: the verifier on transcripts, features, re-runs, and signals that teach."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks.language.recurrent_team import Mode, Played, fresh_networks
from benchmarks.language.task_training import (
    _centred,
    _drawn,
    _play,
    exact_increments,
    hidden_features,
    increments,
    token_features,
    training,
)
from benchmarks.language.verified_tasks import TASKS, verify


@pytest.mark.parametrize(
    ("task", "question", "said", "reward"),
    [
        # 4 plus 3 = 7, less 5 = 2, times 6 = 12, against 9 = 9, and six more lines of plus 0.
        ("calculation", [4, 0, 3, 4, 5, 6, 6, 11, 9, *[0, 0] * 6],
         ["add 3", "subtract 5", "multiply 6", "greatest 9", *["add 0"] * 6], 1.0),
        # Seven less a wrong digit: 7, 3 for 2, then 8 for 2 (18 mod 10), and 9 for 9: the greatest mends it.
        ("calculation", [4, 0, 3, 4, 5, 6, 6, 11, 9, *[0, 0] * 6],
         ["add 3", "subtract 4", "multiply 6", "greatest 9", *["add 0"] * 6], 0.8),
        # A wrong tool in the first line, and no way back.
        ("calculation", [4, 0, 3, *[0, 0] * 9], ["multiply 3", *["add 0"] * 9], 0.0),
        ("facts", [*range(12)],
         ["ada lome", "ada accra", "ada rome", "ada bamako", "bob calf", "bob pup", "bob lamb", "bob kid",
          "cyd cold", "cyd out", "cyd down", "cyd dry"], 1.0),
        ("facts", [0, 4, *[0] * 10], ["ada lome", "ada calf", *["ada rome"] * 10], 1 / 12),  # whom was asked counts
        ("search", [0, 5, -1, -1, -1, -1, -1], ["ada lome", "bob pup", "stop"], 1 - 0.06),
        ("search", [0, 5, -1, -1, -1, -1, -1], ["bob lome", "ada pup", "ada lome", "stop"], 1 / 2 - 0.09),
        ("search", [0, 5, 8, -1, -1, -1, -1], ["stop"], 0.0),
        ("search", [0, 5, -1, -1, -1, -1, -1], ["ada lome", "bob pup", *["cyd cold"] * 10], 1 - 0.36),
    ],
)  # fmt: skip
def test_the_verifier_tells_the_outcome_of_a_transcript(
    task: str, question: list[int], said: list[str], reward: float
) -> None:
    assert verify(task, question, said) == pytest.approx(reward)


def played(name: str, taught: bool = False, fixed: int = 0) -> tuple[Any, np.ndarray, Played]:
    """Networks of one lane, the questions of four groups of four traces, and the traces."""
    task = TASKS[name]
    networks = jax.tree.map(lambda x: x[None], fresh_networks(task, np.random.default_rng(0)))
    question, noise = _drawn(name, [3], 0, 4, 4)
    none = np.zeros((1, 16, task.rounds), np.int32)
    traces = _play(name)(networks, question, noise, (none, none), np.zeros((1, 16), np.int32), Mode(taught, fixed))
    return networks, question, jax.tree.map(np.asarray, traces)


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_a_team_s_outcome_is_the_verifier_s_and_right_words_are_worth_most(name: str) -> None:
    task = TASKS[name]
    for taught in (False, True):
        _, question, traces = played(name, taught)
        question, traces = question[0], jax.tree.map(lambda x: x[0], traces)
        for i in range(3):
            said = []
            for r in range(task.rounds):
                call = int(traces.call[i, r])
                if not traces.taken[i, 2 * r]:
                    break
                stop = call == len(task.workers)
                said.append("stop" if stop else f"{task.workers[call]} {task.answers[int(traces.answer[i, r])]}")
            assert verify(name, question[i], said) == pytest.approx(float(traces.reward[i]), abs=1e-6)
    best = 1 - 0.03 * (question >= 0).sum(axis=1) if task.stops else np.ones(len(question))
    np.testing.assert_allclose(traces.reward, best, rtol=1e-6)


@pytest.mark.slow
def test_a_fixed_number_of_rounds_is_not_chosen() -> None:
    _, _, traces = played("search", fixed=3)
    assert traces.taken[0].tolist() == [[True] * 6 + [False] * 18] * 16 and not np.any(traces.call == 3)


@pytest.mark.slow
def test_features_have_a_mean_of_zero_under_the_policy() -> None:
    """Over all words that could be written, by their probabilities; and decisions of a role have its features."""
    task = TASKS["search"]
    traces = jax.tree.map(lambda x: jnp.asarray(x[0]), played("search")[2])
    for role, (score, field) in enumerate(((traces.lead, "call"), (traces.worker, "answer"))):
        mean: dict[Any, Any] = {}
        for word in range(score.shape[2]):
            other = traces._replace(**{field: np.full_like(getattr(traces, field), word)})
            weight = np.exp(np.asarray(score))[..., word, None]
            found = {
                "tokens": token_features(task, other),
                "hidden": hidden_features(other, traces.hidden),
                "centred": (None, _centred(other, role), None),
            }
            for key, (_, values, _) in found.items():
                of_role = np.asarray(values) if key == "centred" else np.asarray(values)[:, role::2]
                mean[key] = mean.get(key, 0) + weight * of_role
                assert np.abs(of_role).max() > 0.5
        for total in mean.values():
            np.testing.assert_allclose(total, 0, atol=1e-4)
    columns, values, of_role = token_features(task, traces)
    used = np.asarray(values)[0] != 0
    for d in range(24):
        assert set(of_role[np.asarray(columns)[0, d][used[d]]]) == {d % 2}


@pytest.mark.slow
def test_increments_of_reruns_add_up_to_the_outcome_less_its_mean() -> None:
    networks, question, traces = played("facts")
    found = increments("facts", networks, question, traces, np.random.default_rng(0), 64)
    mean = traces.reward - found.sum(axis=2)
    assert found.shape == traces.taken.shape and np.all((mean > -1e-6) & (mean < 0.5))
    right = (traces.call == question // 4) & (traces.answer == question)
    assert found[:, :, 1::2][right].mean() > 0.04 and abs(found[:, :, 1::2][~right].mean()) < 0.02  # 1 / 12, and none
    exact = np.asarray(exact_increments(traces, played("facts", taught=True)[2]))
    assert np.corrcoef(found.ravel(), exact.ravel())[0, 1] > 0.7
    np.testing.assert_allclose(np.polyfit(exact.ravel(), found.ravel(), 1), [1, 0], atol=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("signal", ["control_critic", "posterior_reference"])
def test_a_signal_teaches_and_repeats_bit_for_bit(signal: str) -> None:
    one, two = (list(training("search", signal, [0, 1], [0.01, 0.01], 30, 9)) for _ in range(2))
    reward, again = (np.stack([x.played.reward for x in run]) for run in (one, two))
    assert reward.tobytes() == again.tobytes()
    assert np.all(reward[-8:].mean(axis=(0, 2)) > reward[:5].mean(axis=(0, 2)) + 0.15)
