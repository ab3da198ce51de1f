"""Exact bias of the leave-one-out mean under every kind of key, in worlds that stop or spawn; groups of two."""

from __future__ import annotations

from typing import Any

import pytest

import credit
from credit.bench.bias import measure, sizes
from credit.bench.bias_settings import SETTINGS, Setting, setting
from credit.methods.method_row import Seen
from credit.methods.published import PUBLISHED, find_method

RAW = {"singleton": "raw"}
# Options, and the bias in stop-rewards and in hire-additive, as docs/bias.md has it.
CASES: dict[str, tuple[dict[str, Any], float, float]] = {
    "agent": ({"by": "task,agent"} | RAW, 0, 0),
    "turn": ({"by": "task,turn"} | RAW, 0, 0),
    "step": ({"by": "task,step"} | RAW, 0, 0),
    "depth": ({"by": "task,depth"} | RAW, 0, 0),
    "agent and turn": ({"by": "task,agent,turn"} | RAW, 0, 0),
    "step, refused": ({"by": "task,step"}, 0.24, 0.14),
    "length": ({"by": "task,length"} | RAW, 0.24, 0.69),
    "length, refused": ({"by": "task,length"}, 0.95, 0.37),
    "rows": ({"by": "task,agent", "population": "row"} | RAW, 0.59, 0),
    "rows by step": ({"by": "task,step", "population": "row"} | RAW, 0.46, 0),
    "filtered": ({"by": "task", "filters": "equal"}, 0, 0),
}


@pytest.mark.sampled
@pytest.mark.slow
@pytest.mark.parametrize("world", ["stop-rewards", "hire-additive"])
@pytest.mark.parametrize("case", CASES)
def test_a_key_is_called_unbiased_only_where_it_is(case: str, world: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options, *figures = CASES[case]
    monkeypatch.setitem(SETTINGS, case, Setting(credit.METHODS["rloo"].fn, options=options))
    figure = figures[world == "hire-additive"]
    bias = measure(case, world, 2).bias
    assert bias == pytest.approx(figure, abs=0.005 if figure else 1e-12)
    called, _ = credit.METHODS["rloo"].unbiased_with(options)
    assert not called or bias < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, paper in PUBLISHED.items() if paper.method and paper.options])
def test_a_published_name_is_called_unbiased_only_where_it_is(name: str) -> None:
    """Turn-LOO has no bias where events have no rewards of their own, as in `hire-additive`."""
    bias = measure(name, "hire-additive", sizes(setting(name).way)[0]).bias
    called, _ = find_method(name).unbiased_with({}, Seen(repeated=False, alone=False, keyless=False, rewarded=False))
    assert (called is True) <= (bias < 1e-12) and (called is True) == (name == "turn_loo")


def test_a_key_of_the_trace_refuses_no_action_for_what_was_chosen() -> None:
    """`by=model` was called biased by the actions that it refuses; the model is chosen before the trace."""
    rloo = credit.METHODS["rloo"]
    assert rloo.unbiased_with({"by": "task,model"}) == rloo.unbiased_with({"by": "policy_version"}) == (True, "")
    assert rloo.unbiased_with({"by": "task,anchor"})[0] is False
