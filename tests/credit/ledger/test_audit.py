"""Audits and receipts: what addition would pay, against loops and by hand; what the ledger pays instead.

The team: a delegation (right with probability 1/2), a message (1/2), an execution (4/5), and chatter that changes
nothing. The reward is 1 if all three are right. On the one trace that succeeds, increments are 0.2, 0.4, 0.2, against
0.2 expected; contrasts with the other choice 0.4, 0.8, 1.0; and removing any of the three costs the whole reward.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
from click.testing import CliRunner, Result

import credit
import estimators
from credit.cli import cli
from credit.ledger import compose
from credit.ledger.auditing import Audit, audit
from credit.ledger.from_methods import compose_claims
from credit.ledger.receipts.explaining import explain
from credit.reports.trace_events import event_rows
from estimators.base import Estimand, Reason, finish
from graphs.logs import read

RIGHT = (0.5, 0.5, 0.8)
TYPES = ("orchestrator_decision", "message", "tool_call", "message")


def values(choices: tuple[int, ...]) -> list[float]:
    """V before each of the four actions, and at the end."""
    return [float(np.prod(choices[:k]) * np.prod(RIGHT[k:])) for k in (0, 1, 2, 3, 3)]


def log(path: Path) -> Path:
    """The eight traces, one a line, of one task; what the delegation sent is an effect of it."""
    lines = []
    for choices in itertools.product((0, 1), repeat=3):
        pi = [p if c else 1 - p for c, p in zip(choices, RIGHT, strict=True)]
        events = [
            {"id": f"c{k}", "t": k, "type": kind, "agent": "a", "value": v, "action": True}
            | ({"propensity": pi[k]} if k < 3 else {})
            for k, (kind, v) in enumerate(zip(TYPES, values(choices), strict=False))
        ]
        events.insert(1, {"id": "sent", "t": 9, "type": "message", "agent": "a", "action": False})
        content = {"trace_id": "t" + "".join(map(str, choices)), "task_id": "q", "events": events}
        content["edges"] = [{"src": "c0", "dst": "sent", "type": "causal"}]
        content |= {"rewards": {"team": float(all(choices))}, "costs": {"tokens": 1, "wall_clock_s": 1.0}}
        lines.append(json.dumps(content))
    path.write_text("\n".join(lines))
    return path


SUCCESS = 7  # the row of trace t111

Made = tuple[credit.Traces, dict[str, credit.Credit]]


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """The traces, and as claims: increments, contrasts, removals, a broadcast and a normaliser."""
    traces = read(log(tmp_path_factory.mktemp("logs") / "x.jsonl"))
    graph = traces.graph
    increment, contrast, removal = (np.zeros(graph.num_events, np.float32) for _ in range(3))
    three = np.zeros(graph.num_events, bool)
    for row, choices in enumerate(itertools.product((0, 1), repeat=3)):
        v = values(choices)
        for k, place in enumerate((0, 2, 3)):
            event = 5 * row + place
            after = float(np.prod(choices[:k]) * np.prod(RIGHT[k + 1 :]))  # Q of the right choice; the wrong has 0
            increment[event], removal[event] = v[k + 1] - v[k], float(all(choices))
            contrast[event] = after if choices[k] else -after
            three[event] = True

    def claim(numbers: np.ndarray, estimand: Estimand, source: str) -> credit.Credit:
        return finish(
            graph, credit=numbers, baseline=np.zeros_like(numbers), scale=np.ones_like(numbers),
            stderr=np.full_like(numbers, 0.1), reason=np.where(three, Reason.VALID, Reason.NO_EVIDENCE),
            unit="event", estimand=estimand, source=source, centred=True, own_outcome=False,
        )  # fmt: skip

    return traces, {
        "critic": claim(increment, "increment", "critic"),
        "message": claim(contrast, "contrast", "contrast"),
        "removal": claim(removal, "effect", "removal"),
        "broadcast": credit.rloo(graph, traces.reward),
        "agent-wise": credit.dr_mas(graph, traces.reward),
    }


@pytest.fixture(scope="module")
def found(team: Made) -> Audit:
    traces, claims = team
    return audit(traces.graph, traces.reward, claims)


@pytest.mark.slow
def test_naive_stacking_by_hand(team: Made) -> None:
    """On the success: increments 0.8, contrasts 2.2, removals 3, and the broadcast of 1 − 0 on four actions."""
    traces, claims = team
    names = ("critic", "message", "removal", "broadcast")
    stacked = audit(traces.graph, traces.reward, {name: claims[name] for name in names})
    assert stacked.overcount[SUCCESS] == pytest.approx(0.8 + 2.2 + 3 + 4, rel=1e-6)
    first = 5 * SUCCESS
    np.testing.assert_allclose(stacked.naive[first : first + 5], [2.6, 0, 3.2, 3.2, 1], rtol=1e-6)
    assert stacked.times[first : first + 5].tolist() == [4, 0, 4, 4, 1]
    assert np.isinf(stacked.overcount[:SUCCESS]).all()  # failures: there was nothing to divide, and yet they were paid


@pytest.mark.slow
def test_a_difference_that_is_paid_to_three_agents_is_overcounted() -> None:
    """UnityMAS-O: verdicts of 0.25 and 1 pay planner and coder each change, and the reflection the second once more."""
    agents, verdict = ["planner", "coder", "reflection"] * 2, [0, 0.25, 0, 0, 0.75 + 0.25, 0]
    _, _, rows = credit.from_columns(
        group=[0] * 6, trace=[0] * 6, agent=agents, row_reward=verdict, evidence={"stage": [0] * 3 + [1] * 3}
    )
    claim = credit.run(rows, "unitymas_o", ahead="reflection")
    assert rows.gather(claim.advantage).tolist() == [0.25, 0.25, 0.75, 0.75, 0.75, 0]
    found = audit(rows.traces.graph, np.where(rows.traces.graph.trace_mask, 1.0, np.nan), {"unitymas_o": claim})
    assert found.overcount[0] == 2.75 and "unitymas_o" in found.refused


@pytest.mark.slow
def test_addition_is_what_loops_add_up(team: Made, found: Audit) -> None:
    traces, claims = team
    n, reward = traces.sizes, np.asarray(traces.reward, np.float64)
    trace = np.asarray(traces.graph.trace_ids)
    by_trace, naive, times = np.zeros(n.traces), np.zeros(n.events), np.zeros(n.events, int)
    for claim in claims.values():
        amount, baseline, valid = (np.asarray(x).tolist() for x in (claim.credit, claim.baseline, claim.valid))
        for event in range(n.events):
            if valid[event]:
                paid = amount[event] - baseline[event]
                by_trace[trace[event]] += abs(paid)
                naive[event] += paid
                times[event] += paid != 0
    np.testing.assert_allclose(found.claimed[: n.traces], by_trace, rtol=1e-12)
    np.testing.assert_allclose(found.naive[: n.events], naive, atol=1e-12)
    assert found.times[: n.events].tolist() == times.tolist()
    assert found.ratio == pytest.approx(by_trace.sum() / np.abs(reward[: n.traces]).sum())
    assert not found.payments[:, n.events :].any()


@pytest.mark.slow
def test_refusals_are_named_and_the_ledger_pays_once(team: Made, found: Audit) -> None:
    traces, _ = team
    assert set(found.refused) == {"message", "removal", "broadcast", "agent-wise"}
    assert "an amount to divide; it does not divide it" in found.refused["broadcast"]
    assert "applied after composition" in found.refused["agent-wise"]
    assert "propensity" in found.refused["removal"]
    table = found.trace_table(traces).to_pydict()
    for row, reward in enumerate(table["reward"]):
        parts = [table[name][row] for name in ("expected", "increments", "outcome", "unexplained", "remainder")]
        assert sum(parts) == pytest.approx(reward, abs=1e-6)
    assert table["increments"][SUCCESS] == pytest.approx(0.8, abs=1e-6)
    assert sum(table["events_paid_twice"]) == int(found.twice.sum()) > 0
    events = found.table(traces).to_pydict()
    assert events["naive"] == pytest.approx(found.naive[: traces.sizes.events].tolist())
    assert events["ledger"] == pytest.approx(np.asarray(found.ledger.increments)[: traces.sizes.events].tolist())


@pytest.mark.slow
def test_one_honest_claim_is_not_overcounted(team: Made) -> None:
    traces, claims = team
    alone = audit(traces.graph, traces.reward, {"critic": claims["critic"]})
    assert not alone.twice.any() and not alone.refused and alone.overcount[SUCCESS] == pytest.approx(0.8)
    np.testing.assert_allclose(alone.naive, np.asarray(alone.ledger.increments), atol=1e-6)


def test_traces_without_reward_and_wrong_claims(team: Made, found: Audit) -> None:
    traces, claims = team
    reward = np.array(traces.reward)
    reward[0] = np.nan
    partial = audit(traces.graph, reward, claims, ledger=found.ledger)
    assert np.isnan(partial.overcount[0]) and partial.claimed[0] == 0
    nothing = {"zero": credit.rloo(traces.graph, np.zeros_like(reward))}
    silent = audit(traces.graph, np.zeros_like(reward), nothing, ledger=found.ledger)
    assert np.isnan(silent.ratio) and np.isnan(silent.overcount).all()
    with pytest.raises(credit.CreditError, match="no claims"):
        audit(traces.graph, reward, {})


@pytest.mark.slow
@pytest.mark.parametrize(("error", "words"), [(np.inf, ", all with one weight: no stated error of b"), (0.2, "")])
def test_a_receipt_says_which_source_stated_no_error(team: Made, error: float, words: str) -> None:
    """One source without an error makes all of them weigh alike."""
    traces, graph = team[0], team[0].graph
    stated = (("a", 1.0, 0.1), ("b", 0.0, error))
    claims = {
        source: credit.claim(
            graph, np.full(graph.num_events, amount), estimand="increment", source=source, stderr=stderr
        )
        for source, amount, stderr in stated
    }
    ledger = compose(graph, traces.reward, list(claims.values()))
    receipt = explain(traces, "t111", "c1", claims, ledger=ledger)
    assert receipt.entry == pytest.approx(0.8 if not words else 0.5, abs=1e-6)
    assert {line.why for line in receipt.lines} == {f"averaged with other sources, not added{words}"}


@pytest.mark.slow
def test_a_receipt_accounts_for_the_entry_and_the_trace(team: Made) -> None:
    """The contrast of the pivotal message, times 1 − π, wants what the critic wants: 0.4, paid once."""
    traces, claims = team
    propensity = traces.evidence["propensity"].array
    graph, some = traces.graph, [claims[name] for name in ("critic", "message", "broadcast")]
    ledger = compose(graph, traces.reward, some, propensity=propensity.astype(np.float32))
    chosen = {name: claims[name] for name in ("critic", "message", "broadcast")}
    receipt = explain(traces, "t111", "c1", chosen, ledger=ledger)
    lines = {line.claim: line for line in receipt.lines}
    assert (lines["critic"].wanted, lines["message"].wanted) == (pytest.approx(0.4), pytest.approx(0.8))
    assert lines["critic"].increment == pytest.approx(0.4) == lines["message"].increment
    assert receipt.entry == pytest.approx(0.4, abs=1e-6) and receipt.naive == pytest.approx(2.2)
    assert sum(line.got or 0 for line in receipt.lines) == pytest.approx(receipt.entry, abs=1e-6)
    assert lines["critic"].weight + lines["message"].weight == pytest.approx(1)
    assert "not added" in lines["critic"].why and "times 1 − π" in lines["message"].why
    assert lines["broadcast"].got is None and "expected return at the start" in lines["broadcast"].why
    account = (receipt.expected, receipt.entry, receipt.others, receipt.outcome, receipt.unexplained)
    assert sum(account) + receipt.remainder == pytest.approx(receipt.reward, abs=1e-6)
    chatter = explain(traces, SUCCESS, 4, chosen, ledger=ledger)
    assert chatter.event == "c3" and chatter.entry == 0
    assert "lacks the evidence" in chatter.lines[0].why and chatter.lines[0].wanted is None


@pytest.mark.study
def test_other_rules_say_who_brought_what(team: Made) -> None:
    """Exact claims and the exact total leave nothing to move; an even split comes from nobody's claim."""
    traces, claims = team
    critic = {"critic": claims["critic"]}
    moved = compose_claims(traces, critic, rule="reconcile", tau=0.5)
    receipt = explain(traces, "t111", "c1", critic, ledger=moved)
    line = receipt.lines[0]
    assert line.weight is None and line.got + receipt.rest == pytest.approx(receipt.entry, abs=1e-6)
    even = compose_claims(traces, {"broadcast": claims["broadcast"]}, rule="shares")
    receipt = explain(traces, "t111", "c1", {"broadcast": claims["broadcast"]}, ledger=even)
    assert receipt.rest == pytest.approx(receipt.entry) and receipt.entry == pytest.approx(0.25)
    with pytest.raises(credit.CreditError, match="exact names 'gae'; expected one of the claims, critic"):
        compose_claims(traces, critic, rule="reconcile", exact=("gae",))


@pytest.mark.slow
def test_a_receipt_weighs_errors_of_zero_as_the_ledger_did(team: Made) -> None:
    traces, claims = team
    sure = dataclasses.replace(claims["critic"], source="sure", stderr=0 * claims["critic"].stderr)
    both = {"critic": claims["critic"], "sure": sure}
    settled = explain(traces, "t111", "c1", both, ledger=compose_claims(traces, both, exact=("sure",)))
    assert [line.weight for line in settled.lines] == [0, 1]
    equal = explain(traces, "t111", "c1", both, ledger=compose_claims(traces, both))
    assert [line.weight for line in equal.lines] == [0.5, 0.5]


def test_two_claims_of_one_source_are_one_vote(team: Made) -> None:
    traces, claims = team
    receipt = explain(traces, SUCCESS, "c1", {"critic": claims["critic"], "twin": claims["critic"]})
    first, second = receipt.lines
    assert first.got == second.got == pytest.approx(0.2) and receipt.entry == pytest.approx(0.4, abs=1e-6)
    assert "one vote with 1 more" in first.why


def test_claims_of_one_source_that_differ_brought_different_parts(team: Made) -> None:
    """Each was said to have brought half of their vote, the one that claims nothing, too."""
    traces, claims = team
    critic = claims["critic"]
    nothing = dataclasses.replace(critic, credit=0 * critic.credit, baseline=0 * critic.baseline)
    receipt = explain(traces, SUCCESS, "c1", {"critic": critic, "nothing": nothing})
    assert [line.got for line in receipt.lines] == [pytest.approx(0.2), 0]
    assert receipt.entry == pytest.approx(0.2, abs=1e-6) and receipt.rest == pytest.approx(0, abs=1e-6)


def test_an_effect_leads_to_its_action(team: Made, found: Audit) -> None:
    traces, claims = team
    receipt = explain(traces, "t111", "sent", claims, ledger=found.ledger)
    assert not receipt.action and receipt.entry == 0 and receipt.call == "c0"
    assert all("not an action" in line.why for line in receipt.lines)
    number = [row.event for row in event_rows(traces, "t111")].index("sent")
    for name in (number, str(number)):  # `credit show` lists the number
        assert explain(traces, "t111", name, claims, ledger=found.ledger) == receipt
    with pytest.raises(credit.CreditError, match="event is 'nobody'; expected the id of an event of trace"):
        explain(traces, 0, "nobody", claims, ledger=found.ledger)
    with pytest.raises(credit.CreditError, match=r"event is 999; expected .* number from 0 to"):
        explain(traces, 0, 999, claims, ledger=found.ledger)


# the command line


def run(*args: object) -> Result:
    return CliRunner().invoke(cli, [str(a) for a in args])


GAE = ("--methods", "gae,rloo", "--option", "gae.lambda_=0.5", "--expected", "value")


@pytest.mark.slow
def test_compose_writes_entries_that_sum_to_the_reward(tmp_path: Path) -> None:
    """The increments of an advantage at any λ are the differences of the values it was computed from."""
    path, out, advantages = log(tmp_path / "x.jsonl"), tmp_path / "ledger.parquet", tmp_path / "advantages.csv"
    result = run("compose", path, *GAE, "-o", out, "--advantage", "entry", "--advantages-to", advantages)
    assert result.exit_code == 0, result.output
    assert "took part: gae" in result.stderr and "advantage 'entry': biased" in result.stderr
    rows = pyarrow.parquet.read_table(out).to_pylist()
    for trace, reward in (("t110", 0.0), ("t111", 1.0)):
        mine = [row for row in rows if row["trace"] == trace]
        assert sum(row["amount"] for row in mine) == reward
        by_event = {row["event"]: row["amount"] for row in mine if row["entry"] == "increment"}
        expected = {"c0": 0.2, "c1": 0.4, "c2": reward - 0.8, "c3": 0.0}
        assert {k: by_event[k] for k in expected} == pytest.approx(expected, abs=1e-6)
        assert {row["entry"]: row["amount"] for row in mine}["expected"] == pytest.approx(0.2, abs=1e-6)
    assert len(advantages.read_text().splitlines()) == 41


def test_a_discounted_return_is_refused_by_name(team: Made) -> None:
    traces, claims = team
    how = estimators.Recursion(discount=0.9, lambda_=0.95)
    discounted = dataclasses.replace(claims["critic"], estimand="return", source="gae", recursion=how)
    ledger = compose_claims(traces, {"MARFT": discounted, "rloo": claims["broadcast"]})
    assert "a return discounted by 0.9 do not add up" in ledger.refused["gae"] and not ledger.claims


def test_a_return_without_values_of_states_is_refused() -> None:
    """Its differences pay the whole outcome to the last action, whoever earned it."""
    graph, reward, rows = credit.from_columns(group=[0] * 4, trace=list("aabb"), reward=[1.0, 1, 0, 0], tokens=[1] * 4)
    for claim in (credit.discounted_return(graph, reward), credit.run(rows, "puppeteer", discount=1.0)):
        why = f"1 of 1 claim refused, so no action has an entry: '{claim.source}' .* it has no values of states"
        with pytest.warns(credit.ledger.RefusedClaimWarning, match=why) as told:
            ledger = credit.compose(graph, reward, [claim])
        assert "it has no values of states" in ledger.refused[claim.source] and not ledger.claims
        assert [one.filename for one in told] == [__file__]


@pytest.mark.slow
def test_what_compose_says_names_who_is_refused_and_claims_nothing_for_a_split(tmp_path: Path) -> None:
    path, out = log(tmp_path / "x.jsonl"), tmp_path / "x.csv"
    split = run("compose", path, "-m", "gae,rloo", "--rule", "shares", "-o", out)
    assert split.exit_code == 0, split.output
    assert "refused: 'gae': its estimand is 'return'; rule 'shares' divides by shares" in split.stderr
    assert "explained: not measured" in split.stderr and "1.000" not in split.stderr


@pytest.mark.slow
def test_explain_prints_the_receipt(tmp_path: Path) -> None:
    path = log(tmp_path / "x.jsonl")
    result = run("explain", path, "t111", "c1", *GAE)
    assert result.exit_code == 0, result.output
    assert "event c1 of trace t111" in result.stdout and "the ledger pays 0.4" in result.stdout
    assert "luck after the last action in entries of gae" in result.stdout
    plain = json.loads(run("explain", path, "t111", "c1", *GAE, "--json").stdout)
    assert plain["entry"] == pytest.approx(0.4, abs=1e-6) and plain["reward"] == 1
    assert [line["claim"] for line in plain["lines"]] == ["gae", "rloo"]
    effect = run("explain", path, "t111", "sent", *GAE)
    assert "looked up at the action that it came from: c0" in effect.stdout


@pytest.mark.slow
def test_audit_prints_and_writes(tmp_path: Path) -> None:
    path, out = log(tmp_path / "x.jsonl"), tmp_path / "x.csv"
    result = run("audit", path, *GAE, "-o", out, "--level", "trace")
    assert result.exit_code == 0, result.output
    assert "paid: 32 actions, " in result.stdout and "[red]" not in result.stdout
    assert "luck after the last action in entries of gae" in result.stdout
    assert len(out.read_text().splitlines()) == 9
    plain = json.loads(run("audit", path, *GAE, "--json").stdout)
    assert plain["events_paid"] == 32 and plain["claims"]["gae"]["refused"] == ""
    assert plain["holding_luck"].startswith("luck after the last action in entries of gae")
    assert plain["overcount"] == pytest.approx(sum(claim["paid"] for claim in plain["claims"].values()))


@pytest.mark.slow
def test_rounding_of_a_claim_is_printed_as_nothing(tmp_path: Path) -> None:
    """The mean of .1 and .3 differs from .2 in its last digit: the claim was printed as -1.49012e-08."""
    events = [{"id": name, "type": "message", "agent": name} for name in "xy"]
    traces = [{"trace_id": f"t{n}", "task_id": "q", "rewards": {"team": n / 10}, "events": events} for n in (1, 2, 3)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(trace) + "\n" for trace in traces))
    printed = run("explain", tmp_path / "log.jsonl", "t2", "x", "--methods", "turn_baseline").stdout
    assert "the claims would pay 0;" in printed and "e-0" not in printed


def test_a_receipt_of_a_trace_without_an_outcome_accounts_for_nothing(tmp_path: Path) -> None:
    """It expected 0 and had an outcome of 0, as if the trace had failed."""
    lines = [{"trace_id": f"t{n}", "task_id": "q", "rewards": {"team": n / 10} if n else {},
              "events": [{"id": "x", "type": "message", "agent": "a"}]} for n in range(3)]  # fmt: skip
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    said = {n: run("explain", tmp_path / "log.jsonl", f"t{n}", "x", "--methods", "rloo").stdout for n in (0, 1)}
    assert re.search(r"^reward +no outcome$", said[0], re.MULTILINE) and "expected at the start" not in said[0]
    assert re.search(r"^reward +0.1$", said[1], re.MULTILINE) and "expected at the start" in said[1]


@pytest.mark.slow
def test_commands_of_several_methods_take_what_choose_recommends(tmp_path: Path) -> None:
    path = log(tmp_path / "x.jsonl")
    said = "--methods rloo,gae: what `credit choose` recommends here"
    composed = run("compose", path, "-o", tmp_path / "x.csv", "--json")
    assert json.loads(composed.stdout)["took_part"] == ["gae"] and f"{said}\n" in composed.stderr
    assert f"credit compose {path} --methods rloo,gae -o" in run("choose", path).stdout
    named = json.loads(run("audit", path, "--json").stdout)["claims"]
    assert list(named) == ["rloo", "gae"]
    explained = run("explain", path, "t111", "c0")
    assert explained.exit_code == 0 and all(name in explained.stdout for name in named), explained.output
    report = run("report", path, "-o", tmp_path / "x.html", "--json")
    assert json.loads(report.stdout)["methods"] == ["rloo", "gae"] and said in report.stderr
    compared = run("compare", path).stderr
    assert "--methods rloo,gae,turn_baseline: " in compared and "and others that the logs allow" in compared
    assert "recommends" not in run("explain", path, "t111", "c0", *GAE).stderr


def test_a_ledger_goes_to_standard_output_as_advantages_do(tmp_path: Path) -> None:
    path = log(tmp_path / "x.jsonl")
    printed = run("compose", path, "-m", "rloo,gae", "-o", "-")
    run("compose", path, "-m", "rloo,gae", "-o", tmp_path / "x.csv")
    assert printed.exit_code == 0 and printed.stdout == (tmp_path / "x.csv").read_text()
    assert "rows to -\n" not in printed.stderr and "rows to standard output\n" in printed.stderr
    both = run("compose", path, "-m", "rloo,gae", "-o", "-", "--json")
    assert both.exit_code == 1 and "expected a file with --json" in both.stderr


def siblings(path: Path) -> Path:
    """Two groups of four traces of three turns; the message of each is one of four siblings."""
    lines = []
    for i, reward in enumerate((1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)):
        names = ("a", "b", "a")
        events = [{"id": f"e{k}", "type": "message", "agent": name, "turn": k} for k, name in enumerate(names)]
        events[1] |= {"context": f"c{i // 4}", "node": f"n{i}"}
        lines.append({"trace_id": f"t{i}", "task_id": "q", "events": events, "rewards": {"team": reward}})
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("explained", [(0, 5), range(8)], ids=["two", "all"])
def test_a_measured_increment_is_paid_in_full_beside_a_claim_of_places(
    explained: Sequence[int], tmp_path: Path
) -> None:
    """Its +.667 was averaged with the 0 that `turn_baseline` gives to any choice, and unexplained went below 0."""
    path = siblings(tmp_path / "x.jsonl")
    reward = np.array([1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    measured = [reward[t] - np.delete(reward[t // 4 * 4 :][:4], t % 4).mean() for t in range(8)]
    others = reward[4:].mean(), reward[:4].mean()  # siblings share what came before, so each fan-out has the other
    for methods in ([], ["-m", "rloo,c3,turn_baseline"]):
        for t in explained:
            told = json.loads(run("explain", path, f"t{t}", "e1", *methods, "--json").stdout)
            np.testing.assert_allclose([told["entry"], told["others"]], [measured[t], 0], atol=1e-6)
            assert told["expected"] == others[t // 4]
            np.testing.assert_allclose(told["unexplained"], reward[t] - others[t // 4] - measured[t], atol=1e-6)
    assert "'turn_baseline' values a place in the trace" in run("audit", path, "-m", "c3,turn_baseline").stdout
    alone = json.loads(run("compose", path, "-m", "turn_baseline", "-o", tmp_path / "x.csv", "--json").stdout)
    assert alone["took_part"] == ["turn_baseline"]


def test_without_outcomes_there_is_nothing_to_compose(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("trace,group\na,q\n")
    for call in (["compose", path, "-o", tmp_path / "y.csv"], ["compare", path], ["audit", path]):
        result = run(*call, "--columns", "trace=trace,group=group")
        assert result.exit_code == 1 and "error: no trace has an outcome" in result.stderr, result.output


CONTROL = ["compose", "LOG", "--methods", "gae", "-o", "x.csv", "--advantages-to", "y.csv", "--advantage", "control"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (["compose", "LOG", "--methods", "rloo"], "Missing option '--output'"),
        (["compose", "LOG", "-o", "x.csv", "--option", "gae.x=1"], "expected METHOD.KEY=VALUE with METHOD among --met"),
        (["compose", "LOG", "--methods", "rloo", "-o", "nowhere/x.csv"], "folder 'nowhere' does not exist"),
        (["compose", "LOG", "--methods", "rloo", "-o", "x.csv", "--advantage", "entry"], "need each other"),
        (["compose", "LOG", "--methods", "rloo", "-o", "x.csv", "--scale", "dr_mas"], "expected --advantage with them"),
        (["compose", "LOG", "--methods", "rloo", "-o", "x.csv", "--tau", "-1"], "'-1'; expected inf, fit, or a number"),
        (["compose", "LOG", "--methods", "rloo", "-o", "x.csv", "--tau", "0"], "--tau is of --rule reconcile"),
        (["audit", "LOG", "--methods", "rloo", "--unclaimed", "1"], "--unclaimed is of --rule reconcile; it is inc"),
        (
            ["explain", "LOG", "t111", "c0", "--rule", "shares", "--exact", "rloo"],
            "--exact is of --rule increments and",
        ),
        (["compose", "LOG", "--methods", "rloo", "-o", "x.csv", "--step", "5"], "expected --channel with it"),
        ([*CONTROL, "--decided-before", "gea"], "--decided-before names 'gea'; expected one of --methods"),
        ([*CONTROL[:-1], "entry", "--decided-before", "gae"], "--decided-before applies to --advantage control"),
        (["explain", "LOG", "t111", "--methods", "rloo"], "expected PATH... TRACE EVENT"),
        (["explain", "LOG", "t9", "c0", "--methods", "rloo"], "No trace 't9'. There are 8"),
        (
            ["explain", "LOG", "t111", "x", "--methods", "rloo"],
            "event is 'x'; expected the id of an event of",
        ),
        (["audit", "LOG", "--methods", "rloo", "--level", "trace"], "expected --output FILE with it"),
        (["audit", "LOG", "--methods", "c3"], "needs evidence that the log does not have. 'context'"),
    ],
)
def test_wrong_calls_are_named(tmp_path: Path, call: list[str], message: str) -> None:
    path = log(tmp_path / "x.jsonl")
    result = run(*(path if word == "LOG" else word for word in call))
    assert result.exit_code == 1 and message in result.stderr, result.output


def test_expected_by_value_names_the_trace_that_lacks_it(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(log(path).read_text().replace('"value": 0.2, ', "", 1))
    result = run("audit", path, "--methods", "rloo", "--expected", "value")
    assert result.exit_code == 1 and "the first action of trace 't000' does not have" in result.stderr


def test_a_claim_of_turn_baseline_is_told_by_the_values_that_it_rests_on(tmp_path: Path) -> None:
    """At a last action "minus the part of the next action" explained −1 where the method's own number is −1/3."""
    lines = []
    for name, turns, outcome in (("a", 1, 1.0), ("b", 2, 1.0), ("c", 2, 0.0), ("d", 1, 0.0)):
        events = [{"id": f"e{k}", "t": k, "type": "message", "agent": "xy"[k]} for k in range(turns)]
        edges = [{"src": "e0", "dst": "e1", "type": "causal"}] * (turns - 1)
        lines.append({"trace_id": name, "task_id": "q", "events": events, "edges": edges, "rewards": {"team": outcome}})
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    traces = credit.read(tmp_path / "x.jsonl")
    claims = {name: credit.run(traces, name) for name in ("rloo", "turn_baseline")}
    ledger = compose_claims(traces, claims)
    # V of a turn: the mean of what other traces that play it earned from there on; V_0 of a, b and d, V_1 of b alone
    for event, increment in (("e0", 1 - 2 / 3), ("e1", 0 - 1.0)):
        receipt = explain(traces, "c", event, claims, ledger=ledger)
        (line,) = [line for line in receipt.lines if line.claim == "turn_baseline"]
        assert line.increment == pytest.approx(increment, abs=1e-6)
        assert "against what other traces that still play earned from there on" in line.why


def test_a_claim_without_errors_takes_no_part_where_they_weigh(tmp_path: Path) -> None:
    """`gae` took part, held the luck and was refused on all its events, in one summary."""
    path = log(tmp_path / "x.jsonl")
    by_errors = ["--rule", "reconcile", "--tau", "0", "--unclaimed", "0.3", "--json"]
    done = run("compose", path, "-m", "rloo,gae", *by_errors, "-o", tmp_path / "x.csv")
    told = json.loads(done.stdout)
    assert list(told["refused"]) == ["gae"] and told["totals"] == ["rloo"]
    assert (told["took_part"], told["holding_luck"]) == ([], "") and "took part" not in done.stderr
    assert "no entries of rloo, which declares the total of a trace: " in done.stderr
    audited = run("audit", path, "-m", "rloo,gae").stdout
    assert "estimates a total and cannot be a claim on increments: that is an amount to divide" in audited
