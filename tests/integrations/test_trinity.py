"""Trinity-RFT's own experiences, registry and step-wise GRPO, version 0.6.0."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

pytest.importorskip("trinity", reason="Trinity-RFT is not installed here; `make integrations` runs this")

from timing import compare
from trinity.algorithm.advantage_fn import ADVANTAGE_FN
from trinity.algorithm.advantage_fn.advantage_fn import AdvantageFn
from trinity.buffer.operators.experience_operator import ensure_v1_operator
from trinity.common.experience import EID, Experience

from credit.integrations import MissingColumnWarning
from graphs.errors import CreditError


def experience(task: int, run: int, step: int, reward: float | None, **info: Any) -> Any:
    eid = EID(batch=7, task=task, run=run, step=step)
    return Experience(eid=eid, tokens=[1, 2, 3, 4], prompt_length=1, action_mask=[1, 0, 1], reward=reward, info=info)


def runs_of(rewards: np.ndarray, each: int = 4) -> list[Any]:
    """Runs of one to three steps, `each` to a task; the steps before the last earned something else."""
    return [
        experience(run // each, run % each, step, float(reward) if step == run % 3 else 9.0)
        for run, reward in enumerate(rewards)
        for step in range(run % 3 + 1)
    ]


def made(credit: str, **options: Any) -> Any:
    """By the name in the configuration, as Trinity's pipeline makes it."""
    kind = ADVANTAGE_FN.get("credit.integrations.trinity.CreditAdvantage")
    assert not kind.compute_in_trainer()
    operator = kind(**{**kind.default_args(), "credit": credit, **options})
    assert ensure_v1_operator(operator).operator is operator
    return operator


def numbers(experiences: list[Any]) -> np.ndarray:
    """The number of each experience by its id, which is on the tokens of the policy and nowhere else."""
    by_id = sorted(experiences, key=lambda exp: (exp.eid.task, exp.eid.run, exp.eid.step))
    for exp in by_id:
        assert exp.advantages[1] == 0 and exp.advantages[0] == exp.advantages[2]
        assert exp.returns.equal(exp.advantages)
    return np.array([float(exp.advantages[0]) for exp in by_id])


def of_trinity() -> Any:
    return ADVANTAGE_FN.get("step_wise_grpo")(epsilon=1e-6)


def test_step_wise_grpo_is_reproduced_in_any_order() -> None:
    rewards = np.random.default_rng(0).normal(size=24)
    want = numbers(of_trinity()(runs_of(rewards))[0])
    shuffled = runs_of(rewards)
    np.random.default_rng(1).shuffle(shuffled)
    got, metrics = made("grpo", eps=1e-6)(shuffled)
    assert np.abs(numbers(got) - want).max() <= 2e-6 and np.abs(want).max() > 1
    assert metrics["credit/traces"] == 24 and metrics["credit/groups"] == 6


def test_each_agent_of_a_team_has_its_own() -> None:
    """Solvers earn 1 and 0, checkers .5 and 1; then the outcome is that of the last step."""
    rows = [(0, "solver", 1.0), (0, "checker", 0.5), (1, "solver", 0.0), (1, "checker", 1.0)]
    team = [experience(0, run, i % 2, reward, agent=agent) for i, (run, agent, reward) in enumerate(rows)]
    paid = made("rloo", by="task,agent", population="agent")
    assert numbers(paid(team)[0]).tolist() == [1, -0.5, -1, 0.5]
    assert numbers(made("rloo")(team)[0]).tolist() == [-0.5, -0.5, 0.5, 0.5]
    del team[2].info["agent"]
    with pytest.raises(CreditError, match="'agent' is in some rows only, and not in row 2: the workflow writes it"):
        paid(team)
    with pytest.warns(MissingColumnWarning, match="needs the column 'agent'.*into info of every Experience"):
        made("dr_mas")(runs_of(np.ones(4)))


def test_a_run_without_a_reward_enters_no_baseline() -> None:
    rows, metrics = made("rloo")([experience(0, run, 0, reward) for run, reward in enumerate((1.0, 0.0, None))])
    assert numbers(rows).tolist() == [1, -1, 0] and metrics["credit/unscored"] == pytest.approx(1 / 3)
    assert made("rloo")([])[0] == []


def test_what_would_make_other_numbers_is_refused() -> None:
    with pytest.raises(CreditError, match=r"2 experiences of run '7/0/0' are its step 0; expected another eid\.step"):
        made("rloo")([experience(0, 0, 0, 1.0), experience(0, 0, 0, 1.0)])
    with pytest.raises(CreditError, match="passes a dict, which names no runs; set algorithm_type"):
        made("rloo")({})


def test_a_renamed_hook_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(AdvantageFn, "compute_in_trainer")
    with pytest.raises(CreditError, match="AdvantageFn has no compute_in_trainer"):
        made("rloo")


def test_overhead_beside_trinitys_own() -> None:
    draw, ours = np.random.default_rng(4), made("grpo", rows=1024, eps=1e-6)
    compare(
        "Trinity-RFT",
        functools.cache(lambda rows: [experience(i // 8, i % 8, 0, float(draw.normal())) for i in range(rows)]),
        lambda data: ours(data)[0],
        lambda data: of_trinity()(data)[0],
        ours._credit,
        ran="its advantage functions from its source, on its experiences",
        numbers=lambda data, answer: numbers(answer),
    )
