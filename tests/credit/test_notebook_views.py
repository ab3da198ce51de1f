"""What notebooks show of traces, credit and ledgers: their numbers, and no text of a log that could run."""

from __future__ import annotations

import re

import jax
import numpy as np
import pytest

import credit
from credit.tables.batch_rows import Rows
from graphs.traces.batch import Traces

HOSTILE = "<script>alert(1)</script>\u202e"


@pytest.fixture(scope="module")
def rows() -> Rows:
    names = [HOSTILE, "b", "c", "d", "e", "f", "g"]
    _, _, rows = credit.from_columns(group=["<b>q"] * 7, trace=names, reward=[1.0, 0, 0, 0, 0, 0, 0.5])
    return rows


def cells(html: str) -> list[str]:
    return re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", html)


def test_traces(rows: Rows) -> None:
    html = rows.traces._repr_html_()
    shown = cells(html)
    assert shown[shown.index("traces") + 1] == "7" and shown[shown.index("groups") + 1] == "1"
    assert "&lt;script&gt;" in html and "<script" not in html and "<b>" not in html and "\u202e" not in html
    assert "and 2 more" in html


def test_credit(rows: Rows) -> None:
    result = credit.rloo(rows.traces.graph, rows.traces.reward)
    shown = cells(result._repr_html_())
    assert shown[shown.index("source") + 1] == result.source
    advantage = rows.gather(result.advantage)
    assert float(shown[shown.index("advantage, most") + 1]) == pytest.approx(float(advantage.max()), rel=1e-3)
    alone = credit.rloo(*credit.from_columns(group=["q"], trace=["t"], reward=[1.0])[:2])
    shown = cells(alone._repr_html_())
    assert "nothing to compare with: the group has one member" in shown and "advantage, most" not in shown


def test_credit_in_a_line(rows: Rows) -> None:
    graph, reward = rows.traces.graph, rows.traces.reward
    result = credit.rloo(graph, reward)
    numbers = "7 events with a number, advantages -0.25 to 0.9167"
    assert repr(result) == f"Credit('rloo', unit 'trace', estimand 'total', {numbers})"
    alone = credit.rloo(*credit.from_columns(group=["q"], trace=["t"], reward=[1.0])[:2])
    assert repr(alone).endswith("0 events with a number)")
    seen = []
    jax.jit(lambda x: seen.append(repr(credit.rloo(graph, x))) or x)(reward)
    seen.append(repr(jax.tree.map(lambda x: None, result)))
    assert all(line.endswith("not computed yet)") for line in seen) and len(seen) == 2


@pytest.mark.slow
def test_a_ledger_shows_parts_that_add_up(rows: Rows) -> None:
    traces: Traces = rows.traces
    amount = np.where(traces.graph.action_mask, np.float32(0.25), np.nan)
    claim = credit.claim(traces.graph, amount, estimand="increment", source="critic")
    shown = cells(credit.compose(traces.graph, traces.reward, [claim])._repr_html_())
    cells_of_rows = shown[shown.index("sum over traces") + 1 :]
    part = {name: float(value) for name, value in zip(cells_of_rows[::2], cells_of_rows[1::2], strict=True)}
    assert part["reward"] == 1.5
    assert part["reward"] == pytest.approx(sum(part.values()) - part["reward"], abs=2e-3)
