"""Rows that fill up a batch without `where=`: a metric moves, and a warning says so where they are plain."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import credit
from credit.integrations import RowAdvantages
from credit.tables.columns import built_from_columns
from credit.tables.copied_rows import copied_rows

TEAM: dict[str, Any] = {
    "group": ["q"] * 5, "trace": [*"aaabb"], "agent": [*"svssv"], "turn": [0, 0, 1, 0, 0],
    "reward": [1.0, 1.0, 1.0, 0.0, 0.0],
}  # fmt: skip
PAD = {"group": ["pad"] * 4, "trace": ["pad"] * 4, "agent": ["s"] * 4, "turn": [0] * 4, "reward": [0.0] * 4}
EQUAL = "equal earlier ones|equals an earlier one"
SAID = "the batch ends in {} rows that equal earlier ones in every column: if they only fill it up, {}"


def joined(*parts: dict[str, Any]) -> dict[str, Any]:
    return {name: [cell for part in parts for cell in part[name]] for name in parts[0]}


def sampled(traces: int = 12, calls: int = 4, tokens: int = 8) -> dict[str, Any]:
    """Tasks of four traces, whose calls have sampled tokens with their log-probabilities."""
    draw, n = np.random.default_rng(3), traces * calls
    trace = np.repeat(np.arange(traces), calls)
    return {
        "group": (trace // 4).tolist(),
        "trace": trace.tolist(),
        "agent": np.where(np.arange(n) % 2, "a", "b").tolist(),
        "reward": np.repeat(draw.choice([0.0, 1.0], traces), calls).tolist(),
        "token_ids": draw.integers(0, 30_000, (n, tokens)).tolist(),
        "token_log_probs": (-draw.exponential(1, (n, tokens))).tolist(),
    }


def of_tokens(columns: dict[str, Any], arrays: bool = False) -> dict[str, Any]:
    """Arguments of `from_columns`; of padded arrays with their mask, or lists a row."""
    plain, evidence = dict(columns), {}
    for name in ("token_ids", "token_log_probs"):
        evidence[name] = plain.pop(name)
    if arrays:
        rows = np.arange(len(plain["trace"]))
        evidence = {name: np.pad(np.array(lists), ((0, 0), (0, 2))) for name, lists in evidence.items()}
        evidence["token_mask"] = np.arange(10)[None] < 8 + 0 * rows[:, None]
    return plain | {"evidence": evidence}


@pytest.mark.parametrize("arrays", [False, True])
def test_sampled_tokens_name_copies_that_stand_alone(arrays: bool) -> None:
    """Logs named them, and columns of the same rows did not."""
    once = sampled()
    of_one = {
        name: [cell for cell, t in zip(cells, once["trace"], strict=True) if t == 5] for name, cells in once.items()
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph, reward, rows = credit.from_columns(**of_tokens(once, arrays))
        plain = credit.from_columns(**{name: once[name] for name in ("group", "trace", "agent", "reward")})
        assert credit.rloo(graph, reward).credit.tolist() == credit.rloo(*plain[:2]).credit.tolist()
        assert rows.evidence.keys() == plain[2].evidence.keys()  # tokens are no evidence of a method
        other = of_one | {"trace": ["other"] * 4, "token_log_probs": sampled()["token_log_probs"][:4]}
        credit.from_columns(**of_tokens(joined({**once, "trace": [*map(str, once["trace"])]}, other), arrays))
    again = joined({**once, "trace": [*map(str, once["trace"])]}, of_one | {"trace": ["again"] * 4})
    with pytest.warns(UserWarning, match=r"^the batch has 4 rows of 1 trace that equal .* \(row 48 is row 20 again\)"):
        credit.from_columns(**of_tokens(again, arrays))
    with pytest.warns(
        UserWarning, match=r"^the batch has 2 rows that equal .* \(row 48 is row 20 again\), and count tw"
    ):
        credit.from_columns(**of_tokens(joined(once, first(of_one, 2)), arrays))


@pytest.mark.filterwarnings("ignore:methods may read rows in the order")
def test_rows_of_other_tokens_are_no_copies() -> None:
    """Rows at the end, of one trace and of whole groups were called copies, while their sampled tokens differed."""
    draw, once = np.random.default_rng(5), sampled(traces=16)
    team = {name: [*cells] for name, cells in TEAM.items()}
    measured = {name: [*cells] for name, cells in once.items() if not name.startswith("token")}
    measured["reward"] = np.repeat(draw.normal(size=16), 4).tolist()
    for plain, again in (
        (team, first(team, 4)),  # at the end
        (measured, measured | {"trace": [f"again {trace}" for trace in measured["trace"]]}),  # all, under other ids
    ):
        both = joined({**plain, "trace": [*map(str, plain["trace"])]}, again)
        ids = draw.integers(0, 30_000, (len(both["trace"]), 8)).tolist()
        n = len(plain["trace"])
        same = ids[:n] + ids[: len(ids) - n]
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message=".*equal earlier")
            rows = credit.from_columns(**both, evidence={"token_ids": ids})[2]
            assert copied_rows(rows).rows == 0
        with pytest.warns(UserWarning, match=EQUAL):
            credit.from_columns(**both, evidence={"token_ids": same})


def test_tokens_that_do_not_fit_are_refused() -> None:
    columns = {"group": ["q", "q"], "trace": ["a", "b"], "reward": [1.0, 0.0]}
    for evidence, words in (
        ({"token_ids": [["b"], ["a"]]}, "expected a list of numbers for each row, or None"),
        ({"token_ids": [[1, 2]]}, "has 1 row; column 'trace' has 2"),
        (
            {"token_ids": [[1, 2], [3]], "token_log_probs": [[-1.0, -2.0], [-1.0, -1.0]]},
            r"lists of one length, .*rows 1",
        ),
    ):
        with pytest.raises(credit.tables.columns.ColumnError, match=words):
            credit.from_columns(**columns, evidence=evidence)


@pytest.mark.parametrize("task", [0, 3])
@pytest.mark.parametrize("method", ["rloo", "gae"])
def test_a_group_under_other_ids_is_named_whatever_order_the_rows_have(method: str, task: int) -> None:
    """`order=` put each copy beside its trace: `from_columns` warned, and `RowAdvantages` called the batch unbiased."""
    draw = np.random.default_rng(7)
    trace = np.repeat(np.arange(24), 5)
    once: dict[str, Any] = {
        "group": (trace // 4).tolist(),
        "trace": [f"t{t}" for t in trace],
        "agent": ["boss", "w1", "w2", "judge", "boss"] * 24,
        "reward": (trace % 3 == 0).astype(float).tolist(),
        "event_reward": draw.normal(size=120).tolist(),
        "order": (100.0 * trace + draw.uniform(0, 1, (24, 5)).cumsum(1).ravel()).tolist(),
    }
    value = {"value": draw.normal(size=120).tolist()} if method == "gae" else {}
    of_task = [row for row in range(120) if trace[row] // 4 == task]
    again = {name: [cells[row] for row in of_task] for name, cells in once.items()}
    both = joined(once, again | {"trace": [f"again {name}" for name in again["trace"]]})
    values = {name: np.array(cells + [cells[row] for row in of_task]) for name, cells in value.items()}
    columns = {
        name: np.array(both[name]) if name in ("reward", "event_reward", "order") else both[name] for name in both
    }
    where = rf"20 rows of 4 traces that equal earlier ones .* \(row 120 is row {of_task[0]} again\)"
    options = {"lambda_": 1} if method == "gae" else {}
    with pytest.warns(UserWarning, match=where):
        credit.from_columns(**columns, evidence=values)
    with pytest.warns(UserWarning, match=where):
        result = RowAdvantages(method, rows=256, **options)(**columns, evidence=values)
    assert result.metrics["credit/copied"] == 20 / 140 and "credit/condition/unbiased" not in result.metrics
    with pytest.raises(credit.CreditError, match=where):
        RowAdvantages(method, rows=256, strict=True, **options)(**columns, evidence=values)
    plain = {name: cells[:120] for name, cells in columns.items()}
    honest = RowAdvantages(method, rows=256, strict=True, **options)(
        **plain, evidence={name: cells[:120] for name, cells in values.items()}
    )
    assert honest.metrics["credit/copied"] == 0.0


def first(columns: dict[str, Any], count: int) -> dict[str, Any]:
    return {name: cells[:count] for name, cells in columns.items()}


@pytest.mark.parametrize(
    ("fill", "copied"),
    [(PAD, 3), (first(TEAM, 2), 2), (first(TEAM, 4), 4), ({name: [cells[-1]] * 3 for name, cells in TEAM.items()}, 3)],
    ids=["a row of its own", "the first two", "the first four", "the last one"],
)
@pytest.mark.sampled(others="slow")
@pytest.mark.filterwarnings("ignore:methods may read rows in the order")  # a copy of a first turn stands behind a last
def test_rows_that_fill_up_a_batch_are_counted_and_named(fill: dict[str, Any], copied: int) -> None:
    """They moved no metric, and `dr_mas` took each for a call."""
    batch = joined(TEAM, fill)
    advantages = RowAdvantages("dr_mas")
    assert advantages(**TEAM).metrics["credit/copied"] == 0
    with pytest.warns(UserWarning, match=SAID.format(copied, "pass where=")) as seen:
        assert advantages(**batch).metrics["credit/copied"] == copied / len(batch["trace"])
        advantages(**batch)
    assert len(seen) == 1  # once, in whichever batch it comes first
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        real = np.arange(len(batch["trace"])) < 5
        assert RowAdvantages("dr_mas")(**batch, where=real).metrics["credit/copied"] == 0
        told = {"order": np.arange(len(real)), "policy_version": np.arange(len(real))}
        warnings.filterwarnings("ignore", "method 'dr_mas' gets rows of several 'policy_version'")  # as if used again
        for name, column in told.items():
            assert RowAdvantages("dr_mas")(**batch, **{name: column}).metrics["credit/copied"] == 0
        lengths = np.arange(16) <= np.arange(len(real))[:, None]
        assert RowAdvantages("dr_mas")(**batch, mask=lengths).metrics["credit/copied"] == 0
    with pytest.warns(UserWarning, match=SAID.format(copied, "leave them out")):
        credit.from_columns(**batch)


@pytest.mark.parametrize(
    ("trace", "turn", "copied"),
    [("abcddd", None, 2), ("abcdab", None, 2), ("aaabbc", None, 3), ("aabbcc", [0] * 6, 3),
     ("aaaabb", [0, 0, 1, 1, 0, 0], 3), ("aaabbb", [0, 0, 1, 0, 1, 1], 2),
     ("aaabbb", [0, 1, 2, 0, 1, 1], 1)],
)  # fmt: skip
def test_equal_rows_of_which_nobody_knows_are_counted_and_not_named(trace: str, turn: Any, copied: int) -> None:
    """Calls of one turn are equal where no column tells them apart, and several turns may have several."""
    columns: dict[str, Any] = {"group": ["q"] * 6, "trace": [*trace], "reward": [float(name == "a") for name in trace]}
    columns |= {} if turn is None else {"turn": turn}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert copied_rows(credit.from_columns(**columns)[2]) == (copied, "", "", "", False)


def test_evidence_of_traces_tells_no_rows_apart() -> None:
    batch, greedy = joined(TEAM, first(TEAM, 2)), [0.5, 0.5, 0.5, 0.25, 0.25, 0.5, 0.5]
    with pytest.warns(UserWarning, match=SAID.format(2, "pass where=")):
        metrics = RowAdvantages("remax")(**batch, evidence={"greedy_reward": greedy}).metrics
    assert metrics["credit/copied"] == 2 / 7


def test_rows_of_several_types_are_several() -> None:
    """A turn may have a message, a call of a tool and its result."""
    types = ["message", "message", "message", "tool_call", "tool_result"]
    columns: dict[str, Any] = {
        "group": ["q"] * 5,
        "trace": [*"aabbb"],
        "turn": [0, 1, 0, 0, 0],
        "reward": [1, 1, 0, 0, 0],
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        credit.from_columns(**columns, event_type=types)
    with pytest.warns(UserWarning, match=SAID.format(2, "leave them out")):
        credit.from_columns(**columns)


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("seeds", [range(0, 300, 3), range(300)])
def test_no_batch_of_calls_is_taken_for_one_that_is_filled_up(seeds: range) -> None:
    """Drawn: traces of 1 to 9 calls, turns of one call or, for some of them, up to four equal ones."""
    named = 0
    for seed in seeds:
        draw = np.random.default_rng([61, seed])
        calls = [(t, turn) for t in range(32) for turn in range(draw.integers(1, 10))]
        rows = [call for call in calls for _ in range(1 + (draw.random() < seed / 1000) * draw.integers(1, 4))]
        trace, turn = np.array(rows).T
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            credit.from_columns(group=trace // 8, trace=trace, turn=turn, reward=(trace % 3 > 0) * 1.0)
        named += len(seen)
    assert named <= 0.01 * len(seeds)


def measured(seed: int) -> dict[str, Any]:
    """Eight traces of a planner and two workers, with a reward of three kinds at each step of a worker."""
    draw = np.random.default_rng([62, seed])
    columns: dict[str, list[Any]] = {}
    for trace in range(8):
        for step in range(draw.integers(2, 5)):
            for agent in ("planner", "one", "two"):
                row = {"group": trace // 4, "trace": trace, "agent": agent, "turn": f"{agent}/{step}"}
                row |= {"order": 3 * step + (agent != "planner"), "reward": float(trace % 3 > 0)}
                row |= {"event_reward": draw.choice([-0.1, 0.0, 0.25]) * (agent != "planner")}
                for name, cell in row.items():
                    columns.setdefault(name, []).append(cell)
    return columns


@pytest.mark.parametrize("how", ["side by side", "appended"])
def test_rows_that_stand_twice_are_no_unbiased_batch_and_an_error_where_faults_are(how: str) -> None:
    """`unbiased` was 1, `paid_once` 1 and `strict=True` silent, though each step was paid twice."""
    once = measured(0)
    rows = len(once["trace"])
    take = np.repeat(np.arange(rows), 2) if how == "side by side" else np.arange(2 * rows) % rows
    twice = {name: np.array(cells)[take].tolist() for name, cells in once.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        whole = RowAdvantages("rloo", strict=True)(**once)
        assert whole.metrics["credit/condition/unbiased"] == 1 and whole.metrics["credit/copied"] == 0
        credit.from_columns(**once)
    _, first, where = np.unique(take, return_index=True, return_inverse=True)
    copy = int(np.flatnonzero(first[where] < np.arange(len(take)))[0])
    original = first[where][copy]
    said = f"{len(take) - rows} rows that equal earlier ones in every column (row {copy} is row {original} again)"
    advantages = RowAdvantages("rloo")
    with pytest.warns(UserWarning, match=re.escape(f"method 'rloo' gets {said}")) as seen:
        metrics = advantages(**twice).metrics
        advantages(**twice)
    assert len(seen) == 1
    assert metrics["credit/copied"] == 1 - rows / len(take) and "credit/condition/unbiased" not in metrics
    with pytest.raises(credit.CreditError, match=re.escape(said)):
        RowAdvantages("rloo", strict=True)(**twice)
    with pytest.warns(UserWarning, match=re.escape(f"the batch has {said}")):
        credit.from_columns(**twice)
    kept = np.isin(np.arange(len(take)), first)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert RowAdvantages("rloo", strict=True)(**twice, where=kept).metrics["credit/condition/unbiased"] == 1


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("seeds", [range(60), range(60, 200)])
def test_no_drawn_batch_of_equal_calls_is_taken_for_copies(seeds: range) -> None:
    """Few rows, few kinds of rewards, calls that are made again: what agents do by themselves."""
    for seed in seeds:
        draw = np.random.default_rng([65, seed])
        n = int(draw.integers(2, 60))
        trace = np.sort(draw.integers(0, draw.integers(1, 12), n))
        columns: dict[str, Any] = {
            "group": trace // 4, "trace": trace, "agent": draw.choice([*"ab"], n), "reward": (trace % 2) * 1.0,
            "event_reward": draw.integers(0, draw.integers(1, 4), n) * 0.5, "tokens": draw.integers(0, 9, n),
        }  # fmt: skip
        assert not copied_rows(built_from_columns(columns)[2]).twice
        again = np.repeat(np.arange(n), draw.integers(1, 3, n))  # some calls twice, and not whole stretches
        columns = {name: np.asarray(cells)[again] for name, cells in columns.items()}
        if len(again) < 1.7 * n:
            assert not copied_rows(built_from_columns(columns)[2]).twice


def test_rows_of_short_traces_are_counted_where_turns_and_tokens_tell_that_they_are_copies() -> None:
    """Half of a batch stood twice, in traces of two rows, without a word."""
    draw = np.random.default_rng(68)
    trace, turn = np.repeat(np.arange(64), 2), np.tile([0, 1], 64)
    columns: dict[str, Any] = {
        "group": trace // 8, "trace": trace, "turn": turn, "reward": (trace % 3 > 0) * 1.0,
        "tokens": draw.integers(10, 400, 128),
    }  # fmt: skip
    assert not copied_rows(built_from_columns(columns)[2]).twice
    take = draw.permutation(np.concatenate([np.arange(128), np.flatnonzero(trace % 2)]))
    twice = {name: cells[take] for name, cells in columns.items()}
    assert copied_rows(built_from_columns(twice)[2]).twice.startswith("64 rows that equal earlier ones")
    steps = {name: np.tile(columns[name][::2], 2) for name in ("group", "trace", "reward")}  # each trace's second call
    assert not copied_rows(built_from_columns(steps)[2]).twice


@pytest.mark.parametrize("how", ["shuffled", "appended"])
def test_a_batch_that_stands_twice_is_told_by_its_turns_where_each_step_costs_the_same(how: str) -> None:
    """`unbiased` and `paid_once` were 1 and `strict=True` silent: a penalty of each step is no measured number."""
    once: dict[str, Any] = {name: np.array(cells) for name, cells in measured(1).items()}
    rows = len(once["trace"])
    once["event_reward"] = np.full(rows, -0.1)
    take = np.tile(np.arange(rows), 2)
    take = np.random.default_rng(66).permutation(take) if how == "shuffled" else take
    twice = {name: cells[take] for name, cells in once.items()}
    said = f"{rows} rows that equal earlier ones in every column"
    with pytest.warns(UserWarning, match=said):
        metrics = RowAdvantages("rloo")(**twice).metrics
    assert metrics["credit/copied"] == 0.5 and "credit/condition/unbiased" not in metrics
    with pytest.raises(credit.CreditError, match=said):
        RowAdvantages("rloo", strict=True)(**twice)
    mixed = np.random.default_rng(67).permutation(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        whole = RowAdvantages("rloo", strict=True)(**{name: cells[mixed] for name, cells in once.items()})
    assert whole.metrics["credit/condition/unbiased"] == 1


@pytest.mark.parametrize("turned", [False, True], ids=["no turns", "turns"])
@pytest.mark.parametrize("again", ["batch", "group", "row"])
def test_a_batch_or_a_group_that_may_stand_twice_is_not_called_unbiased(again: str, turned: bool) -> None:
    """Of four columns, 0.79 of the rows were `copied`, and `unbiased` 1."""
    trace, call = np.repeat(np.arange(16), 5), np.tile([0, 1, 2, 3, 3], 16)
    columns = {"group": trace // 8, "trace": trace, "agent": call, "reward": trace % 3 / 2.0}
    columns |= {"turn": call} if turned else {}
    rows = np.arange(80)
    taken = {"batch": np.tile(rows, 2), "group": np.concatenate([rows, rows[:40]]), "row": np.append(rows, 0)}[again]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        once = RowAdvantages("rloo", strict=True)(**columns).metrics
    assert once["credit/condition/unbiased"] == 1
    columns = {name: column[taken] for name, column in columns.items()}
    named_where_not_unbiased(columns, again != "row")
    named_where_not_unbiased(columns | {"order": np.arange(len(taken))}, False)  # as the warning says


def named_where_not_unbiased(columns: dict[str, Any], copied: bool, method: str = "rloo", **more: Any) -> None:
    """A batch has a warning for copies, an error with `strict`, and no `unbiased`; or none of these.

    Sixteen copies at places of order= had a warning here alone: `credit.from_columns` has the same.
    """

    def said(call: Callable[..., Any], **given: Any) -> tuple[Any, list[str]]:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            result = call(**given)
        found = [re.search(rf"\d+ rows?.*(?:{EQUAL}).*(?=: leave|: if)", str(one.message)) for one in seen]
        return result, [match[0] for match in found if match]

    result, named = said(RowAdvantages(method), **columns, **more)
    assert len(named) == copied and not (copied and result.metrics.get("credit/condition/unbiased"))
    if not more and "log_ratio" not in columns:
        assert said(credit.from_columns, **columns)[1] == named
    with pytest.raises(credit.CreditError, match=EQUAL) if copied else contextlib.nullcontext():
        RowAdvantages(method, strict=True)(**columns, **more)


def teams(seed: int, **told: bool) -> dict[str, Any]:
    """Twelve groups of four traces of a planner and a worker, outcomes 0 and 1: columns of a trainer."""
    draw = np.random.default_rng([73, seed])
    calls = [
        (trace, agent, step, 2 * step + (agent == "worker"))
        for trace in range(48)
        for step in range(draw.integers(2, 4))
        for agent in ("planner", "worker")
    ]
    trace, agent, turn, order = (np.array(cells) for cells in zip(*calls, strict=True))
    columns = {"group": trace // 4, "trace": trace, "agent": agent, "reward": draw.integers(0, 2, 48)[trace] * 1.0}
    columns |= {"turn": turn} if told.get("turn") else {}
    return columns | ({"order": order} if told.get("order") else {})


@pytest.mark.slow
@pytest.mark.parametrize("method", ["dr_mas", "rloo"])
@pytest.mark.parametrize("told", [("turn", "order"), ("turn",), ("order",)], ids="-".join)
@pytest.mark.parametrize("groups", [1, 3, 6, 11])
def test_groups_that_stand_before_the_whole_batch_are_named(groups: int, told: tuple[str, ...], method: str) -> None:
    """`strict=True` was silent, and `dr_mas` off by 0.07: a metric moved alone."""
    columns = teams(groups, **dict.fromkeys(told, True))
    rows = np.arange(len(columns["trace"]))
    named_where_not_unbiased(columns, False, method)
    for take in (np.append(rows[columns["group"] < groups], rows), np.append(rows, rows[columns["group"] < groups])):
        named_where_not_unbiased({name: column[take] for name, column in columns.items()}, True, method)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("told", [("turn", "order"), ("turn",)], ids="-".join)
def test_one_rollout_that_stands_twice_is_named(told: tuple[str, ...], masked: bool) -> None:
    """`unbiased` was 1, whatever stood behind it: a trace has too few rows for its numbers to be proof."""
    columns = teams(0, **dict.fromkeys(told, True))
    rows = np.arange(len(columns["trace"]))
    take = np.concatenate([rows[columns["trace"] <= 5], rows[columns["trace"] == 5], rows[columns["trace"] > 5]])
    lengths = np.random.default_rng(74).integers(1, 30, len(rows))
    mask = {"mask": (np.arange(30) < lengths[:, None])[take]} if masked else {}
    named_where_not_unbiased({name: column[take] for name, column in columns.items()}, True, **mask)


def test_a_continuous_log_ratio_proves_copies_and_tells_calls_apart() -> None:
    """Two stretches of the rows stood twice without a word, though no other call has the same ratio."""
    columns = teams(3)
    rows = np.arange(len(columns["trace"]))
    columns["log_ratio"] = np.random.default_rng(75).normal(0, 0.1, len(rows))
    named_where_not_unbiased(columns, False)
    take = np.append(rows[:40], rows)
    named_where_not_unbiased({name: column[take] for name, column in columns.items()}, True)
    again = {name: column[take] for name, column in columns.items()}
    again["log_ratio"][:40] += 0.01
    named_where_not_unbiased(again, False)
    never = columns | {"log_ratio": np.full((len(rows), 2), -np.inf)}
    with warnings.catch_warnings(action="error"):
        RowAdvantages("rloo")(**never, mask=np.arange(2) <= rows[:, None])
    with pytest.raises(credit.CreditError, match=r"log_ratio.*has shape"):
        RowAdvantages("rloo")(**{**columns, "log_ratio": np.zeros(3)})


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("seeds", [range(30), range(30, 300)])
def test_no_honest_batch_is_refused_for_copies(seeds: range) -> None:
    """Drawn: outcomes 0 and 1, steps of one or two equal calls, as where a policy says the same again."""
    for seed in seeds:
        draw = np.random.default_rng([76, seed])
        columns = teams(seed, turn=seed % 3 > 0, order=seed % 3 > 1)
        rows = np.arange(len(columns["trace"]))
        if seed % 3 < 2:  # without a place, a second call looks the same
            rows = np.repeat(rows, 1 + (draw.random(len(rows)) < draw.choice([0.0, 0.1, 0.5])))
        rows = draw.permutation(rows) if seed % 3 > 1 else rows
        found = copied_rows(built_from_columns({name: column[rows] for name, column in columns.items()})[2])
        assert not found.twice and not found.untold


def steps(seed: int) -> dict[str, Any]:
    """Eight traces of one call each, whose outcomes a reward model gave."""
    scores = np.random.default_rng([70, seed]).normal(size=8)
    return {"group": ["q"] * 8, "trace": [f"t{at}" for at in range(8)], "reward": scores.tolist()}


def under_new_ids(columns: dict[str, Any], **other: Any) -> dict[str, Any]:
    return joined(columns, {**columns, "trace": [f"x{name}" for name in columns["trace"]], **other})


@pytest.mark.parametrize("beside", [False, True], ids=["the batch", "a group of it"])
@pytest.mark.parametrize("seed", range(3))
def test_a_step_that_stands_twice_under_new_ids_is_named_and_not_called_unbiased(seed: int, beside: bool) -> None:
    """`unbiased` was 1, `copied` 0 and `strict=True` silent: only copies under the same id were seen."""
    once = steps(seed)
    twice = under_new_ids(once)
    if beside:
        other = {**steps(seed + 10), "group": ["p"] * 8, "trace": [f"p{at}" for at in range(8)]}
        once, twice = joined(other, once), joined(other, twice)
    said = "8 rows of 8 traces that equal earlier ones in every number, under another id"
    with pytest.raises(credit.CreditError, match=said):
        RowAdvantages("rloo", strict=True)(**twice)
    with pytest.warns(UserWarning, match=said):
        metrics = RowAdvantages("rloo")(**twice).metrics
    assert metrics["credit/copied"] == 8 / len(twice["trace"]) and "credit/condition/unbiased" not in metrics
    with pytest.warns(UserWarning, match=said):
        credit.from_columns(**twice)
    assert RowAdvantages("rloo", strict=True)(**once).metrics["credit/condition/unbiased"] == 1
    mask = np.arange(16) < np.arange(len(twice["trace"]))[:, None]  # what they wrote differs
    assert RowAdvantages("rloo", strict=True)(**twice, mask=mask).metrics["credit/copied"] == 0


def scored(seed: int, traces: int, *, steps: bool = True) -> dict[str, Any]:
    """Tasks of four traces of four calls, with outcomes and rewards at events of a reward model."""
    draw, calls = np.random.default_rng([78, seed]), 4 if steps else 1
    trace = np.repeat(np.arange(traces), calls)
    columns = {
        "group": trace // 4, "trace": trace, "agent": np.tile([*"papc"], traces)[: len(trace)],
        "reward": draw.normal(size=traces)[trace],
    }  # fmt: skip
    return columns | (
        {"turn": np.tile(range(4), traces), "event_reward": draw.normal(size=4 * traces)} if steps else {}
    )


@pytest.mark.parametrize("new_groups", [False, True])
@pytest.mark.parametrize(
    ("traces", "copies", "steps"),
    [(200, range(8), False), (52, range(3, 50, 6), True), (16, range(4), True), (16, range(12, 16), True)],
)
def test_a_few_traces_that_stand_again_at_the_end_are_named(
    traces: int, copies: range, steps: bool, new_groups: bool
) -> None:
    """`copied` was 0 and `unbiased` 1, though no two other traces had one reward of the model; so for the last task."""
    once = scored(0, traces, steps=steps)
    again = np.concatenate([np.flatnonzero(once["trace"] == trace) for trace in copies])
    twice = {name: np.append(column, column[again]) for name, column in once.items()}
    twice["trace"][len(once["trace"]) :] += traces
    twice["group"][len(once["trace"]) :] += traces * new_groups
    named_where_not_unbiased(once, False)
    named_where_not_unbiased(twice, True)
    twice["reward"] = np.round(twice["reward"], 2)  # of few kinds, they are equal by chance
    if not steps:
        named_where_not_unbiased(twice, False)


@pytest.mark.parametrize(("rows", "turned"), [(1, True), (2, True), (4, True), (12, True), (12, False)])
def test_a_row_that_stands_again_is_named_where_numbers_tell_all_others_apart(rows: int, turned: bool) -> None:
    """`copied` was right and `unbiased` 1, without a word: 8 rows were needed, and turns."""
    once = scored(1, 16)
    once = once if turned else {name: column for name, column in once.items() if name != "turn"}
    named_where_not_unbiased(once, False)
    take = np.sort(np.append(np.arange(64), np.arange(rows)))
    twice = {name: column[take] for name, column in once.items()}
    named_where_not_unbiased(twice, True)
    with pytest.warns(UserWarning, match=EQUAL):
        credit.from_columns(**twice)
    named_where_not_unbiased(twice | {"event_reward": np.round(twice["event_reward"], 1)}, rows == 12 and turned)


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("seeds", [range(60), range(60, 600)])
def test_no_batch_of_a_policy_that_hardly_varies_is_taken_for_copies(seeds: range) -> None:
    """Drawn: each task has some texts, all paid the same again; some are sampled more at the end, some calls twice."""
    for seed in seeds:
        draw = np.random.default_rng([79, seed])
        digits, places = (int(draw.choice([0, 1, 2, 3, 9])) for _ in range(2))
        texts = draw.choice([1, 2, 4, 8, 16, 64, 200, 10**6], 12 if seed % 2 else 1)
        tasks = np.repeat(np.arange(12), 5)
        tasks = np.append(tasks, np.repeat(draw.choice(12, 3), 5)) if seed % 3 else draw.permutation(tasks)
        text = draw.integers(texts[tasks % len(texts)])
        turns = [(trace, turn) for trace in range(len(tasks)) for turn in range(3)]
        calls = [call for call in turns for _ in range(1 + (seed % 5 > 0 and draw.random() < seed % 4 / 10))]
        trace, turn = np.array(calls).T
        said = draw.integers(texts[tasks[trace] % len(texts)]) if seed % 5 else 3 * text[trace] + turn
        score = {key: draw.normal(size=2) for key in sorted({*zip(tasks[trace].tolist(), said.tolist(), strict=True)})}
        paid = np.array([score[key] for key in zip(tasks[trace].tolist(), said.tolist(), strict=True)])
        outcome = draw.normal(size=len(tasks)) if seed % 5 else paid[np.searchsorted(trace, np.arange(len(tasks))), 1]
        columns: dict[str, Any] = {
            "group": tasks[trace], "trace": trace, "reward": np.round(outcome, digits)[trace],
            "event_reward": np.round(paid[:, 0], places),
        }  # fmt: skip
        columns |= {"turn": turn} if seed % 4 else {}
        assert not copied_rows(built_from_columns(columns)[2]).twice, seed


@pytest.mark.parametrize("kind", ["seconds", "times", "of the step", "whole seconds", "a replay"])
@pytest.mark.parametrize("copies", [1, 2])
def test_a_trace_that_stands_again_is_named_where_the_clock_of_its_order_proves_it(kind: str, copies: int) -> None:
    """`read` named it by its times, and one or two were silent here."""
    draw, trace = np.random.default_rng([81, copies]), np.repeat(np.arange(24), 4)
    clock = 1.7e9 + 100 * (trace if kind != "of the step" else 0) + np.tile(range(4), 24) + draw.random((24, 4)).ravel()
    clock = clock[np.arange(96) % 4] if kind == "of the step" else clock
    order = np.floor(clock) if kind == "whole seconds" else clock
    order = (1e6 * order).astype("datetime64[us]") if kind == "times" else order
    once = {
        "group": trace // 4,
        "trace": trace,
        "agent": np.tile([*"papc"], 24),
        "reward": trace % 3 / 2.0,
        "order": order,
    }
    again = np.append(np.arange(96), np.arange(4 * copies))
    twice = {name: column[again] for name, column in once.items()} | {
        "trace": np.append(trace, trace[: 4 * copies] + 24)
    }
    node = {"evidence": {"node": np.append(np.arange(96), np.arange(4 * copies))}} if kind == "a replay" else {}
    named_where_not_unbiased(once, False)
    named_where_not_unbiased(twice, kind in ("seconds", "times"), **node)


def test_shuffled_rows_of_a_team_are_no_copies() -> None:
    """Two calls of each agent, which no turn tells apart, were said to stand twice: some stood beside each other."""
    rows = np.random.default_rng(80).permutation(32)
    columns = {"group": rows // 16, "trace": rows // 4, "agent": np.array([*"pwwp"])[rows % 4], "reward": rows // 4 % 3}
    named_where_not_unbiased(columns, False)


@pytest.mark.parametrize("kinds", [2, 3, 11, 101])
def test_no_outcomes_of_few_kinds_are_taken_for_copies(kinds: int) -> None:
    """Passed or not, and grades: as equal by chance as of a rubric, also where each stands twice, in another order."""
    for seed in range(100):
        draw = np.random.default_rng([71, kinds, seed])
        n = 2 * int(draw.integers(8, 40))
        score = draw.integers(0, kinds, n) / (kinds - 1)
        score = np.concatenate([score[: n // 2], draw.permutation(score[: n // 2])]) if seed % 2 else score
        group = np.arange(n) % draw.integers(1, 4)
        columns = {"group": group, "trace": np.arange(n), "reward": score}
        assert not copied_rows(built_from_columns(columns)[2]).twice
        columns["reward"] = draw.normal(size=3)[group]  # one reward model's number for a whole group
        assert not copied_rows(built_from_columns(columns)[2]).twice


@pytest.mark.parametrize("stated", ["turn", "order"])
def test_one_row_again_at_a_place_is_named_as_in_a_turn(stated: str) -> None:
    """With `order=` in the place of `turn=` a row that stood twice counted twice, under `strict`, too."""
    draw, trace = np.random.default_rng(0), np.append(np.repeat(np.arange(16), 4), 1)
    again = np.append(np.arange(64), 5)
    rows: dict[str, Any] = {"group": trace // 4, "trace": trace, "agent": np.array(["a", "b"])[again % 2],
                            "reward": trace % 3 / 2, "event_reward": draw.normal(size=64)[again],
                            stated: again % 4}  # fmt: skip
    with pytest.raises(credit.CreditError, match="row 64 is row 5 again"):
        RowAdvantages("rloo", strict=True)(**rows)
    whole = {name: column[:64] for name, column in rows.items()}
    assert RowAdvantages("rloo", strict=True)(**whole).metrics["credit/copied"] == 0


def test_sampled_tokens_tell_a_copied_row() -> None:
    """`token_ids` in evidence was refused, though `credit.from_columns` finds the copy by it."""
    draw, trace = np.random.default_rng(0), np.repeat(np.arange(8), 4)
    tokens = [draw.integers(0, 5000, 12).tolist() for _ in trace]
    chances = [draw.normal(-2, 1, 12).tolist() for _ in trace]
    again = np.append(np.arange(32), 5)
    sampled = {"token_ids": [tokens[row] for row in again], "token_log_probs": [chances[row] for row in again]}
    rows = {"group": trace[again] // 4, "trace": trace[again], "reward": trace[again] % 3 / 2}
    with pytest.raises(credit.CreditError, match="row 32 is row 5 again"):
        RowAdvantages("rloo", strict=True)(**rows, evidence=sampled)
    advantages = RowAdvantages("rloo", strict=True)
    arrays = {name: np.array(lists) for name, lists in sampled.items()}
    found = advantages(**rows, evidence=arrays, where=np.arange(33) < 32)
    assert found.valid.tolist() == [True] * 32 + [False] and advantages.compilations == 1


@pytest.mark.parametrize("stated", ["order", "context"])
@pytest.mark.parametrize("again", [[5], [5, 9, 21]])
def test_a_row_again_at_its_place_is_named_though_its_numbers_are_of_few_kinds(stated: str, again: list[int]) -> None:
    """`copied` was 0.02 and `unbiased` 1, without a warning: rewards of few kinds proved nothing."""
    draw, row = np.random.default_rng(83), np.sort(np.append(np.arange(32), again))
    trace = np.repeat(np.arange(8), 4)
    columns: dict[str, Any] = {
        "group": trace // 4, "trace": trace, "agent": np.tile([*"pabr"], 8), "reward": draw.integers(0, 2, 8)[trace],
        "event_reward": 0.2 * draw.integers(0, 2, 32),
    }  # fmt: skip
    columns = {name: column[row] for name, column in columns.items()}
    place = np.tile([0, 1, 1, 2], 8)[row]
    more = (
        {"order": place}
        if stated == "order"
        else {"evidence": {"context": [f"{t}/{k}" for t, k in zip(trace[row], place, strict=True)]}}
    )
    with pytest.raises(credit.CreditError, match=f"{len(again)} rows? that equal.*row 6 is row 5 again"):
        RowAdvantages("rloo", strict=True)(**columns, **more)
    with pytest.warns(UserWarning, match=EQUAL):
        assert "credit/condition/unbiased" not in RowAdvantages("rloo")(**columns, **more).metrics
    with pytest.warns(UserWarning, match=f"{len(again)} rows? that equal"):
        credit.from_columns(**columns, **more)


@pytest.mark.parametrize("again", [[5], [5, 9, 21], [5, 5, 5], range(32)], ids=["one", "three", "thrice", "all"])
@pytest.mark.parametrize("turned", [False, True])
def test_a_row_again_is_named_by_its_log_probability(again: Any, turned: bool) -> None:
    """`credit/copied` alone moved: of whole actions a log-probability of -150 proved traces only."""
    draw, row = np.random.default_rng(84), np.sort(np.append(np.arange(32), again))
    trace, log_prob = np.repeat(np.arange(8), 4), -100 - 50 * draw.random(32)
    columns: dict[str, Any] = {"group": trace // 4, "trace": trace, "agent": np.tile([*"papc"], 8),
                               "reward": trace % 3 / 2}  # fmt: skip
    columns |= {"turn": np.tile(range(4), 8)} if turned else {}
    taken = {name: column[row] for name, column in columns.items()}
    said = f"{len(again)} rows? that equals? .*row 6 is row 5 again" if len(again) < 32 else "32 rows that equal"
    with pytest.raises(credit.CreditError, match=said):
        RowAdvantages("dr_mas", strict=True)(**taken, evidence={"log_prob": log_prob[row]})
    with pytest.warns(UserWarning, match=said):
        credit.from_columns(**taken, evidence={"log_prob": log_prob[row]})
    RowAdvantages("dr_mas", strict=True)(**columns, evidence={"log_prob": log_prob})
    for likely in (log_prob / 100, np.round(log_prob), np.where(trace % 4, log_prob, log_prob[0])):
        found = built_from_columns({**taken, "evidence": {"log_prob": likely[row]}})[2]
        assert len(again) == 32 or not copied_rows(found).twice


@pytest.mark.parametrize("name", ["log_ratio", "value"])
def test_one_number_for_a_trace_proves_no_copied_row(name: str) -> None:
    """`log_ratio` as the sum over each trace, which is asked for, made second calls of an agent copies."""
    draw, trace = np.random.default_rng(85), np.repeat(np.arange(32), 4)
    columns: dict[str, Any] = {"group": trace // 4, "trace": trace, "agent": np.tile([*"pcpc"], 32),
                               "reward": draw.normal(size=32)[trace]}  # fmt: skip
    of_trace = draw.normal(0, 0.3, 32)[trace]
    given = {"log_ratio": of_trace} if name == "log_ratio" else {"evidence": {"value": of_trace}}
    method = {"log_ratio": ("rloo", {"truncate": np.inf}), "value": ("gae", {"lambda_": 1.0})}[name]
    found = RowAdvantages(method[0], strict=True, **method[1])(**columns, **given)
    assert found.metrics["credit/copied"] == 0.5
    assert name == "value" or found.metrics["credit/condition/unbiased"] == 1
