"""What `credit show` prints: the right numbers, and no text of a log that acts instead of being seen."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from credit.reports.trace_text import MOST_AGENTS, render
from graphs.errors import CreditError
from graphs.event_graph import EdgeType, EventType
from graphs.text import printable
from graphs.traces.assembling import assemble
from graphs.traces.batch import Traces
from graphs.traces.record import Agent, TraceRecord

HOSTILE = {
    "markup": "[red]x[/red] [link=file:///etc/passwd]y[/link]",
    "broken markup": "[/not-open]",
    "colour": "\x1b[31mred\x1b[0m",
    "title": "\x1b]0;owned\x07",
    "clear": "\x1b[2J\x9b2J",
    "lines": "a\nb\r\nc\u2028d\x85e",
    "tab and bell": "a\tb\a\b\b",
    "bidi": "abc\u202egnp.exe\u2066",
    "invisible": "pay\u200bpal\ufeff",
    "surrogate": "\udc80",
    "emoji code": ":bomb:",
}
ROOT = Path(__file__).resolve().parents[3]


def printed(traces: Traces, trace: int | str = 0, *, terminal: bool = False, width: int = 500, **options: int) -> str:
    out = io.StringIO()
    console = Console(
        file=out, width=width, force_terminal=terminal, color_system="truecolor" if terminal else None, emoji=False
    )
    console.print(render(traces, trace, **options))
    return out.getvalue()


def line_of(text: str, begins: str) -> str:
    return next(line for line in text.splitlines() if line.startswith(begins))


def team() -> TraceRecord:
    """A lead spawns two searchers, who work at once; it then stops."""
    record = TraceRecord("run 1", "task 7", "logs/a.jsonl", line=12, format="native", topology="swarm")
    record.instances = {
        "lead": Agent(role="planner"),
        "s1": Agent("s", "search", "lead"),
        "s2": Agent("s", "search", "lead"),
    }

    def add(name: str, agent: str, kind: EventType, *causes: int, tokens: int | None = None) -> int:
        position = record.event(name, kind, agent, action=kind != EventType.RETURN, tokens=tokens)
        for cause in causes:
            record.edge(cause, position, EdgeType.CAUSAL)
        return position

    plan = add("plan", "lead", EventType.ORCHESTRATOR_DECISION, tokens=10)
    ends = []
    for name in ("s1", "s2"):
        first = add(f"{name}a", name, EventType.MESSAGE, plan, tokens=3)
        ends.append(
            add(f"{name}r", name, EventType.RETURN, add(f"{name}b", name, EventType.TOOL_CALL, first, tokens=4))
        )
    add("done", "lead", EventType.STOP, plan, *ends)
    record.rewards = {"team": 0.5, "format": -1.0}
    return record


# --- content ----------------------------------------------------------------------------------------------------------


def test_a_group_is_not_shown_as_the_task() -> None:
    """`task  task 7 [small]` named the group: no table of tasks has such a row."""
    both = [msgspec.structs.replace(team(), trace_id=model, model=model) for model in ("small", "big")]
    text = printed(assemble(both))
    assert line_of(text, "task").split(maxsplit=1)[1].strip() == "task 7"
    assert line_of(text, "group").split(maxsplit=1)[1].strip() == "task 7 [small]"


def test_the_header_tells_where_the_trace_came_from() -> None:
    text = printed(assemble([team()]))
    assert line_of(text, "trace").split(maxsplit=1)[1].strip() == "run 1"
    assert line_of(text, "task").split(maxsplit=1)[1].strip() == "task 7" and "group" not in text
    assert "logs/a.jsonl:12 [native]" in line_of(text, "file")
    assert line_of(text, "reward").split() == ["reward", "0.5"]
    assert "team 0.5, format -1" in line_of(text, "channels")
    assert "swarm (declared: swarm)" in line_of(text, "topology")


def test_agents_are_listed_with_what_they_did() -> None:
    text = printed(assemble([team()]))
    assert line_of(text, "lead").split() == ["lead", "lead", "planner", "2", "2", "–", "10"]
    assert line_of(text, "s2").split() == ["s2", "s", "search", "lead", "3", "2", "–", "7"]
    assert "└── lead planner" in text
    assert "    ├── s1 search" in text


def test_events_are_of_agents_by_name_and_id() -> None:
    """A sub-agent's event was `c4a8a1f message`, while other tables call it Explore."""
    assert line_of(printed(assemble([team()]), first=3), "1  s1a").split()[:4] == ["1", "s1a", "s", "s1"]


@pytest.mark.parametrize("width", [120, 100])
def test_numbers_of_events_are_whole_where_texts_are_cut(width: int) -> None:
    """From 10 on they read "…", at 120 columns; `--number` wants them."""
    record = TraceRecord("t", "q", "log.jsonl", instances={"an agent of a long name": Agent()}, model="m")
    for i in range(12):
        told = {"tool": "a tool of a long name", "status": "error", "model": f"a model of a long name {i}"}
        where = record.event(f"an event of a long name {i}", EventType.ORCHESTRATOR_DECISION, "an agent of a long name",
                             action=True, tokens=12345, **told)  # fmt: skip
        if where:
            record.edge(where - 1, where, EdgeType.TOOL_DEPENDENCY)
    lines = printed(assemble([record]), width=width, first=12).splitlines()
    rows = [line.split() for line in lines if re.match(r" *\d+  ", line)]
    assert [int(row[0]) for row in rows] == [*range(12)]
    assert all("yes" in row and "error" in row and "12345" in row for row in rows)


def test_events_show_their_causes() -> None:
    text = printed(assemble([team()]), first=2, last=1)
    assert line_of(text, "7  done").split() == ["7", "done", "lead", "stop", "yes", "0", "causal", "+2"]
    whole = printed(assemble([team()]), first=2, last=1, limit=400)
    assert line_of(whole, "7  done").split() == [
        "7",
        "done",
        "lead",
        "stop",
        "yes",
        "0",
        "causal,",
        "3",
        "causal,",
        "6",
        "causal",
    ]
    assert "s1b" not in text.split("critical path")[0]
    assert "…" in text
    assert line_of(text, "message").split() == ["message", "2", "2"]


def test_structure_is_that_of_the_trace_alone() -> None:
    records = [team(), team()]
    records[0].trace_id = "run 0"
    text = printed(assemble(records), "run 1")
    assert "4 of 6 actions, over 5 events" in line_of(text, "critical path")
    told = "1.50 on average; by the edges, at most 2 actions and 2 agents could be at once"
    assert told in line_of(text, "parallelism")
    assert "4 in 2 derived stages" in line_of(text, "critical steps")


def test_searchers_that_worked_one_after_the_other_have_no_parallelism() -> None:
    record = team()
    record.times = [float(i) for i in range(8)]
    assert "1, as by their times no two actions ran at once; by the edges" in line_of(
        printed(assemble([record])), "paral"
    )


def test_stated_stages_are_used() -> None:
    record = team()
    record.columns["stage"] = [0, 1, 1, 1, 2, 2, 2, 3]
    assert "6 in 4 stated stages" in printed(assemble([record]))
    record.columns["stage"][0] = None
    assert "not defined" in line_of(printed(assemble([record])), "critical steps")


def test_a_trace_without_a_reward_says_so() -> None:
    record = team()
    record.rewards = {}
    assert "none in the log" in printed(assemble([record]))


def test_large_teams_are_cut() -> None:
    record = TraceRecord("t", "g", "f", instances={"lead": Agent()})
    record.instances |= {f"w{i}": Agent(parent="lead") for i in range(300)}
    record.event("e", EventType.MESSAGE, "lead", action=True)
    text = printed(assemble([record]))
    assert f"… and {301 - MOST_AGENTS} more" in text
    assert f"└── … {301 - MOST_AGENTS} more" in text
    assert len(text.splitlines()) < 4 * MOST_AGENTS


def test_a_trace_that_is_not_there_is_refused() -> None:
    traces = assemble([team()])
    for wrong in ("nobody", 1, -1):
        with pytest.raises(CreditError, match=r"trace is|No trace"):
            render(traces, wrong)


# --- safety -----------------------------------------------------------------------------------------------------------


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("kind", [kind for kind in HOSTILE if kind != "surrogate"])
def test_hostile_names_come_out_harmless(kind: str) -> None:
    name = HOSTILE[kind]
    record = TraceRecord(name, name, name, line=1, format=name, topology=name, system=name)
    record.instances = {name: Agent(name, f"{name} role"), "b": Agent(name, name, name)}
    record.event(name, EventType.MESSAGE, name, action=True)
    record.event(f"{name}2", EventType.STOP, "b", action=True)
    record.edge(0, 1, EdgeType.CAUSAL)
    record.rewards = {"team": 1.0, name: 2.0}
    traces = assemble([record])
    plain, styled = printed(traces), printed(traces, terminal=True)
    allowed = re.compile(r"\x1b\[[0-9;]*m")  # the colours that the view itself uses
    for text in (plain, allowed.sub("", styled)):
        assert not [c for c in text if c != "\n" and unicodedata.category(c) in {"Cc", "Cf", "Zl", "Zp", "Co", "Cs"}]
    assert "\x1b[31m" not in styled and "\x1b]8" not in styled  # neither red nor a link
    assert line_of(plain, "trace").split(maxsplit=1)[1].strip() == printable(name).strip()
    lines = {len(printed(t).splitlines()) for t in (traces, assemble([_harmless(record)]))}
    assert len(lines) == 1  # no name adds a line


def _harmless(record: TraceRecord) -> TraceRecord:
    """The same trace with letters for names."""
    other = TraceRecord("t" * 9, "g" * 9, "f", line=1, format="x", topology="y", system="z")
    other.instances = {"a": Agent("a", "a role"), "b": Agent("a", "a", "a")}
    other.event("e", EventType.MESSAGE, "a", action=True)
    other.event("e2", EventType.STOP, "b", action=True)
    other.edge(0, 1, EdgeType.CAUSAL)
    other.rewards = {"team": 1.0, "other": 2.0}
    return other


@pytest.mark.parametrize("name", HOSTILE)
def test_printable_leaves_one_line_of_visible_characters(name: str) -> None:
    shown = printable(HOSTILE[name])
    assert shown.isprintable()
    assert len(shown) == len(HOSTILE[name])  # each character stays one, so names that differ stay different


def test_printable_keeps_what_can_be_seen() -> None:
    for text in ("", "planner", "Übersetzer 翻译 مترجم 🤖", "[red] $x_1$ \\frac"):
        assert printable(text) == text
    assert printable("no\u00a0break") == "no break"


def test_printable_cuts() -> None:
    assert printable("abcdef", 4) == "abc…"
    assert printable("abcd", 4) == "abcd"
    assert printable("a\x1bcdef", 4) == "a\ufffdc…"


@pytest.mark.slow
def test_importing_the_view_loads_no_plotting() -> None:
    script = "import sys, credit.reports.trace_text; print('matplotlib' in sys.modules, 'networkx' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True)
    assert result.stdout.split() == ["False", "False"]
