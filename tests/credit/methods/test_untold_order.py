"""What a native log leaves to the order of its list: which of several agents acted first."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import credit
from credit.bias_in_log import on_log
from credit.cli import cli
from credit.untold_order import untold_traces
from graphs.errors import MissingColumnWarning

SAID = "2 traces no edges tell which of several agents acted first, and the order of the list, maybe that in which they"


def logged(folder: Path, agents: str, *edges: str, **more: Any) -> Path:
    """Two traces of messages by these agents, "-" the result of the tool of the agent before; edges such as "01"."""
    events: list[dict[str, Any]] = []
    for k, agent in enumerate(agents):
        kind = {"type": "tool_result", "agent": agents[k - 1]} if agent == "-" else {"type": "message", "agent": agent}
        events.append({"id": str(k), "t": k, **kind, **{name: values[k] for name, values in more.items()}})
    stated = [{"src": src, "dst": dst, "type": "causal"} for src, dst in edges]
    traces = [
        {"trace_id": f"t{i}", "task_id": "q", "events": events, "edges": stated, "rewards": {"team": i}} for i in (0, 1)
    ]
    path = folder / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, traces)) + "\n")
    return path


@pytest.mark.parametrize(
    ("agents", "edges", "more", "untold"),
    [
        ("aaa", (), {}, 0),
        ("aba", (), {}, 2),
        ("aba", ("01",), {}, 2),
        ("aba", ("01", "12"), {}, 0),
        ("abc", ("01", "02"), {}, 2),
        ("abc", ("01", "12"), {}, 0),
        ("abca", ("01", "02", "13", "23"), {}, 2),
        ("a-b", ("12",), {}, 0),  # a result after the call of its agent
        ("ab-a", ("01", "23"), {}, 0),
        ("ab", (), {"context": ["c", "c"]}, 0),
        ("ab", (), {"context": ["c", "d"]}, 2),
        ("ab", (), {"turn": [0, 0]}, 2),
    ],
)
def test_edges_and_contexts_tell_who_was_first(
    agents: str, edges: tuple[str, ...], more: dict[str, Any], untold: int, tmp_path: Path
) -> None:
    traces = credit.read(logged(tmp_path, agents, *edges, **more))
    assert untold_traces(traces, credit.METHODS["turn_baseline"], {}, ()) == untold
    assert untold_traces(traces, credit.METHODS["rloo"], {"by": "task,step"}, ()) == untold
    assert not untold_traces(traces, credit.METHODS["rloo"], {"by": "task,turn"}, ())  # numbered within agents
    assert not untold_traces(traces, credit.METHODS["discounted_return"], {}, ())
    assert untold_traces(traces, credit.METHODS["discounted_return"], {}, ["event_reward"]) == untold


@pytest.mark.slow
@pytest.mark.parametrize("edges", [(), ("01", "12", "23")])
def test_choose_and_assign_say_what_follows(edges: tuple[str, ...], tmp_path: Path) -> None:
    """`choose` had "no bias" of turn_baseline, and `assign` took the order of the list without a word."""
    path = str(logged(tmp_path, "abab", *edges))
    for method, more, reads in (
        ("turn_baseline", [], True),
        ("rloo", ["--by", "task,step"], True),
        ("rloo", [], False),
    ):
        done = CliRunner().invoke(cli, ["assign", path, "--method", method, *more, "-o", str(tmp_path / "x.csv")])
        assert done.exit_code == 0, done.output
        assert (f"{method} reads the order of agents, and in {SAID}" in done.stderr) == (reads and not edges)
        options = {"by": more[1]} if more else {}
        warned = pytest.warns(MissingColumnWarning, match=SAID) if reads and not edges else contextlib.nullcontext()
        with warned:  # `run` took it without a word, which `assign` said
            credit.run(credit.read(path), method, **options)
    (branch,) = (branch for branch in credit.choose(credit.read(path)).branches if branch.method == "turn_baseline")
    assert (branch.unbiased, SAID in branch.but) == ((True, False) if edges else (None, True))
    assert ("may be biased" in branch.why) == (not edges)


@pytest.mark.parametrize(
    ("times", "context", "method", "reads"),
    [
        ("0011", False, "turn_baseline", True),
        ("0123", False, "turn_baseline", False),
        ("0011", True, "turn_baseline", False),
        ("0011", False, "gae", True),
        ("0011", False, "rloo", False),
        ("0111", False, "discounted_return", True),
    ],
)
def test_rows_of_a_table_at_one_time_tell_no_order(
    times: str, context: bool, method: str, reads: bool, tmp_path: Path
) -> None:
    """Two workers' rows at one time stood in the order in which they ended, and `assign` took it without a word."""
    path = tmp_path / "rows.csv"
    rows = [
        f"{trace},q,{'ab'[k % 2]},{time},{r},0.5,0,{f'{trace}{time}' * context}"
        for r, trace in enumerate("xy")
        for k, time in enumerate(times)
    ]
    path.write_text("trace,group,agent,time,reward,value,event_reward,context\n" + "\n".join(rows) + "\n")
    done = CliRunner().invoke(cli, ["assign", str(path), "-m", method, "-o", str(tmp_path / "out.csv")])
    said = f"{method} reads the order of agents, and in 2 traces several actions have one time or overlap"
    (line,) = [line for line in done.stderr.splitlines() if said in line] or [""]
    assert bool(line) == reads
    assert line.startswith("  the policy gradient may be biased: ") == (reads and method != "gae")
    if method == "turn_baseline":
        assert on_log(credit.read(path), method).unbiased is (None if reads else True)


@pytest.mark.parametrize(
    ("rows", "has_turn", "said"),
    [
        ("xa0 xa1 xb0 xb1 ya0 ya1 yb0 yb1 zb0", True, "in 2 traces neither a time nor a turn"),
        ("xa0 xb0 xa1 xb1 ya0 yb0 ya1 yb1 zb0", True, ""),  # agents interleave, and the rows of a trace stand together
        ("xa0 xa1 xb2 xb3 ya0 ya1 yb2 yb3 zb0", True, ""),  # numbered along the trace
        ("xa0 xa3 xb1 xb2 ya0 ya1 yb2 yb3 zb0", True, ""),  # so are these, which were put in order
        ("xa0 xa1 ya0 ya1 zb0", True, ""),
        ("xa0 xb0 xa1 xb1 ya0 yb0 ya1 yb1 zb0", False, ""),
        ("xa0 ya0 zb0 xb0 yb0 xa1 ya1 xb1", False, ""),  # round by round
        ("xa0 ya0 xb0 yb0 xa1 zb0 yb1 zb1 ya1", False, "in 3 traces rows are scattered over the file"),
        ("xap yap xbq ybq xaq zap ybq zbp yaq", True, "in 3 traces rows are scattered over the file"),
    ],
)
def test_rows_sorted_by_agent_or_shuffled_tell_no_order(rows: str, has_turn: bool, said: str, tmp_path: Path) -> None:
    """Sorted by agent 96 % of the rows of turn_baseline were wrong without a word, shuffled 75 % of gae."""
    lines = [f"{row[0]},q,{row[1]},{'xyz'.index(row[0])},0.5,0" + f",{row[2]}" * has_turn for row in rows.split()]
    path = tmp_path / "rows.csv"
    path.write_text("trace,group,agent,reward,value,event_reward" + ",turn" * has_turn + "\n" + "\n".join(lines) + "\n")
    for method, reads in (("turn_baseline", True), ("gae", True), ("mt_grpo", True), ("rloo", False)):
        done = CliRunner().invoke(cli, ["assign", str(path), "-m", method, "-o", str(tmp_path / "out.csv")])
        assert done.exit_code == 0, done.output
        found = [line for line in done.stderr.splitlines() if f"{method} reads the order of " in line]
        assert [said in line for line in found] == [True] * bool(reads and said)
    known = on_log(credit.read(path), "turn_baseline")
    assert (known.unbiased, said in known.but) == (None if said else True, True)


@pytest.mark.parametrize(
    ("agents", "traces", "told"),
    [("aabb", 8, False), ("aabb", 7, True), ("abab", 8, True), ("aab", 12, True), ("aabbc", 8, False)],
)
def test_tables_without_turns_that_stand_by_agent_tell_no_order(
    agents: str, traces: int, told: bool, tmp_path: Path
) -> None:
    """Sorted by agent, gae and discounted_return said nothing: few traces, or one agent's rows, may be so by chance."""
    path = tmp_path / "rows.csv"
    rows = [f"t{trace},q,{agent},{trace % 2},0.5,{at}" for trace in range(traces) for at, agent in enumerate(agents)]
    rows += ["u,q,a,0,0.5,0", "u,q,b,0,0.5,0", "u,q,a,0,0.5,0"]  # one that was handed back
    path.write_text("trace,group,agent,reward,value,event_reward\n" + "\n".join(rows) + "\n")
    found = [(problem.kind, problem.field, problem.count) for problem in credit.read(path).problems]
    assert found == [("turns-by-agent", "agent", traces)] * (not told)
    for method in ("gae", "discounted_return", "rloo"):
        done = CliRunner().invoke(cli, ["assign", str(path), "-m", method, "-o", str(tmp_path / "out.csv")])
        said = f"{method} reads the order of agents, and in {traces} traces neither a time nor a turn"
        assert (said in done.stderr) == (not told and method != "rloo"), done.stderr


def test_times_that_rise_between_agents_tell_their_order(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    rows = [
        f"{trace},{agent},{turn},{time},1"
        for trace in "xy"
        for agent, turn, time in zip("aabb", "0101", "0022", strict=True)
    ]
    path.write_text("trace,agent,turn,time,reward\n" + "\n".join(rows) + "\n")
    assert not credit.read(path).problems


def test_one_context_in_a_round_tells_that_agents_act_at_once(tmp_path: Path) -> None:
    """A column that ends early, too."""
    for context, told in (("c", True), ("", False)):
        rows = [f"{trace},{agent},0,1,{trace + context if context else ''}" for trace in "xy" for agent in "ab"]
        path = tmp_path / f"rows{context}.csv"
        path.write_text("trace,agent,turn,reward,context\n" + "\n".join([*rows, "z,a,0,1,"]) + "\n")
        assert [problem.kind for problem in credit.read(path).problems] == ["turns-by-agent"] * (not told)


@pytest.mark.parametrize("told", [True, False])
def test_the_advice_of_a_survey_says_where_the_log_leaves_a_bias_open(told: bool, tmp_path: Path) -> None:
    """A row said that turn_baseline "has no bias" beside a note that nothing tells which agent acted first."""
    rows = [
        f"t{trace},q,{agent},{turn},{trace % 2},{trace / 8}"
        for trace in range(8)
        for agent, turn in zip("aabb", "0123" if told else "0101", strict=True)
    ]
    path = tmp_path / "rows.csv"
    path.write_text("trace,group,agent,turn,reward,event_reward\n" + "\n".join(rows) + "\n")
    traces = credit.read(path)
    known = on_log(traces, "turn_baseline")
    assert known.unbiased is (True if told else None)
    (of_steps,) = [question for question in credit.choose(traces).questions if question.name == "intermediate verifier"]
    assert of_steps.answer
    assert (f"on these logs turn_baseline may be biased: {known.but}" in of_steps.evidence) == (not told)
