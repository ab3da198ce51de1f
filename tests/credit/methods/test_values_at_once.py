"""`credit assign` says where agents act at once and the order of their rows moves the numbers."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import credit
from credit.cli import cli
from credit.integrations import MissingColumnWarning, RowAdvantages

ROWS = [
    {"trace": trace, "group": "q", "agent": agent, "reward": reward, "value": value, "context": f"{trace}/{step}"}
    for trace, reward in (("a", 1.0), ("b", 0.0))
    for agent, step, value in (("lead", 0, 0.2), ("one", 1, 0.3), ("two", 1, 0.3), ("one", 2, 0.5), ("two", 3, 0.4))
]


@pytest.mark.parametrize(
    ("method", "options", "named"),
    [("turn_baseline", [], False), ("gae", [], True), ("gae", ["lambda_=1"], False),
     ("discounted_return", ["discount=0.5"], True), ("rloo", [], False),
     *(pytest.param(*more, marks=pytest.mark.slow) for more in (
         ("critic", [], False), ("gae", ["along=agent"], False), ("gae", ["lambda_=1", "discount=0.5"], True),
         ("discounted_return", [], False), ("igrpo", [], True)))],
)  # fmt: skip
def test_rounds_in_which_values_beside_one_another_are_compared_are_counted(
    method: str, options: list[str], named: bool, tmp_path: Path
) -> None:
    """`RowAdvantages` said it of the same rows, and `credit assign` nothing."""
    for drop, rounds in ((set[str](), "2 rounds"), ({"context"}, None)):
        path = tmp_path / "rows.parquet"
        rows = [{name: cell for name, cell in row.items() if name not in drop} for row in ROWS]
        pq.write_table(pa.Table.from_pylist(rows), path)
        words = [word for option in options for word in ("--option", option)]
        arguments = ["assign", str(path), "--method", method, *words, "-o", str(tmp_path / "out.parquet")]
        found = CliRunner().invoke(cli, arguments)
        assert found.exit_code == 0, found.output
        said = f"look: {method} reads which action comes next, and in {rounds} several agents act at once"
        assert (said in " ".join(found.output.split())) == (named and rounds is not None)


@pytest.mark.parametrize("kind", ["table", "native", "columns"])
@pytest.mark.parametrize(
    ("names", "said"), [("ab", "several agents act at once"), ("aa", "an agent acts twice at once"), ("a-", "")]
)
def test_two_agents_of_one_name_in_a_context_are_named(names: str, said: str, kind: str, tmp_path: Path) -> None:
    """The second of two coders of one name got all that both brought, without a word; "-" is a tool that it calls."""
    rows: list[dict[str, Any]] = [
        {"trace": trace, "group": "q", "agent": agent.replace("-", "a"), "reward": trace / 2, "value": value,
         "context": f"{trace}/{step}" if step == 1 else None, "type": "tool_call" if agent == "-" else "message"}
        for trace in range(3)
        for agent, step, value in (("lead", 0, 0.2), (names[0], 1, 0.3), (names[1], 1, 0.4), ("end", 2, 0.5))
    ]  # fmt: skip
    for method, is_read in (("critic", said != "several agents act at once"), ("gae", True), ("turn_baseline", False)):
        if kind == "columns":
            columns = {name: [row[name] for row in rows] for name in ("group", "trace", "agent", "reward")}
            evidence = {name: [row[name] for row in rows] for name in ("value", "context")}
            traces: Any = credit.from_columns(**columns, event_type=[row["type"] for row in rows], evidence=evidence)[2]
        elif kind == "table":
            path = tmp_path / "rows.parquet"
            pq.write_table(pa.Table.from_pylist(rows), path)
            traces = credit.read(path)
        else:
            path = tmp_path / "log.jsonl"
            events = [{name: row[name] for name in ("type", "agent", "value", "context") if row[name]} for row in rows]
            lines = [{"trace_id": str(trace), "task_id": "q", "rewards": {"team": trace / 2}, "edges": [],
                      "events": [event | {"id": str(k)} for k, event in enumerate(events[4 * trace : 4 * trace + 4])]}
                     for trace in range(3)]  # fmt: skip
            path.write_text("\n".join(map(json.dumps, lines)) + "\n")
            traces = credit.read(path)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            credit.run(traces, method)
        words = f"{method} reads which action comes next, and in 3 rounds {said}"
        assert any(words in str(one.message) for one in found) == bool(said and is_read)
        if kind != "columns":
            noted = [(note.value, note.count) for note in traces.problems if note.kind == "agent-twice"]
            assert noted == [("'a' twice in one context", 3)] * (names == "aa")


def test_rows_say_so_too() -> None:
    """`condition/ordered` was 1: agents at once of two names make it 0."""
    columns = {"group": ["q"] * 6, "trace": [*"ttuuvv"], "agent": ["coder"] * 6, "reward": [1.0, 1, 0, 0, 0, 0]}
    evidence = {"value": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], "context": [*"ttuuvv"]}
    with pytest.warns(MissingColumnWarning, match="3 rounds an agent acts twice at once: a row was copied, or agents"):
        metrics = RowAdvantages("critic")(**columns, evidence=evidence).metrics
    assert metrics["credit/condition/ordered"] == 0
