"""GiGPO against the numbers that Dr. MAS' own functions gave."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from estimators.baselines.anchors import gigpo, step_returns

pytestmark = pytest.mark.optimised

KEYS = {"vanilla": {"by": None, "population": "trace"}, "drmas": {"by": "agent_name", "population": "row"}}


def rows(batch: Callable[..., tuple], given: dict) -> tuple:
    evidence = {"anchor": given["anchor"], "env_step": given["env_step"], "env_reward": given["env_step_reward"]}
    return batch(
        group=given["uid"],
        trace=given["traj"],
        agent=given["agent"],
        row_reward=given["row_reward"],
        evidence=evidence,
    )


def test_all_outputs_are_tried(oracle: Callable[[str], dict]) -> None:
    names = {f"{mode}|{key}" for mode in ("mean_norm", "mean_std_norm") for key in KEYS}
    assert set(oracle("drmas_gigpo")["outputs"]) == names | {"step_returns_gamma0.95"}


def test_step_returns(batch: Callable[..., tuple], oracle: Callable[[str], dict]) -> None:
    case = oracle("drmas_gigpo")
    graph, reward, _, evidence, row = rows(batch, case["inputs"])
    del evidence["anchor"]
    found, known = step_returns(graph, reward, discount=case["inputs"]["gamma"], **evidence)
    np.testing.assert_allclose(found[row], case["outputs"]["step_returns_gamma0.95"], rtol=0, atol=2e-6)
    assert np.asarray(known)[row].all()


@pytest.mark.parametrize("part", ["joint", "episode", "step"])
@pytest.mark.parametrize(("mode", "scale"), [("mean_norm", "none"), ("mean_std_norm", "std")])
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.sampled
def test_gigpo(
    batch: Callable[..., tuple], oracle: Callable[[str], dict], key: str, mode: str, scale: str, part: str
) -> None:
    case = oracle("drmas_gigpo")
    given = case["inputs"]
    graph, reward, event_reward, evidence, row = rows(batch, given)

    def advantage(weight: float) -> np.ndarray:
        result = gigpo(
            graph,
            reward,
            event_reward=event_reward,
            discount=given["gamma"],
            weight=weight,
            scale=scale,
            **KEYS[key],
            **evidence,
        )
        assert np.asarray(result.valid)[row].all()
        return np.asarray(result.advantage)[row]

    found = {"joint": lambda: advantage(given["w"]), "episode": lambda: advantage(0.0)}
    found["step"] = lambda: advantage(1.0) - advantage(0.0)
    np.testing.assert_allclose(found[part](), case["outputs"][f"{mode}|{key}"][part], rtol=0, atol=2e-6)
