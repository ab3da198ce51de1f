"""What columns hold tells a type of rows, a system and a kind of task, whatever their names; nothing else passes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from graphs.logs import read

from .test_near_names import OWN, note, written

Column = list[Any]


def lures(draw: random.Random, of_row: list[int], is_call: list[bool], n: int) -> dict[str, Column]:
    """Columns that are neither, drawn anew: those of rows first, then those of traces."""
    rows = len(of_row)
    kinds = [
        [draw.choice(["stop", "tool_calls", "length"]) for _ in range(rows)],  # how a call ended
        ["tool_calls" if calls else "stop" for calls in is_call],
        [draw.choice(["assistant", "user", "tool"]) for _ in range(rows)],
        [draw.choice(["chat", "phone", "mail"]) for _ in range(rows)],
        [draw.choice(["chat-large", "llm-small"]) for _ in range(rows)],  # names of models
        [draw.choice(["search_tool", "sql_function"]) for _ in range(rows)],
        [draw.choice(["v1", "v2"]) for _ in range(rows)],
        [draw.randrange(5) for _ in range(rows)],
        [f"{draw.random():.3f}" for _ in range(rows)],
        [f"{draw.getrandbits(40):x}" for _ in range(rows)],
        [f"2026-11-{1 + trace * 14 // n:02d}" for trace in of_row],
        [draw.choice(["pass", "fail"]) for _ in range(rows)],  # of a step
        ["" if draw.random() < 0.1 else "v1.2.0" if 2 * trace < n else "v1.2.1" for trace in of_row],
    ]
    of_traces = [
        [draw.choice(["eu", "us", "asia"]) for _ in range(n)],
        [draw.choice(["v1.0", "v1.1"]) for _ in range(n)],  # side by side
        [draw.choice([0.0, 0.5, 1.0]) for _ in range(n)],
        [45 + 2 * trace // n for trace in range(n)],  # a week
        [f"v{trace}" for trace in range(n)],
        [draw.choice(["yes", "no"]) for _ in range(n)],
        [draw.choice(["pass", "fail", "unsure"]) for _ in range(n)],
        ["2.0.1"] * n,
        sorted(draw.choice([0.5, 1.0]) for _ in range(n)),
    ]
    kinds += [[column[trace] for trace in of_row] for column in of_traces]
    return {f"c{at}": column for at, column in enumerate(kinds)}


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_columns_of_neutral_names_are_proposed_by_what_they_say(tmp_path: Path, seed: int, ending: str) -> None:
    """`step` of llm and tool, and `release`, were "not read", and no pair named them."""
    draw = random.Random(seed)
    n = draw.randint(20, 40)
    of_row = [trace for trace in range(n) for _ in range(draw.randint(3, 6))]
    is_call = [at > 0 and of_row[at - 1] == trace and draw.random() < 0.5 for at, trace in enumerate(of_row)]
    columns, told = lures(draw, of_row, is_call, n), []
    if is_typed := draw.random() < 0.5:
        model, tool = draw.choice([("llm", "tool"), ("chat_completion", "function"), ("message", "tool_call")])
        columns["x0"] = [tool if calls else model for calls in is_call]
        told.append("type=x0")
    if draw.random() < 0.5:
        begins = draw.choice([("1.2.3", "1.3.0"), ("v7", "v8"), ("9f3c2ab", "b41e07d")])
        columns["x1"] = [begins[2 * trace // n] for trace in of_row]
        told.append("system=x1")
    if draw.random() < 0.5:
        good, bad = draw.choice([("pass", "fail"), ("Good", "bad")])
        verdicts = [good, bad, *(draw.choice([good, bad, ""]) for _ in range(n))]
        columns["x2"] = [verdicts[trace] for trace in of_row]
        told.append("rewards.x2=x2")
    ours = draw.choice(["tool", "status"])  # with tools' names, or without
    names = [*columns]
    draw.shuffle(names)
    rows = [
        {"run_id": f"r{trace}", "reward": trace % 2, ours: "ok" if is_call[at] else None}
        | {name: columns[name][at] for name in names}
        for at, trace in enumerate(of_row)
    ]
    said = note(read(written(tmp_path / f"log.{ending}", rows), columns=OWN)).expected
    types = f" with --types {model}=message,{tool}=tool_call" if is_typed and model != "message" else ""
    proposed = f", or {','.join(told)} in --columns{types}: the others" if told else ", or --columns: the others"
    assert proposed in said


@pytest.mark.parametrize(
    ("name", "cells", "option"),
    [
        ("release", [2026.44, 2026.44, 2026.45, 2026.45], "system=release"), ("build", [1, 2, 3, 4], ""),
        ("app_version", ["a", "b", "b", "a"], "system=app_version"), ("version", ["a", "a", "a", "a"], ""),
        ("request_kind", ["refund", "bug", "bug", "refund"], "task_kind=request_kind"),
        ("request_kind", ["1", "2", "2", "1"], ""), ("note", ["refund", "bug", "bug", "refund"], ""),
    ],
)  # fmt: skip
def test_a_name_proposes_what_stands_once_in_each_of_several_traces(
    name: str, cells: Column, option: str, tmp_path: Path
) -> None:
    rows = [{"run_id": f"r{at}", "reward": at % 2, name: cell} for at, cell in enumerate(cells) for _ in range(2)]
    said = note(read(written(tmp_path / "log.jsonl", rows), columns=OWN)).expected
    assert f", or {option} in --columns: the others" in said if option else ", or --columns: the others" in said
