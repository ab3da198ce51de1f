"""Rows over the table of methods: whether their order moves numbers, and that an offset of rewards moves no level."""

from __future__ import annotations

import contextlib
import inspect
import re
import warnings
from typing import Any

import numpy as np
import pytest

import credit
from credit.integrations import MissingColumnWarning, RowAdvantages

LENGTHS = (6, 3, 7, 4, 5, 7, 2, 6)
TRACE = np.repeat(np.arange(8), LENGTHS)


def drawn(seed: int, needs: tuple[str, ...]) -> dict[str, Any]:
    """Eight traces of two tasks and of uneven lengths, in which nothing is alike but what a method needs to compare."""
    draw, n = np.random.default_rng(seed), len(TRACE)
    place, group = np.concatenate([*map(np.arange, LENGTHS)]), TRACE // 4
    agent = np.where(place == 0, "p", draw.choice(["p", "w", "v"], n))
    met = [f"{task}/{kind}" for task, kind in zip(group, draw.integers(0, 3, n), strict=True)]
    # One row of a trace is a draw, which its neighbour continued from: other orders of several draws are refused.
    draws = {"context": group, "node": TRACE // 2, "alternative": TRACE // 2}
    known: dict[str, Any] = {
        "stage": place // 2, "segment": place // 2, "tokens": draw.integers(1, 9, n), "greedy_reward": TRACE,
        "block": TRACE // 2, "tree": TRACE // 2, "solo_reward": draw.normal(size=8)[TRACE], "anchor": met,
        "propensity": np.full(n, 0.5), "target_propensity": np.full(n, 0.5),
        "hindsight_log_prob": np.log(draw.uniform(0.1, 0.9, n)),
        **{name: np.where(place == 0, ids, None) for name, ids in draws.items()},
    }  # fmt: skip
    return {
        "group": group, "trace": TRACE, "agent": agent, "parent": np.where(agent == "p", None, "p"),
        "turn": [chr(97 + turn) for length in LENGTHS for turn in draw.permutation(length)],
        "reward": draw.normal(size=8)[TRACE],
        "evidence": {name: known.get(name, draw.uniform(0.1, 0.9, n)) for name in needs},
    }  # fmt: skip


def moves(method: RowAdvantages, seed: int, needs: tuple[str, ...], *, event_reward: bool) -> bool:
    """Whether an advantage changes with the order of the rows of a trace."""
    columns, draw = drawn(seed, needs), np.random.default_rng([seed, 1])
    columns |= {"event_reward": draw.normal(size=len(TRACE))} if event_reward else {}
    orders = [np.concatenate([draw.permutation(length) for length in LENGTHS]) for _ in range(2)]
    got = []
    for order in orders:
        method.state = None
        got.append(method(**columns, order=order))
    return not (
        np.allclose(got[0].advantages, got[1].advantages, atol=1e-5) and np.array_equal(got[0].valid, got[1].valid)
    )


ON_ROWS = [name for name in sorted(credit.METHODS) if not credit.METHODS[name].reads_types]


@pytest.mark.every_method
@pytest.mark.parametrize("event_reward", [False, True], ids=["outcomes", "rewards at events"])
@pytest.mark.parametrize("name", ON_ROWS)
def test_methods_state_whether_they_read_the_order_of_rows(name: str, event_reward: bool) -> None:
    entry = credit.METHODS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MissingColumnWarning)
        method = RowAdvantages(name, rows=len(TRACE))
        moved = any([moves(method, seed, entry.needs, event_reward=event_reward) for seed in range(3)])
    reads = entry.reads_order({}, ["event_reward"] if event_reward else [])
    one_draw = "node" in entry.needs and not event_reward  # each trace has one, and nothing is discounted
    assert moved == (reads and not one_draw)


@pytest.mark.parametrize(
    ("name", "options", "evidence"),
    [("discounted_return", {"discount": 0.5}, ()), ("spiral_rae", {"discount": 0.5}, ()),
     ("rloo", {"by": "task,turn"}, ()), ("grpo", {"by": "task,step"}, ()), ("grpo", {"by": "task,agent"}, ()),
     ("rloo", {"by": "task,anchor"}, ("anchor",)), ("rloo", {}, ("context", "node")), ("gigpo", {}, ("anchor",))],
)  # fmt: skip
@pytest.mark.sampled(others="slow")
def test_options_that_make_a_method_read_the_order_are_known(
    name: str, options: dict[str, Any], evidence: tuple[str, ...]
) -> None:
    """The warning about the order looked at columns: whatever evidence `rloo` was passed, it was named."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MissingColumnWarning)
        method = RowAdvantages(name, rows=len(TRACE), **options)
        moved = any([moves(method, seed, evidence, event_reward=False) for seed in range(3)])
    assert moved == credit.METHODS[name].reads_order(options, evidence)


def renamed(name: str, options: dict[str, Any], *, event_reward: bool) -> tuple[bool, bool]:
    """Whether other names of agents that act at once move an advantage, and whether a warning names the rounds."""
    columns, draw = drawn(2, credit.METHODS[name].needs), np.random.default_rng(1)
    place = np.concatenate([*map(np.arange, LENGTHS)])
    of_round = np.arange(0, len(TRACE), 2)
    pair = np.concatenate([draw.permutation(["p", "w", "v"])[:2] for _ in of_round])[: len(TRACE)]
    columns |= {"event_reward": draw.normal(size=len(TRACE))} if event_reward else {}
    got, said = [], False
    for names in ({}, {"w": "b", "v": "a"}):
        stated = columns | {"agent": [names.get(one, one) for one in pair], "order": place // 2, "parent": None}
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            got.append(RowAdvantages(name, rows=len(TRACE), **options)(**stated))
        said |= any("several agents act at once" in str(one.message) for one in found)
        assert not said or got[-1].metrics.get("credit/condition/ordered", 0) == 0
    return not np.allclose(got[0].advantages, got[1].advantages, atol=1e-5), said


@pytest.mark.every_method
@pytest.mark.parametrize("event_reward", [False, True], ids=["outcomes", "rewards at events"])
@pytest.mark.parametrize("name", [name for name in ON_ROWS if not {"node", "block"} & {*credit.METHODS[name].needs}])
def test_names_of_agents_at_once_move_no_number_without_a_word(name: str, event_reward: bool) -> None:
    """`discounted_return` with a discount gave ann half of what bob got in one round, and zed as much as bob.

    `marshal` and `spiral_rae` count along an agent's own rows, and warned at a discount.
    """
    entry = credit.METHODS[name]
    options = inspect.signature(getattr(entry.fn, "func", entry.fn)).parameters
    for stated in ({}, {"discount": 0.5, "lambda_": 1.0}):
        known = {option: value for option, value in stated.items() if option in options}
        moved, said = renamed(name, known, event_reward=event_reward)
        assert said == entry.reads_rounds(known, ["event_reward"] if event_reward else []), known
        assert said == moved, known


@pytest.mark.every_method
@pytest.mark.parametrize("name", ON_ROWS)
def test_a_group_of_almost_equal_rewards_moves_no_level(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One task whose reward model saturates turned the signs of `gae`, and of all tasks of `reinforce_batch`."""
    columns = drawn(0, credit.METHODS[name].needs)
    near = columns["group"] == 0
    columns["reward"] = np.where(near, 0.9 + 1e-9 * columns["reward"], columns["reward"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        method = RowAdvantages(name, rows=len(TRACE))
        got = method(**columns)
        method.state = None
        monkeypatch.setattr(RowAdvantages, "_without_offsets", lambda *_: None)
        plain = method(**columns).advantages
    assert method.compilations == 1
    np.testing.assert_allclose(got.advantages[~near], plain[~near], rtol=1e-5, atol=1e-6)
    if np.abs(plain[near]).max() > 1e-6:  # else single precision keeps nothing of the differences that it takes
        np.testing.assert_allclose(got.advantages[near], plain[near], rtol=1e-5)


@pytest.mark.parametrize(
    "method", ["rloo", "pass_at_k", *(pytest.param(n, marks=pytest.mark.slow) for n in ("grpo", "dr_grpo"))]
)
def test_an_offset_moves_no_advantage_without_a_word(method: str) -> None:
    """Advantages beside an offset of 1e5 were off by 2 %, `resolved` stood at 1: numbers and means were told apart."""
    loop, rng, cured = RowAdvantages(method, rows=16), np.random.default_rng(0), 0
    for _ in range(25):
        batch = {"group": np.arange(16) // 8, "trace": np.arange(16)}
        reward, offset = rng.normal(size=16) * 10 ** rng.uniform(-1, 1), 10 ** rng.uniform(4.5, 6.5)
        plain = loop(**batch, reward=reward).advantages
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            got = loop(**batch, reward=reward + offset)
        off = np.abs(got.advantages - plain).reshape(2, 8).max(1) / np.abs(plain).reshape(2, 8).max(1)
        assert got.metrics["credit/condition/resolved"] == 1 and off.max() < 1e-3
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            graph, outcome, rows = credit.from_columns(**batch, reward=reward + offset)
        off = np.abs(rows.gather(credit.METHODS[method](graph, outcome)) - plain).reshape(2, 8).max(1)
        wrong = off > 0.01 * np.abs(plain).reshape(2, 8).max(1)
        assert not wrong[~rows.names.rounded].any() or method == "pass_at_k"  # a lead is a small one of the differences
        assert bool(found) == rows.names.rounded.any()
        cured += len(found)
    assert 5 < cured < 25


@pytest.mark.parametrize("method", ["turn_baseline", "gae", "critic", "discounted_return"])
def test_rows_of_some_contexts_alone_have_an_order(method: str) -> None:
    """Methods that read the order refused a context of null, which is none, and so every batch of some replays."""
    rows: dict[str, Any] = {"group": ["q"] * 6, "trace": [0, 0, 1, 1, 2, 2], "agent": [*"ababab"], "turn": [0, 1] * 3}
    stated = {"value": [0.5] * 6} if method in ("gae", "critic") else {}
    reward = np.array([1.0, 1.0, 0.0, 0.0, 0.5, 0.5])
    plain = RowAdvantages(method)(**rows, reward=reward, evidence=stated)
    contexts = {"context": [None, "c", None, "d", None, "e"], "node": [None, "n1", None, "n2", None, "n3"]}
    some = RowAdvantages(method)(**rows, reward=reward, evidence=stated | contexts)
    assert some.advantages.tolist() == plain.advantages.tolist() and some.metrics["credit/condition/ordered"] == 1
    at_once = stated | {"context": [None, None, "c", "c", None, None]}  # a round of one trace
    read = method == "gae"  # to others a round is one place
    with pytest.warns(MissingColumnWarning, match="in 1 round several") if read else contextlib.nullcontext():
        doubted = RowAdvantages(method)(**rows, reward=reward, evidence=at_once)
    assert doubted.metrics.get("credit/condition/unbiased") != 1 or not stated


def traces(names: str, agents: str) -> str:
    return " ".join(f"{name}{agent}" for name in names for agent in agents)


@pytest.mark.parametrize(
    ("rows", "turn", "said"),
    [
        ("xa xa xb ya ya yb", [0, 1, 0, 0, 1, 0], "reads the order of agents, and rows stand by agent"),
        ("xa xb xa ya ya yb", [0, 0, 1, 0, 1, 0], ""),
        ("xa xa xb ya ya yb", [0, 1, 2, 0, 1, 2], ""),
        ("xa ya xb yb xa za yb zb ya", None, "reads the order of rows, and those of a trace are scattered"),
        ("xa ya xb yb xa za yb zb ya", [*"pppprpqpr"], "reads the order of rows, and those of a trace are scattered"),
        ("xa ya za xb yb zb xa ya", None, ""),
        (
            traces("xcdefghi", "aabb"),
            None,
            "reads the order of agents, and rows stand by agent",
        ),
        (traces("xcdefghi", "abab"), None, ""),
        (traces("xcdefgh", "aabb"), None, ""),
    ],
)
def test_rows_that_tell_no_order_are_warned_of(rows: str, turn: list[Any] | None, said: str) -> None:
    """A batch sorted by agent, or shuffled, was off in most rows, and no method warned."""
    trace, agent = zip(*map(tuple, rows.split()), strict=True)
    paid = np.arange(len(trace)) / 7.0
    batch = {"group": ["q"] * len(trace), "trace": trace, "agent": agent, "turn": turn, "event_reward": paid}
    batch["reward"] = [float(name == "x") for name in trace]
    for name in ("discounted_return", "gigpo", "rloo"):
        needs = {need: ["k"] * len(trace) for need in credit.METHODS[name].needs}
        for stated in ({}, {"order": np.arange(len(trace))}):
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                metrics = RowAdvantages(name)(**batch, **stated, evidence=needs).metrics
            expected = bool(said) and name != "rloo" and not stated
            assert [str(one.message) for one in found if "reads the order" in str(one.message)] == [
                str(one.message) for one in found if expected and f"method {name!r} {said}" in str(one.message)
            ]
            assert any(said and said in str(one.message) for one in found) == expected
            assert not expected or "credit/condition/unbiased" not in metrics or name == "gigpo"


@pytest.mark.parametrize("stated", [False, True])
def test_columns_with_scattered_turns_without_numbers_are_warned_of(stated: bool) -> None:
    """Labels such as plan, try-1 and final tell no order, and shuffled rows had wrong advantages without a word."""
    trace, turn = [0, 1, 0, 1, 2, 0, 2, 1], ["plan", "plan", "try-1", "try-1", "plan", "final", "try-1", "final"]
    order = np.arange(8) if stated else None
    said = r"methods may read the order of rows, and those of a trace are scattered over the batch: pass order="
    with contextlib.nullcontext() if stated else pytest.warns(UserWarning, match=said):
        credit.from_columns(group=["q"] * 8, trace=trace, turn=turn, reward=[float(t) for t in trace], order=order)
    _, _, rows = credit.from_columns(group=["q"] * 8, trace=trace, reward=[float(t) for t in trace], order=order)
    credit.run(rows, "rloo")
    said = "discounted_return reads the order of rows, and those of a trace are scattered"
    with contextlib.nullcontext() if stated else pytest.warns(MissingColumnWarning, match=said):
        credit.run(rows, "discounted_return", discount=0.5)


@pytest.mark.parametrize("call", [RowAdvantages("discounted_return"), credit.from_columns])
def test_times_that_single_precision_makes_one_are_refused(call: Any) -> None:
    """Two agents' rewards of two minutes counted for both, as of one round, where a tensor held the times."""
    rows = {"group": ["q"] * 4, "trace": [0, 0, 1, 1], "agent": list("baba"), "reward": [1.0, 1.0, 0.0, 0.0]}
    rows["event_reward"] = [0.5, 0.0, 0.25, 0.0]
    times = 1.7e9 + np.arange(4.0)
    with pytest.raises(credit.CreditError, match=r"'order': is of single precision, 1700000000, .* multiples of 128;"):
        call(**rows, order=times.astype(np.float32))
    for order in (times, times.astype(int), times.astype("datetime64[s]"), np.arange(4, dtype=np.float32)):
        call(**rows, order=order)


@pytest.mark.parametrize(("method", "options"), [("discounted_return", {}), ("gae", {"lambda_": 1.0}), ("rloo", {})])
@pytest.mark.parametrize("told", ["", "instance", "context", "order"])
def test_rows_of_one_name_at_one_place_are_doubted(method: str, options: dict[str, Any], told: str) -> None:
    """Two workers of one name got rewards in the order in which they ended, a bias of 7e-2, and "unbiased" was 1."""
    rows: dict[str, Any] = {"group": ["q"] * 8, "trace": [0] * 4 + [1] * 4}
    rows |= {"agent": ["lead", "worker", "worker", "end"] * 2}
    rows |= {"order": [0, 1, 1 + (told == "order"), 3] * 2, "event_reward": [0.0, 0.5, -0.25, 0.0] * 2}
    rows |= {"instance": [0, 0, 1, 0] * 2} if told == "instance" else {}
    stated: dict[str, Any] = {"value": [0.5] * 8} if method == "gae" else {}
    stated |= {"context": [None, "c", "c", None, None, "d", "d", None]} if told == "context" else {}
    reward = np.array([1.0] * 4 + [0.0] * 4)
    said = r"reads the order of rows, and 4 rows of agent 'worker' stand at one order=: .* need instance=, and"
    doubted = not told and method != "rloo"
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        rows_advantage = RowAdvantages(method, **options)
        metrics = rows_advantage(**rows, reward=reward, evidence=stated).metrics
        rows_advantage(**rows, reward=reward, evidence=stated)
    assert sum(bool(re.search(said, str(one.message))) for one in found) == doubted
    assert "credit/condition/unbiased" not in metrics or not doubted
    built = credit.from_columns(**rows, reward=reward, evidence=stated)[2]
    with pytest.warns(MissingColumnWarning, match=said) if doubted else contextlib.nullcontext():
        credit.run(built, method, **options)
