"""Every published name leads to a function, or says why no log allows one and what can be used instead."""

from __future__ import annotations

import importlib
import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import credit
from credit.cli import cli
from credit.laws.trial_batches import regular
from credit.methods.published import PUBLISHED, find_method, key_of

SURVEY = """shared GRPO, MAGRPO, MAPoRL, MARFT, Dr. MAS, CoLLM-MAAC, LangMARL, MALT, MATPO, Puppeteer, Agent Q-Mix,
    M-GRPO, MarsRL, C3, SHARP, HERA, Kimi PARL, WideSeek-R1, Context-Folding, MARSHAL, DEPART, Agent Lightning,
    SPIRAL, RLOO, REINFORCE++, GiGPO, COMA, QMIX, VDN"""


@pytest.mark.parametrize("title", [" ".join(title.split()) for title in SURVEY.split(",")])
def test_every_method_of_the_survey_is_found_by_its_name(title: str) -> None:
    paper = PUBLISHED[key_of(title)]
    assert paper.note
    if paper.method is None:
        absent = "not computable" if paper.fitted else "not fitted"
        assert paper.status == ("reconstructed" if paper.function else absent) and paper.portable
        module, _, function = paper.function.rpartition(".")
        assert not paper.function or callable(getattr(importlib.import_module(module), function))
        reason = f"is {paper.kind}, not a method" if paper.function else f"{absent} from logs"
        with pytest.raises(credit.CreditError, match=f"{reason}.*what can be used"):
            find_method(title)
    else:
        assert paper.status in ("released", "reconstructed", "formula")
        method = find_method(title)
        assert method.needs == credit.METHODS[paper.method].needs
        assert set(paper.options) <= set(inspect.signature(credit.METHODS[paper.method].fn).parameters)


def test_names_of_papers_are_keys() -> None:
    assert [key_of(x) for x in ("Dr. MAS", "dr-mas", "REINFORCE++", " WideSeek-R1 ")] == [
        "dr_mas",
        "dr_mas",
        "reinforce_pp",
        "wideseek_r1",
    ]
    with pytest.raises(credit.CreditError, match=r"did you mean .*grpo"):
        find_method("gpro")
    assert find_method("OpenRLHF group norm") is credit.METHODS["openrlhf_group_norm"]


@pytest.mark.slow
def test_a_published_name_brings_its_options() -> None:
    batch = regular(0, {})
    shared = find_method("shared GRPO")(batch.graph, batch.reward)
    rows = find_method("Dr. MAS")(batch.graph, batch.reward)
    by_trace = np.asarray(shared.advantage)
    assert all(len(set(by_trace[batch.graph.trace_ids == t])) == 1 for t in range(batch.graph.num_traces))
    assert not np.array_equal(by_trace, rows.advantage)


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("name", [name for name, paper in PUBLISHED.items() if paper.method and paper.options])
def test_a_published_name_states_what_its_options_compute(name: str) -> None:
    """Turn-LOO was said to give traces their totals, and its rows get numbers of their own."""
    columns: dict[str, Any] = {"trace": list("aabbccdd"), "agent": ["x", "y"] * 4, "role": ["s", "v"] * 4}
    tree = {"context": [0, 1, 0, 2, 3, 4, 3, 5], "node": list(range(8))}  # what follows a draw is its own
    evidence = {"value": [0.5] * 8, **(tree if "context" in find_method(name).needs else {})}
    _, _, rows = credit.from_columns(group=[0] * 4 + [1] * 4, **columns, reward=[1.0, 1, 0, 0] * 2, evidence=evidence)
    found = credit.run(rows, name)
    assert (find_method(name).unit, find_method(name).estimand) == (found.unit, found.estimand)


def test_code_that_was_not_executed_is_no_released_number() -> None:
    """MHGPO has no code, and SPO's was read; all had the status of the method that computes them."""
    status = {name: PUBLISHED[name].status for name in ("turn_loo", "mhgpo", "vineppo", "spo_tree")}
    assert status == {"turn_loo": "released"} | dict.fromkeys(("mhgpo", "vineppo", "spo_tree"), "reconstructed")


@pytest.mark.slow
def test_the_piece_of_marsrl_compares_a_role_with_itself_by_its_own_checks(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows, lines = [], []
    for trace in range(6):
        events = []
        for k, role in enumerate(["solver", *["verifier", "corrector"] * int(rng.integers(0, 3)), "verifier"]):
            check = float(rng.integers(2))
            events.append({"id": f"e{k}", "t": k, "type": "message", "agent": f"{role} {k}", "role": role})
            events[-1] |= {"action": True, "event_reward": check}
            rows.append((trace // 3, role, check))
        content = {"trace_id": f"t{trace}", "task_id": f"q{trace // 3}", "events": events, "edges": []}
        content |= {"rewards": {"team": float(rng.normal())}, "costs": {"tokens": 1, "wall_clock_s": 1.0}}
        lines.append(json.dumps(content))
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(lines))
    traces = credit.read(path)
    checks = credit.ledger.channel(traces, "event_reward", family="role")
    found = credit.dr_mas(traces.graph, checks.outcome, event_reward=checks.event_reward, by="role_name")

    expected = []
    for task, role, check in rows:
        pool = [x for other, name, x in rows if (other, name) == (task, role)]
        expected.append((check - np.mean(pool)) / (np.std(pool, ddof=1) + 1e-6) if len(pool) > 1 else check)
    np.testing.assert_allclose(np.asarray(found.advantage)[: len(rows)], expected, atol=2e-6)
    assert PUBLISHED["marsrl"].status == "reconstructed"
    (tmp_path / "bare.jsonl").write_text("\n".join(lines).replace('"event_reward"', '"remark"'))
    with pytest.raises(credit.CreditError, match="channel is 'event_reward', which the log does not have"):
        credit.ledger.channel(credit.read(tmp_path / "bare.jsonl"), "event_reward", family="role")


def test_what_channels_compute_is_no_gap_and_mixers_are_not_fitted() -> None:
    """With a log, all eight were called "not computable", the four rewards also where channels compute them."""
    for name in ("marsrl", "sharp", "kimi_parl", "depart"):
        assert PUBLISHED[name].status == "reconstructed" and PUBLISHED[name].function.startswith("credit.ledger.")
    malt = PUBLISHED["malt"]
    assert malt.status == "reconstructed" and malt.needs == ("context", "node")
    for name in ("qmix", "vdn", "agent_q_mix"):
        assert PUBLISHED[name].status == "not fitted"


@pytest.mark.parametrize("tree", [False, True])
def test_logs_compute_malt_and_channels_where_they_have_their_evidence(tmp_path: Path, tree: bool) -> None:
    traces = []
    for i in range(2):
        event = {"id": "e", "type": "message", "agent": "a", "event_reward": float(i)}
        event |= {"context": "c", "node": f"n{i}", "counterfactual_reward": 0.5} if tree else {}
        traces.append({"trace_id": f"t{i}", "task_id": "q", "events": [event], "rewards": {"team": float(i)}})
    log = tmp_path / "x.jsonl"
    log.write_text("\n".join(map(json.dumps, traces)))
    shown = CliRunner().invoke(cli, ["methods", str(log), "--json"])
    assert shown.exit_code == 0, shown.output
    states = {name: answer["state"] for name, answer in json.loads(shown.stdout).items()}
    needing = "computable" if tree else "missing"
    assert (states["malt"], states["sharp"]) == (needing, needing)
    assert states["marsrl"] == states["depart"] == states["kimi_parl"] == "computable"
    assert states["qmix"] == states["vdn"] == states["agent_q_mix"] == "not fitted"
