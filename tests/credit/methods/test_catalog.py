"""The methods of two surveys: each row runs, has a way in, or says why not."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

import credit
from credit.cli import cli
from credit.methods.catalog import CATALOG
from credit.methods.published import find_method

OF_THE_FIRST = """OWL, CoMAS, ReMA, HALO, ParaManager, AgentSpawn, MAGIC, LAMO, SAGE, MAE, CollabUIAgents,
    Debate-as-Reward, Learning to Deliberate, MARTI-MARS2"""


def test_every_row_of_both_surveys_is_there_once() -> None:
    names = [row.name.partition(" (")[0] for row in CATALOG]
    assert names[-14:] == [" ".join(name.split()) for name in OF_THE_FIRST.split(",")]
    assert len(CATALOG) == 73 + 2 + 14  # two were added to the second survey's table after it was counted
    papers = [row.paper for row in CATALOG if row.paper]
    assert len(papers) == len(set(papers)) == len(CATALOG) - 1


@pytest.mark.parametrize("row", CATALOG, ids=lambda row: row.name)
def test_a_row_leads_to_a_method_or_says_why_not(row) -> None:
    if row.state == "not computable":
        assert row.note and not row.by
        return
    assert row.by or row.note
    if row.by:
        assert set(row.needs) == set(find_method(row.by).needs) and all(row.needs.values())
    if row.state == "runs":
        assert row.by
    if row.state == "needs" and row.by:
        assert row.needs


def test_the_command_prints_them() -> None:
    shown = CliRunner().invoke(cli, ["methods", "--catalog"])
    assert shown.exit_code == 0 and all(row.name.split()[0] in shown.stdout for row in CATALOG)
    rows = json.loads(CliRunner().invoke(cli, ["methods", "--catalog", "--json"]).stdout)
    assert rows[0]["needs"]["value"].startswith("add") and len(rows) == len(CATALOG)
    assert CliRunner().invoke(cli, ["methods", "--catalog", "x.jsonl"]).exit_code == 1


@pytest.mark.slow
def test_a_name_whose_code_is_not_the_papers_says_so() -> None:
    """IGPO led to a function that divides sums, without a word; of M-GRPO nothing but a review was read."""
    by_name = {row.name: row for row in CATALOG}
    assert by_name["IGPO"].by == "igrpo" and "`igpo`" in by_name["IGPO"].note
    graph, reward, rows = credit.from_columns(
        group=[0] * 6, trace=list("aabbcc"), reward=[1.0, 1, 0, 0, 0, 0], event_reward=[0.3, 0, -0.1, 0, 0.4, 0]
    )
    gains, outcomes = np.array([0.3, -0.1, 0.4]), np.array([1.0, 0, 0])
    z, last = ((x - x.mean()) / (x.std(ddof=1) + 1e-6) for x in (gains, outcomes))
    paper = np.stack([z + 0.95 * last, last], axis=1).ravel()  # each divided by its own spread, and then summed
    for name, same in (("igrpo", True), ("igpo", False)):
        result = find_method(name).fn(graph, reward, event_reward=rows.event_reward)
        assert np.allclose(rows.gather(result.advantage), paper, atol=1e-5) == same
    for name, said in (("IGPO", "not the paper's formula"), ("M-GRPO", "which was not read itself")):
        assert said in " ".join(CliRunner().invoke(cli, ["methods", name]).stdout.split())
