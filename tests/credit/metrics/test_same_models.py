"""What a model did is told from what else changed between traces with the same models alone, by agent."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from credit.metrics.trace_costs import with_costs
from credit.metrics.trace_metrics import trace_metrics
from credit.sides.chosen_sides import Sides
from credit.sides.compare_sides import compare_sides
from credit.sides.same_models import same_models
from credit.sides.side_comparison import SideComparison
from graphs.event_types import EventType
from graphs.traces.assembling import assemble
from graphs.traces.batch import Traces
from graphs.traces.record import CUT_SHORT, Agent, TraceRecord

UNTOLD = "changed with the side, so what it did to success cannot be told from the rest"


def read(runs: Sequence[tuple[str, Mapping[str, str], float | None]], cut: Sequence[int] = ()) -> Traces:
    """Traces of tasks, each with the model of each agent that acts, and its outcome."""
    records = []
    for i, (task, models, reward) in enumerate(runs):
        record = TraceRecord(f"t{i}", task, "log.jsonl", instances={agent: Agent() for agent in models or "-"})
        record.event("x", EventType.SAFETY_EVENT, next(iter(record.instances)), action=False)
        for agent, model in models.items():
            record.event(f"{agent}-{model}", EventType.MESSAGE, agent, action=True, model=model, tokens=9)
        record.rewards |= {} if reward is None else {"team": reward}
        record.metrics |= {CUT_SHORT: 1.0} if i in cut else {}
        records.append(record)
    return assemble(records)


def compared(traces: Traces, side: Sequence[int]) -> SideComparison:
    measured = with_costs(traces, trace_metrics(traces))
    return compare_sides(traces, Sides(("old", "new"), np.array(side), ("old", "new")), measured)


def runs_cut_off(swapped: bool) -> tuple[Traces, list[int]]:
    """20 tasks with 3 runs a side, of which one of the new side ends before the checker, and fails."""
    runs, side, cut = [], [], []
    for task, one, k in ((t, s, k) for t in range(20) for s in (0, 1) for k in range(3)):
        ends = one == 1 and k == 2
        cut += [len(runs)] * ends
        models = {"planner": "big" if one and swapped else "small", "searcher": "mid"}
        models |= {} if ends else {"checker": "small" if swapped else "tiny"}
        runs.append((f"q{task}", models, float(not ends and (task + k) % 5 > 0)))
        side.append(one)
    return read(runs, cut), side


def test_the_runs_that_reached_an_agent_are_no_comparison_of_its_model() -> None:
    """`success within each model (small 0.8 to 0.8, within chance)`: cut-off runs of the new side lack the checker."""
    traces, side = runs_cut_off(swapped=True)
    found = compared(traces, side)
    why = f"he model of planner (small to big) {UNTOLD}"
    assert f"t{why}" in found.but() and f"T{why}." in found.caveats() and "within each" not in " ".join(found.but())
    assert "beyond chance" in found.changed()


def test_an_agent_that_was_not_reached_is_no_other_model() -> None:
    """`the sides differ in model, too (tiny in 100 % against 67 % of traces)`, where no model had changed."""
    traces, side = runs_cut_off(swapped=False)
    assert not [one for one in compared(traces, side).apart if "model" in one]


def test_models_that_are_on_both_sides_are_compared_in_the_tasks_that_have_them() -> None:
    """`together -0.333` left out all of a team whose models had changed, and did not say so."""
    runs, side = [], []
    for task, one, k in ((t, s, k) for t in range(24) for s in (0, 1) for k in range(2)):
        swapped = {"planner": ("small", "big")[one], "writer": "mid"}
        coder = {"coder" if task < 18 else "fixer": "big" if task < 18 else "mid"}
        runs.append((f"q{task}", swapped if task < 12 else coder, float((task + k + one) % 3 > 0)))
        side.append(one)
    said = compared(read(runs), side).as_json()["but"]
    assert f"the model of planner (small to big) {UNTOLD}" in said
    within = re.search(r"among other traces, success within each model \((.*?)\)$", said)
    assert within is not None
    parts = within[1].split("; ")
    assert [re.match("(big|mid|together) .* in ([0-9]+) tasks, ", one).groups() for one in parts] == [  # type: ignore[union-attr]
        ("big", "6"), ("mid", "6"), ("together", "12")]  # fmt: skip


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))])
@pytest.mark.parametrize("reached", [True, False])
def test_within_a_model_there_is_what_the_version_did_or_no_number(seed: int, reached: bool) -> None:
    """The reviewer's model gains 0.5, the version loses 0.4, and the new side has the better model more often.

    Where failed runs end before the reviewer, those that reach it say nothing of the version.
    """
    rng, runs, side = np.random.default_rng(seed), [], []
    for task, one, _ in ((t, s, k) for t in range(60) for s in (0, 1) for k in range(8)):
        big = rng.random() < (0.2, 0.8)[one]
        won = rng.random() < 0.45 + 0.5 * big - 0.4 * one
        models = {"lead": "mid", "reviewer": "big" if big else "small"}
        runs.append((f"q{task}", models if won or reached or rng.random() < 0.7 else {"lead": "mid"}, float(won)))
        side.append(one)
    said = compared(read(runs), side).as_json()["but"]
    found = re.search(r"together ([-+.0-9]+) in (?:5[5-9]|60) tasks, beyond chance", said)
    if reached:
        assert found is not None and abs(float(found[1]) + 0.4) < 0.1 and "cannot be told" not in said
        assert re.search(r"reviewer: big 0\.9\d* to 0\.5\d* in \d+ tasks, beyond chance", said)
    else:
        assert found is None and "within each" not in said
        assert re.search(r"in \d+ traces reviewer does not act or states no model, so what its", said)


def test_a_set_of_models_is_known_where_one_alone_fits() -> None:
    whole, swapped = {"a": "m", "b": "n"}, {"a": "k", "b": "n"}
    runs = [whole, swapped, {"a": "m"}, {"b": "n"}, {}, {"c": "m"}, {"c": "n"}]
    found = same_models(read([("q", models, 1.0) for models in runs]))
    assert found.names == ("a: k", "a: m", "m", "n") and found.kind.tolist() == [1, 0, 1, -1, -1, 2, 3]
    assert found.team.tolist() == [0, 0, 0, 0, -1, 1, 1]
    assert found.swapped(np.array([0, 1, 0, 0, 0, 0, 1]), 0) == ["a"]
    assert found.unseen(np.array([3])) == ["a"]


def test_an_agent_in_whose_place_another_acts_has_no_unknown_model() -> None:
    """ "In 36 traces the model of coder-backend is not known": in as many coder-frontend acts in its place."""
    runs, side = [], []
    for task, one, k in ((t, s, k) for t in range(20) for s in (0, 1) for k in range(6)):
        coder = {"front": "small"} if k > 3 else {"back": ("small", "big")[k > 2 - 2 * one]}
        runs.append((f"q{task}", {"planner": "mid"} | coder | {"reviewer": "mid"}, float((task + k + one) % 3 > 0)))
        side.append(one)
    traces = read(runs)
    assert same_models(traces).names == ("back: big", "back: small", "front: small")
    said = compared(traces, side).as_json()["but"]
    assert "cannot be told" not in said and "does not act" not in said
    assert re.search(r"success within each model \(back: big .*back: small .*front: small .*\)", said)
    late = same_models(read([*runs, ("q0", {"planner": "mid"}, 0.0)]))
    assert late.kind[-1] == -1 and late.unseen(np.array([len(runs)])) == ["back", "front"]
