"""What a batch shows is said of each batch, not of the first alone: doubled outcomes, moved rows, lone groups, bias."""

from __future__ import annotations

import collections
import contextlib
import itertools
import json
import warnings
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import credit
from credit import CreditError
from credit.integrations import MissingColumnWarning, RowAdvantages
from credit.method_summary import Summary
from credit.tables.column_values import ColumnError
from graphs.errors import PrecisionWarning

SLOW = pytest.mark.slow
TEAM: dict[str, Any] = {"group": ["q"] * 4, "trace": list("aabc"), "agent": list("ABAA")}
OUTCOME = np.array([1.0, 1, 0, 1])


def said(credit_of: RowAdvantages, **columns: Any) -> tuple[dict[str, float], list[str]]:
    """The conditions of a batch, and the words of its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        metrics = credit_of(**columns).metrics
    begin = "credit/condition/"
    named = {name.removeprefix(begin): value for name, value in metrics.items() if name.startswith(begin)}
    return named, [str(warning.message) for warning in caught]


@pytest.mark.parametrize("strict", [False, "warn", True])
def test_a_doubled_outcome_is_named_in_the_batch_that_shows_it(strict: bool | Literal["warn"]) -> None:
    """The check was spent on a first batch of zeros, and `strict=True` had none."""
    credit_of = RowAdvantages("rloo", rows=16, strict=strict)
    conditions, words = said(credit_of, reward=np.zeros(4), event_reward=np.zeros(4), **TEAM)
    assert "paid_once" not in conditions and not words
    conditions, words = said(credit_of, reward=OUTCOME, event_reward=np.array([0.5, 0, 0, 0.25]), **TEAM)
    assert conditions["paid_once"] == conditions["unbiased"] == 1 and not words
    if strict is True:
        with pytest.raises(CreditError, match="gets the outcome again as 'event_reward' in every row"):
            credit_of(reward=OUTCOME, event_reward=OUTCOME, **TEAM)
        return
    for again in (False, True):
        conditions, words = said(credit_of, reward=OUTCOME, event_reward=OUTCOME, **TEAM)
        assert conditions["paid_once"] == conditions["unbiased"] == 0
        assert len(words) == (strict == "warn" or not again) and all("counts twice" in word for word in words)


def test_each_kind_of_fault_is_named_where_it_first_occurs() -> None:
    """Rows that a trainer shuffled, and groups that fell apart, after a first batch in order."""
    credit_of = RowAdvantages("turn_baseline", rows=16)
    right = {"group": ["q"] * 4, "trace": list("aabb"), "turn": [0, 1] * 2, "reward": np.array([1.0, 1, 0, 0])}
    shuffled = {**right, "turn": [1, 0] * 2, "event_reward": np.array([0.5, 0, 0, 0.25])}
    alone = {**right, "group": list("ppqq")}
    assert not said(credit_of, **right)[1]
    for columns, match in ((shuffled, "turn 0 of an agent stands behind"), (alone, "every group of the batch has one")):
        (words,) = said(credit_of, **columns)[1]
        assert match in words
        assert not said(credit_of, **columns)[1]


def test_a_method_is_called_unbiased_only_where_the_batch_lets_it() -> None:
    group: dict[str, Any] = {"group": ["q"] * 3, "trace": list("abc"), "reward": np.array([1.0, 0, 1])}
    ratio = np.array([0.5, 0, -1])

    def unbiased(method: str = "rloo", options: dict[str, Any] | None = None, **columns: Any) -> float | None:
        return said(RowAdvantages(method, **(options or {})), **{**group, **columns})[0].get("unbiased")

    assert unbiased() == 1
    assert unbiased(policy_version=[5, 5, 5]) == 1
    # It was 0: that a group mixes versions biases nothing, and the older rows the trainer's loss may weigh.
    assert unbiased(policy_version=[0, 5, 9]) is None
    assert unbiased(policy_version=[0, 5, 9], log_ratio=ratio) == 1
    # These were 1: a key keeps versions apart, and the older rows are still not of the trained policy.
    assert unbiased(policy_version=[5, 5, 9], options={"by": "task,policy_version", "singleton": "raw"}) is None
    assert unbiased(group=list("ppq"), trace=list("abc"), policy_version=[5, 5, 9]) is None
    assert unbiased(policy_version=[5, 5, None]) is None
    assert unbiased(policy_version=[None] * 3) == unbiased() == 1  # no row states a version, with or without the column
    assert unbiased(policy_version=[5, None, None], log_ratio=ratio) == 1
    assert unbiased("grpo", policy_version=[0, 5, 9]) == 0  # whatever the versions
    assert unbiased(log_ratio=ratio) == 1
    assert unbiased(log_ratio=np.array([3.0, 0, -1])) == 0  # a weight that was cut off
    assert unbiased(reward=np.full(3, np.nan)) is None
    empty: dict[str, Any] = {"group": [], "trace": [], "reward": np.zeros(0)}
    assert unbiased(**empty) is None
    assert unbiased(group=list("pqr")) is None  # no row has an answer
    moved: dict[str, Any] = {"group": ["q"] * 4, "trace": list("aabb"), "turn": [1, 0] * 2}
    moved |= {"reward": np.array([1.0, 1, 0, 0]), "event_reward": np.array([0.5, 0, 0, 0.25])}
    assert unbiased("turn_baseline", **moved) == 0
    assert unbiased("rloo", **moved) == 1  # it sums over the trace, in any order


@pytest.mark.filterwarnings("ignore:got rows . versions older")
def test_a_batch_that_is_wholly_old_is_told_from_the_version_that_is_trained() -> None:
    """It was called unbiased, of age 0: no batch shows which policy is trained."""
    rows: dict[str, Any] = {"group": ["q"] * 3, "trace": list("abc"), "reward": np.array([1.0, 0, 1])}

    def metrics(**columns: Any) -> dict[str, float]:
        return RowAdvantages("rloo")(**rows, **columns).metrics

    for versions, trained, bias, ages in (
        ([7, 7, 7], None, 1, (0, 0)), ([7, 7, 7], 7, 1, (0, 0)), ([7, 7, 7], 8, None, (1, 1)),
        ([7, 7, 4], 8, None, (4, 2)), ([8, 8, None], 8, None, (0, 0)), ([None] * 3, 8, None, (None, None)),
    ):  # fmt: skip
        found = metrics(policy_version=versions, trained_version=trained)
        assert found.get("credit/condition/unbiased") == bias
        assert tuple(found.get(f"credit/policy_age{of}") for of in ("", "_mean")) == ages
    untold = metrics(trained_version=8)
    assert untold["credit/versions_unknown"] == 1 and "credit/condition/unbiased" not in untold
    weighed = metrics(policy_version=[7, 7, 7], trained_version=8, log_ratio=np.full(3, -0.1))
    assert weighed["credit/condition/unbiased"] == weighed["credit/policy_age"] == 1
    for wrong, least in ((6, 7), (7.5, 7), ("8", 7), (-1, 7), (True, 7)):
        with pytest.raises(CreditError, match=f"trained_version is .*; expected an integer of at least {least}, the n"):
            metrics(policy_version=[7, 7, 7], trained_version=wrong)
    for said_in in (RowAdvantages.__doc__, Path("docs/trainers.md").read_text()):
        assert said_in is not None
        assert "newest version of the batch" in " ".join(said_in.split()) and "trained_version" in said_in


@pytest.mark.filterwarnings("ignore:got rows . versions older")
@pytest.mark.parametrize(
    ("versions", "trained", "bias", "ages"),
    [([5, 2], {"p": 5, "w": 2}, 1, (0, 0, 0)), ([5, 2], {"p": 6, "w": 2}, None, (1, 0.5, 1)),
     ([5, 2], {"p": 5, "w": 4, "absent": 0}, None, (2, 1, 1)), ([5, 2], 5, None, (3, 1.5, 1)),
     ([5, None], {"p": 5, "w": 2}, None, (0, 0, 0))],
)  # fmt: skip
def test_each_agent_may_have_versions_of_its_own(versions: Any, trained: Any, bias: float | None, ages: Any) -> None:
    """An agent that is trained less often, or not, was taken for rows of an older version."""
    rows: dict[str, Any] = {"group": ["q"] * 6, "trace": [*"aabbcc"], "agent": ["p", "w"] * 3}
    rows |= {"reward": np.repeat([1.0, 0, 1], 2), "policy_version": versions * 3}
    found = RowAdvantages("rloo")(**rows, trained_version=trained).metrics
    named = ("policy_age", "policy_age_mean", "groups_of_several_versions")
    assert (found.get("credit/condition/unbiased"), *(found[f"credit/{name}"] for name in named)) == (bias, *ages)


@pytest.mark.parametrize(
    ("trained", "words"),
    [({"p": 5}, "of agent 'w' is None; expected an integer of at least 2, the newest policy_version of agent 'w'"),
     ({"p": 4, "w": 2}, "of agent 'p' is 4; expected an integer of at least 5"),
     ({"p": 5, "w": "2"}, "of agent 'w' is '2'; expected an integer")],
)  # fmt: skip
def test_a_version_that_an_agent_cannot_have_is_named(trained: dict[str, Any], words: str) -> None:
    rows: dict[str, Any] = {"group": ["q"] * 4, "trace": [*"aabb"], "policy_version": [5, 2, 5, 2]}
    rows |= {"reward": np.repeat([1.0, 0], 2), "trained_version": trained}
    with pytest.raises(CreditError, match=f"trained_version {words}"):
        RowAdvantages("rloo")(**rows, agent=["p", "w"] * 2)
    with pytest.raises(CreditError, match="trained_version names agents, and rows have no column 'agent'"):
        RowAdvantages("rloo")(**rows)
    frozen = {"agent": ["p", "w"] * 2, "evidence": {"trainable": [1, 0] * 2}}
    found = RowAdvantages("rloo")(**{**rows, "trained_version": {"p": 5}}, **frozen).metrics
    assert found["credit/policy_age"] == 0 and found["credit/condition/unbiased"] == 1


@pytest.mark.parametrize(
    ("ratio", "known"),
    [([0.0, 0, 0, 0], True), ([0.5, 0.5, 0, 0], True), ([0.5, 0, 0, 0], False), ([0.0, 0, 0, -1.0], True),
     ([-np.inf, -np.inf, 0, 0], True), ([[0.0, 9]] * 4, True), ([[0.0, 9]] * 3 + [[-1.0, 9]], True),
     ([[0.0, 9], [0.1, 9], [0, 9], [0, 9]], False), ([[0.1, 9], [0.1, 9], [0, 9], [0, 9]], True)],
)  # fmt: skip
@pytest.mark.parametrize("padded", [False, True])
def test_a_ratio_of_a_part_of_a_trace_is_not_the_weight_of_the_trace(ratio: Any, known: bool, padded: bool) -> None:
    """Of two calls in a trace each was weighed alone, and the gradient was called unbiased: with their sum it is."""
    rows: dict[str, Any] = {
        "group": [*"qqqq"],
        "trace": [*"aabc"],
        "agent": [*"xyxx"],
        "reward": np.array([1.0, 1, 0, 1]),
    }
    mask = [[1, 0]] * 4 if np.ndim(ratio) > 1 else None
    if padded:  # a row that fills up the batch belongs to no trace
        rows = {name: np.asarray([*column, column[-1]]) for name, column in rows.items()} | {"where": [1, 1, 1, 1, 0]}
        ratio, mask = [*ratio, ratio[-1]], None if mask is None else [*mask, [1, 1]]
    conditions, _ = said(RowAdvantages("rloo"), **rows, log_ratio=ratio, mask=mask)
    assert conditions.get("unbiased") == (1 if known else None)


def test_the_sum_of_ratios_of_a_trace_gives_the_exact_gradient() -> None:
    """Of all samples of an older team: 1 is said of the exact gradient, and not of each row's own ratio.

    A planner stops or goes on, then a solver errs or not. A frozen judge acts last, with a ratio that counts nothing.
    """
    new, old = 1 / (1 + np.exp([[-0.3, 0.4], [0.2, -0.2]]))  # of the planner and the solver to go on, to be right
    outcome = np.array([0.2, 0.0, 1.0])
    true = np.array([new[0] * (1 - new[0]) * (new[1] - 0.2), new[0] * new[1] * (1 - new[1])])

    def action(agent: int, one: int) -> tuple[int, float, float]:
        """The agent, its score and its log ratio."""
        chance = [1 - new[agent], new[agent]][one] / [1 - old[agent], old[agent]][one]
        return agent, one - new[agent], float(np.log(chance))

    runs = [[action(0, 0)], [action(0, 1), action(1, 0)], [action(0, 1), action(1, 1)]]
    chance = [1 - old[0], old[0] * (1 - old[1]), old[0] * old[1]]
    credit_of = RowAdvantages("rloo", rows=16)
    got, known = {"own": np.zeros(2), "sum": np.zeros(2)}, {"own": set[Any](), "sum": set[Any]()}
    for drawn in itertools.product(range(3), repeat=3):
        rows = [(i, *action, sum(a[2] for a in runs[k]), outcome[k]) for i, k in enumerate(drawn) for action in runs[k]]
        rows += [(i, 2, 0.0, 9.0, 9.0, outcome[k]) for i, k in enumerate(drawn)]
        trace, agent, score, own, whole, reward = map(np.array, zip(*rows, strict=True))
        columns: dict[str, Any] = {"group": [0] * len(rows), "trace": trace, "agent": agent, "reward": reward}
        for name, ratio in (("own", own), ("sum", whole)):
            answer = credit_of(**columns, log_ratio=ratio, evidence={"trainable": agent < 2})
            known[name].add(answer.metrics.get("credit/condition/unbiased"))
            share = np.prod([chance[k] for k in drawn]) / 3
            for one in (0, 1):
                got[name][one] += share * (answer.advantages * score)[agent == one].sum()
    np.testing.assert_allclose(got["sum"], true, atol=1e-6)
    assert known["sum"] == {1.0} and None in known["own"] and 0 not in known["own"]
    assert got["own"][0] > 1.7 * true[0]


def test_a_ratio_of_each_row_weighs_all_its_tokens() -> None:
    """It was refused beside a mask, though [N] is of the row, and [N, L] of its tokens."""
    rows: dict[str, Any] = {"group": ["q"] * 3, "reward": np.array([1.0, 0, 0.5]), "mask": [[1, 1], [1, 0], [0, 1]]}
    got = RowAdvantages("rloo")(**rows, log_ratio=[np.log(1.5), -1.0, np.nan])
    np.testing.assert_allclose(got.advantages, [[1.125, 1.125], [-0.75 * np.exp(-1), 0], [0, 0]], rtol=1e-6)
    assert got.metrics["credit/condition/unbiased"] == 1
    with pytest.raises(
        ColumnError, match=r"shape \(3, 3\); expected \(3,\), one number a row, .* or \(3, 2\), one for"
    ):
        RowAdvantages("rloo")(**rows, log_ratio=np.zeros((3, 3)))


def test_a_watch_sees_the_weights(tmp_path: Path) -> None:
    """It wrote "unbiased" 1 of a batch whose metrics said 0: a weight was cut off after it had looked."""
    columns: dict[str, Any] = {"group": ["q"] * 3, "reward": np.array([1.0, 0, 1]), "log_ratio": [3.0, 0, 0]}
    got = RowAdvantages("rloo", watch=tmp_path)(**columns)
    (line,) = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert json.loads(line)["credit/condition/unbiased"] == 0 == got.metrics["credit/condition/unbiased"]


@pytest.mark.parametrize("along", ["trace", "agent"])
def test_values_at_lambda_1_are_a_baseline(along: str) -> None:
    """Whether it is unbiased was not known. All traces of two decisions, by their probability, have wrong values.

    Along "agent" an action lacks the rewards of the next agent: a bias.
    """
    first, second = np.array([0.3, 0.7]), np.array([[0.2, 0.8], [0.6, 0.4]])
    earned, paid = np.array([[1.0, -2.0], [0.5, 3.0]]), np.array([0.25, -1.0])  # by both, and by the first
    pairs = [(a, b) for a in (0, 1) for b in (0, 1)]
    got = RowAdvantages("gae", lambda_=1, discount=1, along=along)(
        group=["q"] * 8, trace=np.repeat(np.arange(4), 2), agent=["x", "y"] * 4, turn=[0, 1] * 4,
        reward=np.repeat([earned[pair] for pair in pairs], 2),
        event_reward=[amount for a, b in pairs for amount in (paid[a], b * (1.0 + 2 * a))],
        evidence={"value": [value for a, _ in pairs for value in (9.0, [-4.0, 7.0][a])]},
    )  # fmt: skip
    gradient, exact = np.zeros(3), np.zeros(3)  # of the logit of action 1: first, second after 0, second after 1
    for (a, b), (one, two) in zip(pairs, got.advantages.reshape(4, 2), strict=True):
        score = np.zeros(3)
        score[0], score[1 + a] = a - first[1], b - second[a, 1]
        chance, total = first[a] * second[a, b], earned[a, b] + paid[a] + b * (1 + 2 * a)
        gradient += chance * np.where(np.arange(3) == 0, one, two) * score
        exact += chance * total * score
    assert got.metrics.get("credit/condition/unbiased") == (along == "trace")
    assert np.allclose(gradient, exact, atol=1e-5) == (along == "trace")


@pytest.mark.slow
def test_a_cut_off_trace_has_its_value_in_the_reward() -> None:
    """A column `bootstrap` was no evidence of any method, and the option had one entry for each padded trace."""
    columns: dict[str, Any] = {"group": ["q"] * 4, "trace": list("aabb")}
    evidence = {"value": [0.5, 0.5, 0.2, 0.1]}
    with pytest.raises(
        CreditError, match="add discount times the value of the state in which a trace was cut off to its"
    ):
        RowAdvantages("gae")(**columns, reward=np.ones(4), evidence=evidence | {"bootstrap": [0, 0, 0.3, 0.3]})
    for options in ({"lambda_": 0.7, "discount": 0.9}, {"along": "agent", "discount": 0.9}):
        added = RowAdvantages("gae", **options)(**columns, reward=[1, 1, 0.27, 0.27], evidence=evidence)
        graph, reward, rows = credit.from_columns(**columns, reward=[1.0, 1, 0, 0], evidence=evidence)
        behind = np.full(graph.num_traces, np.nan)
        behind[1] = 0.3
        exact = credit.gae(graph, reward, value=rows.evidence["value"], bootstrap=behind, **options)
        np.testing.assert_allclose(added.advantages, rows.gather(exact.advantage), atol=1e-6)


@pytest.mark.slow
def test_who_is_left_out_leaves_a_bias_open() -> None:
    """It was 1 where traces had no outcome, or actions no siblings, which may be for what the policy chose."""
    rows: dict[str, Any] = {"group": [*"qqqp"], "trace": [*"abcd"], "reward": np.array([1.0, 0, 1, 0])}

    def unbiased(method: str, **columns: Any) -> float | None:
        return said(RowAdvantages(method), **{**rows, **columns})[0].get("unbiased")

    assert unbiased("rloo") == 1  # a group of one is left out as a whole
    assert unbiased("rloo", reward=np.array([1.0, 0, np.nan, 0])) is None
    siblings = {"context": ["c"] * 4, "node": [*"wxyz"]}
    assert unbiased("c3", group=["q"] * 4, evidence=siblings) == 1
    assert unbiased("c3", group=["q"] * 4, evidence=siblings | {"context": ["c", "c", "c", None]}) is None
    frozen = {"group": ["q"] * 6, "trace": [*"aabbcc"], "agent": ["x", "y"] * 3, "reward": np.repeat([1.0, 0, 1], 2)}
    assert unbiased("rloo", **frozen, evidence={"trainable": [1, 0] * 3}) == 1


def test_warmup_says_nothing_and_spends_no_warning() -> None:
    credit_of = RowAdvantages("rloo", rows=16)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        credit_of.warmup(event_reward=True)
    with pytest.warns(MissingColumnWarning, match="counts twice"):
        credit_of(reward=OUTCOME, event_reward=OUTCOME, **TEAM)


@pytest.mark.parametrize(
    ("method", "options", "column"),
    [("critic", {}, "value"), ("gae", {"lambda_": 0.5}, "value"), ("difference_reward", {}, "counterfactual_reward")],
)
def test_what_is_beside_values_keeps_its_level(method: str, options: dict[str, Any], column: str) -> None:
    """An advantage of 57 was -1743: a group's outcomes lost their offset, and the values of its states kept it."""
    rng, (tasks, runs, steps) = np.random.default_rng(0), (8, 4, 3)
    level = np.repeat(rng.uniform(0, 2000, tasks), runs)
    outcome = level + rng.normal(size=tasks * runs) * 100
    outcome[:runs] = 1800 + 0.001 * (1 + np.arange(runs) // 2)  # almost alike, for their size
    trace = np.repeat(np.arange(tasks * runs), steps)
    columns: dict[str, Any] = {"group": trace // runs, "trace": trace, "reward": outcome[trace]}
    evidence = {column: level[trace] + 60 * rng.normal(size=len(trace))}
    with pytest.warns(UserWarning, match="single precision"):
        loop = RowAdvantages(method, **options)(**columns, evidence=evidence)
        _, _, rows = credit.from_columns(**columns, evidence=evidence)
    batch = rows.gather(credit.run(rows, method, **options).advantage)
    assert loop.advantages == pytest.approx(batch, rel=1e-5, abs=1e-2)
    assert loop.metrics["credit/condition/resolved"] == 0


@pytest.mark.parametrize(("first", "second"), [("xxx", "xyx"), ("xyzw", "x")])
def test_turns_of_a_trace_are_not_counted_as_turns_of_its_agents(first: str, second: str) -> None:
    """`keys_of_one` was 0.167 where each turn is in both traces, and 0 where one trace alone has most of them."""
    agent = [*first, *second]
    turn = [*range(len(first)), *range(len(second))]
    trace = [0] * len(first) + [1] * len(second)
    found = RowAdvantages("turn_baseline")(
        group=["q"] * len(agent), trace=trace, agent=agent, turn=turn, reward=1.0 - np.array(trace)
    )
    assert found.metrics["credit/condition/compared"] == 1 and "credit/keys_of_one" not in found.metrics


def test_a_batch_that_was_warned_of_is_not_resolved() -> None:
    """With event rewards the metric tested sums alone, and stood at 1 beside the warning on outcomes."""
    rng, trace = np.random.default_rng(0), np.repeat(np.arange(16), 8)
    outcome = 1e4 + (rng.random(16) < 0.5) * 0.01
    with pytest.warns(UserWarning, match="single precision"):
        found = RowAdvantages("rloo")(
            group=[0] * 128, trace=trace, reward=outcome[trace], event_reward=rng.normal(size=128) * 0.01
        )
    assert found.metrics["credit/condition/resolved"] == 0 == found.metrics["credit/condition/unbiased"]


@pytest.mark.parametrize("stated", [{"order": [0, 1, 1, 2]}, {"context": ["0", "1", "1", "2"]}])
@pytest.mark.parametrize(
    ("method", "options", "named"),
    [
        ("critic", {}, False),
        pytest.param("gae", {}, True, marks=SLOW),
        ("gae", {"lambda_": 1.0}, False),
        ("gae", {"lambda_": 1.0, "discount": 0.5}, True),
        pytest.param("gae", {"along": "agent"}, False, marks=SLOW),
    ],
)
def test_values_beside_one_another_in_a_round_are_named(
    method: str, options: dict[str, Any], named: bool, stated: dict[str, Any]
) -> None:
    """Of two workers at once, of which the first earned 1, the first got 0 and the second 1.5, by the order of rows."""
    evidence: dict[str, Any] = {"value": [0.2, 0.3, 0.3, 0.8]}
    evidence |= {"context": stated["context"]} if "context" in stated else {}
    columns: dict[str, Any] = {"group": ["q"] * 4, "trace": ["a"] * 4, "agent": ["p", "w1", "w2", "p"],
                               "turn": [0, 0, 0, 1], "reward": np.ones(4), "event_reward": [0, 1.0, 0, 0],
                               "order": stated.get("order"), "evidence": evidence}  # fmt: skip
    conditions, words = said(RowAdvantages(method, **options), **columns)
    assert any("in 1 round several agents act at once" in text for text in words) == named
    assert (conditions.get("ordered") == 0) == named
    if named:
        with pytest.raises(CreditError, match="in 1 round several agents"):
            RowAdvantages(method, strict=True, **options)(**columns)
        conditions, words = said(RowAdvantages(method, **options), **columns | {"order": [0, 1, 2, 3], "evidence": {
            "value": evidence["value"]}})  # fmt: skip
        assert not [text for text in words if "at once" in text] and conditions["ordered"] == 1


def test_where_takes_no_reward_of_a_tool_out_of_a_trace() -> None:
    """What a tool's row earned was left out without a word, also with `strict=True`."""
    rows: dict[str, Any] = {"group": ["q"] * 5, "trace": [*"aaabb"], "agent": [*"ptspp"], "order": [0, 1, 2, 0, 0]}
    rows |= {"reward": np.array([1.0, 1, 1, 0, 0]), "event_reward": [0.0, -0.3, 0.1, 0.5, 0.5]}
    ran = {"where": [True, False, True, True, False]}  # the last row copies the one before it
    words = "leaves out the 'event_reward' of 1 row with where=False, .*: where= is of padding, and rows .*'trainable'"
    credit_of = RowAdvantages("rloo")
    with pytest.warns(MissingColumnWarning, match=words):
        assert credit_of(**rows, **ran).metrics["credit/condition/unbiased"] == 0  # it was 1
    conditions, again = said(credit_of, **rows, **ran)
    assert conditions["unbiased"] == 0 and not again
    with pytest.raises(CreditError, match=words):
        RowAdvantages("rloo", strict=True)(**rows, **ran)
    for column, row, value in (("event_reward", 1, 0.0), ("trace", 1, "z")):
        free = {**rows, column: [*rows[column][:row], value, *rows[column][row + 1 :]]}
        conditions, again = said(RowAdvantages("rloo", strict=True), **free, **ran)
        assert conditions["unbiased"] == 1 and not again
    of_tools = {"evidence": {"trainable": [1, 0, 1, 1, 1]}, "where": [True] * 4 + [False]}
    got = RowAdvantages("rloo", strict=True)(**rows, **of_tools)
    np.testing.assert_allclose(got.advantages, [0.3, 0, 0.3, -0.3, 0], atol=1e-6)


@pytest.mark.parametrize("method", ["discounted_return", "gae", "turn_baseline"])
def test_one_place_for_rows_of_several_turns_leaves_bias_open(method: str) -> None:
    """`discounted_return` had 0, though a reward of a joint turn counts for all of it; the others nothing."""
    rows: dict[str, Any] = {"group": ["q"] * 4, "trace": list("aabb"), "agent": ["x"] * 4, "turn": [1, 0, 0, 1]}
    rows |= {"reward": np.array([1.0, 1, 0, 0]), "event_reward": [0.5, 0.0, 0.25, 0.0], "order": [0] * 4}
    more = {"evidence": {"value": [0.5] * 4}} if method == "gae" else {}
    conditions, _ = said(RowAdvantages(method, **({"lambda_": 1} if more else {})), **rows, **more)
    assert conditions["ordered"] == 0 and "unbiased" not in conditions


@pytest.mark.parametrize("how", [{"event_type": ["tool"] * 4}, {"evidence": {"event_type": ["tool"] * 4}}])
def test_types_of_events_are_refused_with_what_rows_have_instead(how: dict[str, Any]) -> None:
    """It was a TypeError of Python about a keyword, or no such column of the method."""
    with pytest.raises(CreditError, match=r"rows have no event_type: those that no .* have evidence={'trainable': 0}"):
        RowAdvantages("rloo")(reward=OUTCOME, **TEAM, **how)


@pytest.mark.parametrize(
    ("method", "options", "known"),
    [("gae", {"lambda_": 1, "discount": 0.9}, 0), ("gae", {"discount": 0.9}, 0), ("gae", {"lambda_": 0.5}, None),
     ("gae", {"lambda_": 1}, 1), ("discounted_return", {"discount": 0.9}, 0), ("discounted_return", {}, 1)],
)  # fmt: skip
def test_a_discount_is_a_known_bias(method: str, options: dict[str, Any], known: float | None) -> None:
    """The condition was absent, as where nobody knows; which it is of a smaller λ, whose values may be true."""
    evidence = {"value": [0.5, 0.2, 0.5, 0.4]} if method == "gae" else {}
    conditions, _ = said(RowAdvantages(method, **options), reward=OUTCOME, evidence=evidence, **TEAM)
    assert conditions.get("unbiased") == known


def test_every_metric_is_a_float_of_python() -> None:
    """`credit/unpaid` was NumPy's, which a logger of JSON refuses."""
    columns = {
        **TEAM,
        "event_reward": [None, 0.5, 0.0, 0.25],
        "policy_version": [1, 1, 2, None],
        "log_ratio": [0.1] * 4,
    }
    with pytest.warns(MissingColumnWarning, match="null in 1 of 4 rows"):
        metrics = RowAdvantages("rloo")(reward=OUTCOME, mask=[[1, 1]] * 4, **columns).metrics
    assert metrics["credit/unpaid"] == 0.25 and {type(value) for value in metrics.values()} == {float}


@pytest.mark.filterwarnings("ignore::graphs.errors.MissingColumnWarning")
@pytest.mark.parametrize("null", [None, 0.0])
def test_a_batch_of_which_a_reward_is_null_is_not_called_unbiased(null: float | None) -> None:
    """It was, though the null counted as 0."""
    paid = [null, 0.5, 0.0, 0.25]
    assert ("unbiased" in said(RowAdvantages("rloo"), reward=OUTCOME, event_reward=paid, **TEAM)[0]) is (null == 0)


def test_no_advantage_is_minus_zero() -> None:
    """An advantage below 0 whose importance weight is 0 was printed as -0."""
    ratio = np.array([-np.inf, 0, -np.inf])
    reward = np.array([1.0, 0, 0])
    weighted = RowAdvantages("rloo")(group=["q"] * 3, trace=list("abc"), reward=reward, log_ratio=ratio).advantages
    assert weighted.tolist() == [0, pytest.approx(-0.5), 0] and not np.signbit(weighted[[0, 2]]).any()


def test_rewards_that_cancel_within_a_trace_are_not_the_outcome_again() -> None:
    """1e6 and -1e6 beside outcomes of 0 and 1 were "the outcome again": 2 was let pass as their rounding."""
    trace = np.repeat(np.arange(8), 3)
    paid = np.tile([1e6, -1e6, 0.0], 8)
    columns: dict[str, Any] = {"group": trace // 4, "trace": trace, "reward": 1.0 * (trace % 2)}
    conditions, words = said(RowAdvantages("rloo", strict=True), **columns, event_reward=paid)
    assert conditions["paid_once"] == 1 and not [text for text in words if "again" in text]
    with pytest.raises(CreditError, match="in the sum of each trace"):
        small = np.tile([0.3, -0.3, 0.0], 8) + columns["reward"] / 3
        RowAdvantages("rloo", strict=True)(**columns, event_reward=small)


def payments(kind: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Traces of 2 to 7 rows: their numbers, the outcome and the reward of each row, and the last row of each trace."""
    draw = np.random.default_rng([86, seed])
    traces = int(draw.choice([16, 64, 200]))
    trace = np.repeat(np.arange(traces), draw.integers(2, 8, traces))
    last, rows = np.flatnonzero(np.diff(trace, append=-1)), len(trace)
    outcome = draw.normal(size=traces) if "model" in kind else draw.integers(0, 2, traces).astype(float)
    paid = {
        "penalties": np.where(draw.random(rows) < 0.1, -0.1, 0.0),
        "lengths": -0.01 * draw.integers(1, 9, rows),
        "tools that worked": (draw.random(rows) < 0.6).astype(float),
        "a bonus at the end": np.isin(np.arange(rows), last[draw.random(traces) < 0.7]).astype(float),
        "steps of a model": draw.random(rows),
        "penalties beside a model": np.where(draw.random(rows) < 0.2, -0.1, 0.0),
    }[kind]
    return trace, outcome[trace], paid, last


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("kind", "told"),
    [("penalties", True), ("lengths", True), ("penalties beside a model", True), ("tools that worked", None),
     ("a bonus at the end", None), ("steps of a model", None)],
)  # fmt: skip
def test_an_outcome_that_is_added_to_the_last_reward_is_named(kind: str, told: bool | None, seed: int) -> None:
    """Beside a penalty in a tenth of the last rows `paid_once` and `unbiased` were 1, without a word."""
    trace, outcome, paid, last = payments(kind, seed)
    columns: dict[str, Any] = {"group": trace // 8, "trace": trace, "reward": outcome}
    conditions, words = said(RowAdvantages("rloo"), **columns, event_reward=paid)
    assert conditions["paid_once"] == conditions["unbiased"] == 1 and not words
    paid[last] += outcome[last]
    conditions, words = said(RowAdvantages("rloo"), **columns, event_reward=paid)
    assert not told or (conditions["paid_once"] == conditions["unbiased"] == 0 and "in the last row of" in words[0])


def test_where_last_rewards_are_often_the_outcome_nobody_knows_whether_it_is_paid_once() -> None:
    """A judge that agrees with the outcome in four of five traces, and the outcome paid again there, look the same."""
    draw, trace = np.random.default_rng(87), np.repeat(np.arange(160), 2)
    passed = draw.integers(0, 2, 160).astype(float)
    outcome, judged = passed[trace], np.where(draw.random(160) < 0.8, passed, 1 - passed)
    paid = np.tile([0.0, 1.0], 160) * judged[trace]
    conditions, words = said(RowAdvantages("rloo"), group=trace // 8, trace=trace, reward=outcome, event_reward=paid)
    assert not {"paid_once", "unbiased"} & {*conditions} and not words


@pytest.mark.parametrize(
    ("versions", "told", "words"),
    [([5, 5, 5, 5], {"trained_version": 7}, True), ([7, 7, 5, 5], {"trained_version": 7}, True),
     ([5, 5, 7, 7], {}, False), ([5, 5, 6, 6], {"trained_version": 6}, False),
     ([5, 5, 5, 5], {"trained_version": 7, "log_ratio": np.full(4, 0.1)}, False)],
)  # fmt: skip
def test_rows_of_much_older_versions_without_weights_are_named_once(
    versions: list[int], told: dict[str, Any], words: bool
) -> None:
    """`unbiased` vanished without a word."""
    credit_of = RowAdvantages("rloo", truncate=np.inf)
    for again in (False, True):
        seen = said(credit_of, reward=OUTCOME, policy_version=versions, **told, **TEAM)[1]
        assert ["got rows 2 versions older than the trained policy" in text for text in seen] == [True] * (
            words and not again
        )


def test_what_may_be_chance_is_no_error() -> None:
    """A bonus of 1 in the one trace that succeeds, of two, is the outcome again: strict=True ended the run."""
    rows: dict[str, Any] = {"group": ["q"] * 4, "trace": list("aabb"), "reward": np.array([1.0, 1, 0, 0])}
    credit_of = RowAdvantages("rloo", strict=True)
    _, words = said(credit_of, **rows, event_reward=np.array([0, 1.0, 0, 0]))
    assert len(words) == 1 and "counts twice" in words[0]
    more = {"group": ["q"] * 8, "trace": list("aabbccdd"), "reward": np.repeat([1.0, 0, 1, 0], 2)}
    with pytest.raises(CreditError, match="in the sum of each trace, so it counts twice"):
        credit_of(**more, event_reward=np.array([0, 1.0, 0, 0, 1, 0, 0, 0]))


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("coma", {}),
        pytest.param("critic", {}, marks=SLOW),
        pytest.param("gae", {"lambda_": 0.0}, marks=SLOW),
        pytest.param("maac", {}, marks=SLOW),
        pytest.param("hae", {"discount": 1.0, "lambda_": 0.0, "lambda_high": 0.0, "level": "low"}, marks=SLOW),
        pytest.param("difference_reward", {}, marks=SLOW),
    ],
)
@pytest.mark.parametrize("level", [1.0, 3e6, 1e8])
@pytest.mark.parametrize("paid", [0.0, 1.0])
def test_differences_of_evidence_that_single_precision_loses_are_named(
    tmp_path: Path, method: str, options: dict[str, Any], level: float, paid: float
) -> None:
    """Values of 1e8 less each other were 0 for differences near 1; resolved stood at 1, and nobody was warned."""
    rng, (traces, steps) = np.random.default_rng(0), (12, 3)
    trace = np.repeat(np.arange(traces), steps)
    team = paid * level + 1.0 + (rng.random(traces) < 0.5)
    value = level + rng.normal(size=len(trace))
    columns: dict[str, Any] = {"group": trace // 4, "trace": trace, "turn": np.tile(np.arange(steps), traces)}
    columns |= {"reward": team[trace]}
    evidence = {name: value + 0.3 * number for number, name in enumerate(("value", "q_value", "target_value"))}
    evidence |= {"value_high": value, "segment": trace, "counterfactual_reward": value}
    evidence = {name: evidence[name] for name in credit.METHODS[method].needs}
    lines = []
    for i in range(traces):
        stated = [{name: column[i * steps + k].item() for name, column in evidence.items()} for k in range(steps)]
        events = [{"id": str(k), "type": "message", "agent": "a", **stated[k]} for k in range(steps)]
        for event in events:
            event |= {"segment": str(event["segment"])} if "segment" in event else {}
        lines.append({"trace_id": str(i), "task_id": str(i // 4), "events": events, "rewards": {"team": team[i]}})
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    is_lost = level > 1
    conditions, words = said(RowAdvantages(method, **options), **columns, evidence=evidence)
    assert conditions["resolved"] == (not is_lost) and any("single precision" in text for text in words) == is_lost
    with warnings.catch_warnings(record=True) as of_columns:
        warnings.simplefilter("always")
        credit.run(credit.from_columns(**columns, evidence=evidence)[2], method, **options)
    assert any(one.category is PrecisionWarning for one in of_columns) == is_lost
    read, summary = credit.read(path), Summary()
    with warnings.catch_warnings(record=True) as of_files:
        warnings.simplefilter("always")
        summary.add(read, credit.run(read, method, **options), method, options)
    assert (
        any(one.category is PrecisionWarning for one in of_files)
        == is_lost
        == bool(summary.rounded or summary.unresolved)
    )


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("method", ["discounted_return", "mt_grpo", "rloo"])
def test_a_context_column_of_a_table_gives_the_numbers_of_the_loop(tmp_path: Path, method: str) -> None:
    """`docs/formats/table.md` says so: two workers at once, by their context, or by their place in a loop."""
    context, place = ["0", "1", "1", "2", "0", "3", "3", "4"], [0, 1, 1, 2] * 2
    columns: dict[str, Any] = {
        "group": ["q"] * 8,
        "trace": list("aaaabbbb"),
        "agent": ["p", "v", "w", "p"] * 2,
        "turn": [0, 0, 0, 1] * 2,
    }
    reward, earned = np.repeat([1.0, 0.0], 4), np.array([0.5, 0, 1, 0, 0, 0.25, 0, 0])
    lines = zip(*columns.values(), reward, earned, context, strict=True)
    path = tmp_path / "rows.csv"
    head = ",".join((*columns, "reward", "event_reward", "context"))
    path.write_text("\n".join([head, *(",".join(map(str, line)) for line in lines)]))

    of_table = np.asarray(credit.run(credit.read(path), method).advantage)[:8]
    columns |= {"reward": reward, "event_reward": earned}
    for more in ({"evidence": {"context": context}}, {"order": place}):
        assert RowAdvantages(method)(**columns, **more).advantages == pytest.approx(of_table, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "call", [("turn_baseline", {}), pytest.param(("rloo", {"by": "task,step", "singleton": "raw"}), marks=SLOW)]
)
@pytest.mark.parametrize("marked", ["order", "context", "one agent"])
def test_who_of_a_round_ended_first_is_not_what_it_is_compared_with(
    call: tuple[str, dict[str, Any]], marked: str
) -> None:
    """A solver beside a helper whose row stands first if the solver was quick, which it is where it fails.

    Its gradient is 1/4. Of all groups of two traces it was 0.21 where rows kept the order of the batch, and 1 stood
    under "unbiased".
    """
    ends = [(hire, good) for hire in (0, 1) for good in (0, 1)]
    method = RowAdvantages(call[0], **call[1])
    rows: dict[str, list[Any]] = collections.defaultdict(list)
    for g, (i, j) in enumerate(itertools.product(range(4), repeat=2)):
        for trace, (hire, good) in (("a", ends[i]), ("b", ends[j])):
            two = ["solver", "helper"] if good else ["helper", "solver"]
            for agent in two if hire else ["solver"]:
                rows["group"].append(g)
                rows["trace"].append(f"{g}{trace}")
                rows["agent"].append("worker" if marked == "one agent" else agent)
                rows["turn"].append(f"of {agent}")
                rows["solves"].append(agent == "solver")
                rows["reward"].append(float(good))
    solves = np.array(rows.pop("solves"))
    given: dict[str, Any] = {**rows, "reward": np.array(rows["reward"])}
    if marked == "context":
        given["evidence"] = {"context": given["trace"]}
    else:
        given["order"] = np.zeros(len(solves))
    untold = marked == "one agent"
    with pytest.warns(MissingColumnWarning, match="stand at one order=") if untold else contextlib.nullcontext():
        found = method(**given)
    total = float(np.sum(found.advantages * solves * (given["reward"] - 0.5))) / 16 / 2
    if marked != "one agent":
        assert total == pytest.approx(0.25, abs=1e-6)
        assert found.metrics["credit/condition/unbiased"] == 1
    else:  # nothing says who was first
        assert abs(total - 0.25) > 0.01
        assert "credit/condition/unbiased" not in found.metrics


def test_ratios_of_0_on_rows_of_older_versions_are_doubted() -> None:
    """Both log-probabilities of the trained policy: the gradient had a bias of 0.3, "unbiased" 1 and no warning."""
    rows: dict[str, Any] = {"group": [0] * 3, "trace": [0, 1, 2], "reward": np.array([1.0, 0, 0.5])}
    for versions, ratio, known in (([3, 2, 1], [0.0, 0, 0], False), ([3, 2, 1], [0.0, 0.1, -0.2], True),
                                   ([3, 3, 3], [0.0, 0, 0], True)):  # fmt: skip
        metrics, words = said(RowAdvantages("rloo"), **rows, policy_version=versions, log_ratio=np.array(ratio))
        assert (metrics.get("unbiased") == 1) == known
        assert any("every log_ratio is 0" in text for text in words) != known
    tokens = np.zeros((3, 2))
    metrics, words = said(RowAdvantages("rloo"), **rows, policy_version=[3, 2, 1], log_ratio=tokens, mask=tokens + 1)
    assert "unbiased" not in metrics and "every log_ratio is 0" in words[0]


@pytest.mark.parametrize("more", [{}, {"context": list("xxyy"), "node": list("xxyy")}])
def test_a_batch_without_any_reward_has_zeros_whatever_its_order(more: dict[str, Any]) -> None:
    """Every environment timed out: "column 'trace': has no rows" ended the training."""
    with pytest.warns(MissingColumnWarning, match="none has a reward"):
        found = RowAdvantages("rloo")(reward=np.full(4, np.nan), order=[1, 0, 0, 0], evidence=more, **TEAM)
    assert found.advantages.tolist() == [0] * 4 and found.metrics["credit/unscored"] == 1


def test_a_frozen_agent_has_versions_of_its_own() -> None:
    """Its versions made trained rows old, and one above that of the trained policy was refused."""
    rows = {"group": ["q"] * 6, "trace": list("aabbcc"), "agent": ["p", "s"] * 3}
    for versions in ([4, 0] * 3, [4, None] * 3, [4, 9] * 3):
        got = RowAdvantages("rloo", rows=16)(
            **rows, reward=np.array([1, 1, 0, 0, 0.5, 0.5]), evidence={"trainable": [1, 0] * 3},
            policy_version=versions, trained_version=4,
        ).metrics  # fmt: skip
        assert (got["credit/policy_age"], got["credit/policy_age_mean"], got["credit/versions_unknown"]) == (0, 0, 0)
        assert got["credit/condition/unbiased"] == 1


def test_rows_of_several_agents_without_a_trace_leave_bias_open() -> None:
    """Each row is then a trace of its own: `rloo` had a bias of 0.48, a warning, and an `unbiased` of 1."""
    rows = {"group": ["q"] * 6, "agent": ["p", "s"] * 3, "reward": np.array([1, 1, 0, 0, 0.5, 0.5])}
    with pytest.warns(UserWarning, match="no column 'trace'"):
        got = RowAdvantages("rloo", rows=16)(**rows).metrics
    assert "credit/condition/unbiased" not in got
    assert RowAdvantages("rloo", rows=16)(**rows, trace=list("aabbcc")).metrics["credit/condition/unbiased"] == 1


def test_a_column_of_rows_is_not_passed_as_evidence_too() -> None:
    with pytest.raises(CreditError, match="reward in evidence= would stand beside reward="):
        RowAdvantages("rloo")(group=["q"] * 2, trace=["a", "b"], reward=[1.0, 0.0], evidence={"reward": [0.0, 1.0]})


@pytest.mark.parametrize("steps", [True, False])
def test_ids_of_steps_are_no_ids_of_traces(steps: bool) -> None:
    """Each step had a trace of its own: `rloo` had each outcome in its own baseline, and `unbiased` was 1."""
    rollout, turn = [*"aaabbbbcc"], [0, 1, 2, 0, 1, 2, 3, 0, 1]
    trace = [f"{one}{at}" for one, at in zip(rollout, turn, strict=True)] if steps else rollout
    reward = np.array([dict(a=1.0, b=0.0, c=0.5)[one] for one in rollout])
    live = RowAdvantages("rloo", strict="warn")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = live(group=["q"] * 9, trace=trace, agent=["s"] * 9, turn=turn, order=turn, reward=reward)
    said = "gets one row of each trace, though turns are 0 to 3: trace= is the rollout's id"
    assert [said in str(warning.message) for warning in caught] == [True] * steps
    assert found.metrics.get("credit/condition/unbiased") == (None if steps else 1.0)
