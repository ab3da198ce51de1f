"""Rollout dumps of trainers: a row is a trace, whatever its text."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import credit
from graphs.errors import CreditError, NothingReadError
from graphs.event_types import EventType
from graphs.formats.rollouts import row_parts
from graphs.logs import read
from graphs.traces.limits import Limits

from ..samples import NEMO_GYM, NEMO_RL, SAMPLES, SKYRL, VERL


def write(folder: Path, rows: list[Any], name: str = "7.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_equal_texts_stay_different_rollouts_of_one_group(tmp_path: Path) -> None:
    traces = read(SAMPLES["rollouts of verl"].write(tmp_path))
    assert traces.traces["trace"].to_pylist() == ["7/1", "7/2", "7/3"]
    assert len(set(traces.traces["group"].to_pylist())) == 1
    assert np.asarray(traces.reward)[:3].tolist() == [1, 1, 0]
    assert traces.evidence["policy_version"].array[:3].tolist() == [7, 7, 7]
    assert traces.sizes.events == 3 and traces.graph.action_mask.sum() == 3


def test_steps_prompts_and_uids_part_groups(tmp_path: Path) -> None:
    rows = [VERL, VERL | {"step": 8}, VERL | {"input": "2+2?"}, VERL | {"uid": "u"}, VERL | {"uid": "u", "input": "x"}]
    groups = read(write(tmp_path, rows)).traces["group"].to_pylist()
    assert len(set(groups[:3])) == 3 and groups[3] == groups[4] == "u@7"


def test_rewards_of_tokens_add_up(tmp_path: Path) -> None:
    traces = read(write(tmp_path, [SKYRL, SKYRL | {"response_ids": [1, 2, 3]}, NEMO_RL]))
    assert np.asarray(traces.reward)[:3].tolist() == [1, 1, 1]
    assert traces.evidence["tokens"].amounts.tolist() == [3, 1]
    assert traces.tokens is not None and traces.tokens.ids.tolist() == [1, 2, 3, 6]
    assert len(set(traces.traces["group"].to_pylist())) == 2


def test_nemo_gym_joins_items_of_one_call(tmp_path: Path) -> None:
    traces = read(write(tmp_path, [NEMO_GYM, NEMO_GYM | {"response": NEMO_GYM["response"] | {"output": [
        {"type": "message", "role": "assistant"}]}}]))  # fmt: skip
    kinds = [EventType(int(kind)).name.lower() for kind in traces.graph.event_type[: traces.sizes.events]]
    assert kinds == ["message", "tool_call", "tool_result", "message", "message"]
    assert traces.events["event"].to_pylist()[:4] == ["0", "0/call-0", "2", "3"]
    assert traces.evidence["tokens"].array[:5].tolist() == [-1, -1, -1, 2, 8]
    assert traces.evidence["log_prob"].amounts.tolist() == [-0.75]
    assert traces.tokens is not None
    assert traces.tokens.log_probs.tolist() == [-0.5, -0.25] and traces.tokens.mask.all()
    assert traces.tokens.generated.sum() == len(traces.tokens.ids) == 2
    assert traces.traces["model"].to_pylist() == ["m", "m"]
    assert float(read(write(tmp_path, [NEMO_GYM]), reward="right").reward[0]) == 0.5


def completions(folder: Path, **rewards: list[Any]) -> Path:
    table = {"step": [3, 3], "prompt": ["1+1?", "1+1?"], "completion": ["2", "2"], **rewards, "advantage": [0.5, -0.5]}
    pq.write_table(pa.table(table), folder / "completions_00003.parquet")
    return folder / "completions_00003.parquet"


def test_trl_completions(tmp_path: Path) -> None:
    traces = read(completions(tmp_path, accuracy=[1.0, 0.0]))
    assert traces.problems == () and traces.traces["format"].to_pylist() == ["rollouts"] * 2
    assert np.asarray(traces.reward)[:2].tolist() == [1, 0]
    assert len(set(traces.traces["group"].to_pylist())) == 1
    path = completions(tmp_path, accuracy=[1.0, 0.0], brevity=[0.25, float("nan")])
    traces = read(path)
    assert [problem.kind for problem in traces.problems] == ["several-rewards"]
    assert np.isnan(traces.reward[:2]).all()
    assert np.isnan(read(path, reward="brevity").reward[1])


@pytest.mark.parametrize(
    "values",
    [
        ["0", "1"],
        ["0", None],
        ["1.0", ""],
        ["1.0", "None"],
        ["True", "False"],
        [True, False],
        [Decimal("0.5"), Decimal(1)],
    ],
    ids=str,
)
def test_trl_rewards_of_another_type_are_named(tmp_path: Path, values: list[Any]) -> None:
    """TRL writes floats; a user's own column may be of such values, so another reward stays the outcome."""
    traces = read(completions(tmp_path, right=values))
    (problem,) = traces.problems
    assert (problem.kind, problem.value, problem.is_failure) == ("retyped-rewards", "'right'", False)
    assert np.isnan(traces.reward[:2]).all()
    with pytest.raises(CreditError, match=r"no trace has an outcome.* columns is 'right'; expected floats or integers"):
        credit.run(traces, "rloo")  # it advised --rewards alone
    beside = read(completions(tmp_path, right=values, fmt=[0.5, 0.25]))
    assert [problem.kind for problem in beside.problems] == ["retyped-rewards"]
    assert np.asarray(beside.reward)[:2].tolist() == [0.5, 0.25]
    told = read(completions(tmp_path, fmt=[0.5, 0.25], solution=["2", "two"]))
    assert told.problems == () and np.asarray(told.reward)[:2].tolist() == [0.5, 0.25]


def test_trl_conversations_are_chats(tmp_path: Path) -> None:
    table = pa.table({
        "step": [1], "prompt": [[{"role": "user", "content": "1+1?"}]],
        "completion": [[{"role": "assistant", "content": "", "tool_calls": [{"id": "c", "name": "add"}],
                         "tool_call_id": None},
                        {"role": "tool", "content": "2", "tool_calls": None, "tool_call_id": "c"},
                        {"role": "assistant", "content": "2", "tool_calls": None, "tool_call_id": None}]],
        "right": [1.0], "advantage": [0.0],
    })  # fmt: skip
    pq.write_table(table, tmp_path / "completions.parquet")
    traces = read(tmp_path / "completions.parquet")
    assert traces.problems == () and traces.sizes.events == 4 and traces.graph.action_mask.sum() == 2


ROWS: list[Any] = [
    VERL, VERL | {"acc": True}, VERL | {"uid": "u"}, VERL | {"uid": ""}, VERL | {"uid": "", "step": None}, SKYRL,
    SKYRL | {"response_ids": [1, 2]}, SKYRL | {"score": [0.5, 0.25]}, SKYRL | {"score": [3e38, 3e38]}, NEMO_RL,
    SKYRL | {"input_prompt": [{"role": "user"}]}, VERL | {"score": "high"}, VERL | {"score": None}, {"input": "x"},
    NEMO_GYM, VERL | {"responses_create_params": {}}, VERL | {"step": -1}, VERL | {"input": "other"}, VERL,
]  # fmt: skip


def test_rows_read_many_at_once_as_they_do_one_by_one(tmp_path: Path) -> None:
    """A file that begins with a row goes through parts; a list of the same rows, row by row."""
    path = write(tmp_path, ROWS)
    path.write_text(path.read_text() + '{"input": \n' + json.dumps(VERL) + "\n")
    one_by_one = tmp_path / "list" / "7.json"
    one_by_one.parent.mkdir()
    one_by_one.write_text("[" + ",\n".join(json.dumps(row) for row in [*ROWS, VERL]) + "]")
    many, each = read(path), read(one_by_one, format="rollouts")
    faults = [(problem.kind, problem.line, problem.field) for problem in many.problems]
    assert ("bad-json", len(ROWS) + 1, "content") in faults and len(faults) == 10
    assert [(p.kind, p.line, p.field) for p in each.problems] == [
        fault for fault in faults if fault[0] not in ("bad-json", "mixed-ids")
    ]
    rows = many.sizes.traces
    assert rows == each.sizes.traces == len(ROWS) + 1 - 7
    for name in ("event_type", "action_mask", "agent_ids", "turn_ids", "trace_ids", "group_ids", "agent_trace"):
        assert np.array_equal(getattr(many.graph, name), getattr(each.graph, name)), name
    assert np.array_equal(many.reward, each.reward, equal_nan=True)
    assert many.evidence.keys() == each.evidence.keys()
    for name in many.evidence:
        assert np.array_equal(many.evidence[name].array, each.evidence[name].array, equal_nan=True), name
    kept = ["model", "system", "format", "group"]
    assert many.traces.select(kept).to_pylist() == each.traces.select(kept).to_pylist()
    assert many.traces["line"].to_pylist()[:-1] == each.traces["line"].to_pylist()[:-1]
    columns = ["event", "agent", "name", "role"]
    tables = [(t.events.select(columns[:1]), t.agents.select(columns[1:])) for t in (many, each)]
    assert tables[0][0].to_pylist() == tables[1][0].to_pylist()
    assert tables[0][1].to_pylist() == tables[1][1].to_pylist()


@pytest.mark.parametrize("window", [1, 300, 2000])
def test_rows_decoded_together_are_the_rows_one_by_one(tmp_path: Path, window: int) -> None:
    """Lines of any spacing, some blank, without an end, stating a key twice, or no row: each at its place."""
    draw, lines = random.Random(window), list[str]()
    for number in range(120):
        row = VERL | {"input": f"{number // 4}?", "score": float(number % 3), "gts": draw.choice(["2", {"a": [":"]}])}
        separators = draw.choice([None, None, (",", ":"), (" , ", " :")])
        line = json.dumps(row, separators=separators, ensure_ascii=draw.random() < 0.5)
        faulty = (line[:-5], "", " " + line + "\r", line + "\n" + line, "[" * 300)
        lines.append(faulty[number // 11 % len(faulty)] if number % 11 == 5 else line)
    path = tmp_path / "7.jsonl"
    for end in ("", "\n", "\n\n"):
        path.write_text("\n".join(lines) + end)
        with mock.patch.object(row_parts, "_WINDOW", window):
            together = read(path)
        with mock.patch.object(row_parts, "_decoded", lambda *_: None):
            alone = read(path)
        assert [str(problem) for problem in together.problems] == [str(problem) for problem in alone.problems]
        assert {problem.kind for problem in alone.problems} == {"bad-json", "too-deep"}
        assert together.traces.equals(alone.traces) and together.events.equals(alone.events)
        assert together.reward.tolist() == alone.reward.tolist()
        data = path.read_bytes()
        rows = together.traces.select(["trace", "line", "offset"]).to_pylist()
        for row in rows:
            assert row["trace"] == f"7/{row['line']}"
            assert data[row["offset"] :].startswith(data.split(b"\n")[row["line"] - 1])


@pytest.mark.parametrize("window", [100, 200, 300, 400, 500])
def test_a_blank_line_at_the_end_of_a_window_is_counted(tmp_path: Path, window: int) -> None:
    """Every row behind it was named by the line before its own."""
    rows = [json.dumps(VERL | {"output": str(number) * 40}) for number in range(5)]
    path = tmp_path / "7.jsonl"
    path.write_text("\n".join([*rows[:2], "", rows[2], "", "", *rows[3:]]))
    with mock.patch.object(row_parts, "_WINDOW", window):
        traces = read(path).traces
    assert traces["line"].to_pylist() == [1, 2, 4, 7, 8]
    assert traces["trace"].to_pylist() == ["7/1", "7/2", "7/4", "7/7", "7/8"]


def test_rows_whose_texts_have_many_brackets_are_decoded_together(tmp_path: Path) -> None:
    """As formulas have: brackets within a text nest nothing, those of the row do."""
    formula = VERL | {"output": "\\frac{1}{2} [x] " * 200}
    lines = [json.dumps(row).encode() for row in (formula, formula | {"gts": {"a": [1]}}, formula | {"score": [1.0]})]
    limits = Limits()
    for kept in (lines[:1], [lines[0]] * 3):
        text = b"\n".join(kept)
        assert row_parts._decoded(text, row_parts._starts(text), limits) is not None
    for line in lines[1:]:
        assert row_parts._decoded(line, [0], limits) is not None
        assert row_parts._decoded(json.dumps(VERL | json.loads(line) | {"output": "2"}).encode(), [0], limits)
    path = tmp_path / "7.jsonl"
    path.write_bytes(b"\n".join(lines))
    assert read(path).problems == ()
    assert {p.kind for p in read(path, limits=Limits(depth=2)).problems} == {"too-deep"}


def test_four_rollouts_of_equal_text_are_four_traces(tmp_path: Path) -> None:
    for row in (VERL, SKYRL, NEMO_RL):
        assert read(write(tmp_path, [row] * 4)).sizes.traces == 4
    numbered = [NEMO_GYM | {"_ng_rollout_index": number} for number in range(4)]
    assert read(write(tmp_path, numbered)).sizes.traces == 4
    without = {name: value for name, value in NEMO_GYM.items() if not name.startswith("_ng_")}
    assert read(write(tmp_path, [without] * 4)).sizes.traces == 4
    table = {"step": [1] * 4, "prompt": ["p"] * 4, "completion": ["c"] * 4, "right": [0.0, 1, 1, 1]}
    pq.write_table(pa.table(table | {"advantage": [0.0] * 4}), tmp_path / "completions.parquet")
    traces = read(tmp_path / "completions.parquet")
    assert np.asarray(traces.reward)[:4].tolist() == [0, 1, 1, 1] and len(set(traces.traces["group"].to_pylist())) == 1


def test_rows_without_a_prompt_are_no_group(tmp_path: Path) -> None:
    gym = NEMO_GYM | {"responses_create_params": {"input": ""}, "_ng_task_index": None}
    for row in (VERL | {"input": ""}, SKYRL | {"input_prompt": []}, gym):
        assert len(set(read(write(tmp_path, [row] * 2)).traces["group"].to_pylist())) == 2
    table = {"step": [1] * 4, "prompt": ["", "", None, None], "completion": ["c"] * 4, "right": [0.0, 1, 1, 1]}
    pq.write_table(pa.table(table | {"advantage": [0.0] * 4}), tmp_path / "completions.parquet")
    assert len(set(read(tmp_path / "completions.parquet").traces["group"].to_pylist())) == 4
    traces = read(write(tmp_path, [VERL, VERL | {"uid": ""}, VERL | {"uid": " "}]))
    assert traces.sizes.traces == 1 and [p.kind for p in traces.problems] == ["empty-id"] * 2


def test_several_rewards_of_one_sample_of_nemo_rl_are_refused(tmp_path: Path) -> None:
    """NeMo-RL writes a batch of one sample a row; the sum of a list is that of SkyRL's tokens."""
    traces = read(write(tmp_path, [NEMO_RL, NEMO_RL | {"rewards": [1.0, 1.0]}]))
    assert traces.sizes.traces == 1
    assert [(p.kind, p.line, p.field) for p in traces.problems] == [("bad-value", 2, "rewards")]


def test_rows_of_one_prompt_of_nemo_rl_are_a_group_of_their_file(tmp_path: Path) -> None:
    """Each was a group of its own, in which no method has a signal; the mask tells the prompt from what was generated,
    as in NeMo-RL's own baseline, and a file is a step. Versions of 2025 wrote no tokens."""
    other = NEMO_RL | {"token_ids": [[4, 6, 0]]}
    old = {key: value for key, value in NEMO_RL.items() if not key.startswith("token")}
    for step in (3, 4):
        rows = [NEMO_RL, NEMO_RL | {"rewards": [0.0]}, other, old]
        write(tmp_path, [row | {"prev_logprobs": [[0.0, -step, 0.0]]} for row in rows], f"train_data_step{step}.jsonl")
    groups = read(tmp_path).traces["group"].to_pylist()
    assert groups[0] == groups[1] and groups[4] == groups[5] and len(set(groups)) == 6


def test_turns_of_nemo_rl_are_calls_and_lists_of_other_lengths_are_refused(tmp_path: Path) -> None:
    turns = NEMO_RL | {"input_lengths": [4], "token_ids": [[5, 6, 7, 8, 0]], "token_loss_mask": [[0, 1, 0, 1, 0]],
                       "generation_logprobs": [[0.0, -0.5, 0.0, -0.25, 0.0]]}  # fmt: skip
    traces = read(write(tmp_path, [turns, turns | {"token_ids": [[5, 6]]}, turns | {"token_loss_mask": [[0] * 5]}]))
    assert traces.sizes.events == 2 and traces.tokens is not None and traces.tokens.ids.tolist() == [6, 8]
    assert [(p.kind, p.line, p.field) for p in traces.problems] == [
        ("bad-value", 2, "token_ids"), ("no-events", 3, "token_loss_mask"), ("unread-outcome", 3, "outcome"),
    ]  # fmt: skip


def test_an_empty_list_of_scores_is_no_reward(tmp_path: Path) -> None:
    traces = read(write(tmp_path, [SKYRL | {"score": []}, NEMO_RL | {"rewards": []}, VERL]))
    assert np.isnan(traces.reward[:3]).tolist() == [True, True, False]


def test_columns_of_one_name_and_infinite_rewards_are_refused(tmp_path: Path) -> None:
    names = ["step", "prompt", "completion", "right", "right", "advantage"]
    columns = [pa.array(column) for column in ([1], ["p"], ["c"], [0.0], [1.0], [0.0])]
    pq.write_table(pa.Table.from_arrays(columns, names), tmp_path / "completions.parquet")
    with pytest.raises(NothingReadError, match="bad-header"):
        read(tmp_path / "completions.parquet", reward="right")
    traces = read(completions(tmp_path, accuracy=[float("inf"), 1.0]))
    assert traces.sizes.traces == 1 and [p.kind for p in traces.problems] == ["non-finite-reward"]


def test_runs_in_two_folders_are_not_compared(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write(tmp_path / name, [VERL | {"output": f"of {name}"}, VERL | {"score": 0.0}])
    groups = read(tmp_path).traces["group"].to_pylist()
    assert groups[0] == groups[1] and groups[2] == groups[3] and groups[0] != groups[2]
    assert len(set(read(tmp_path, group_by="task").traces["group"].to_pylist())) == 1
    assert read(tmp_path / "a").traces["system"].to_pylist() == ["verl"] * 2


@pytest.mark.slow
def test_a_shared_prompt_is_held_once(tmp_path: Path) -> None:
    """A megabyte that 1,000 rows share is 1 GB where each row spells it out."""
    rows = 1000
    prompt = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array(["x" * (1 << 20)]))
    table = {"step": [1] * rows, "prompt": prompt, "completion": ["c"] * rows, "right": [1.0] * rows}
    pq.write_table(pa.table(table | {"advantage": [0.0] * rows}), tmp_path / "completions.parquet")
    traces = read(tmp_path)
    assert traces.sizes.traces == rows and len(set(traces.traces["group"].to_pylist())) == 1
    answers = [[{"role": "assistant", "content": "x" * (1 << 20)}]] * 64
    pq.write_table(pa.table({"step": [1] * 64, "prompt": ["p"] * 64, "completion": answers, "right": [1.0] * 64,
                             "advantage": [0.0] * 64}), tmp_path / "completions.parquet")  # fmt: skip
    with pytest.raises(NothingReadError, match="too-large"):
        read(tmp_path, limits=Limits(file_bytes=32 << 20))


def test_a_row_without_the_uid_that_others_have_is_named(tmp_path: Path) -> None:
    """It is a group of its own by its prompt, and its siblings are compared without it."""
    rows = [{"input": "x", "output": "y", "score": 1.0, "uid": uid} for uid in ("u", None, "u", "u")]
    (tmp_path / "7.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (problem,) = read(tmp_path).problems
    assert (problem.kind, problem.field, problem.value) == ("mixed-ids", "uid", "absent in 1 row, stated in 3")


@pytest.mark.parametrize("more", [{"uid": "u"}, {}])
def test_a_row_without_the_step_that_others_have_is_named(tmp_path: Path, more: dict[str, Any]) -> None:
    row = {"input": "x", "output": "y", "score": 1.0} | more
    traces = read(write(tmp_path, [row | {"step": 7}, row | {"step": 7, "score": 0.0}, row]))
    assert traces.traces.num_rows == 3
    (problem,) = traces.problems
    assert (problem.kind, problem.field, problem.value) == ("mixed-ids", "step", "absent in 1 row, stated in 2")
    assert not read(write(tmp_path, [row | {"step": step} for step in (7, 8)])).problems
    assert not read(write(tmp_path, [row] * 2)).problems


def test_a_row_without_the_task_that_others_number_is_named(tmp_path: Path) -> None:
    rows = [NEMO_GYM | {"_ng_rollout_index": number} for number in range(3)]
    assert not read(write(tmp_path, rows)).problems
    rows.append({key: value for key, value in NEMO_GYM.items() if key != "_ng_task_index"})
    traces = read(write(tmp_path, rows))
    assert traces.traces.num_rows == 4
    (problem,) = traces.problems
    assert (problem.kind, problem.field) == ("mixed-ids", "_ng_task_index")
    assert problem.value == "absent in 1 row, stated in 3"
    assert not read(write(tmp_path, rows[3:] * 2)).problems


def test_uids_that_differ_only_in_type_are_not_one_group(tmp_path: Path) -> None:
    rows = [{"input": "x", "output": "y", "score": 1.0, "uid": uid} for uid in (1, "1", 2, 1)]
    (tmp_path / "7.jsonl").write_text("\n".join(map(json.dumps, rows)))
    traces = read(tmp_path)
    assert [(p.kind, p.line, p.value) for p in traces.problems] == [("mixed-ids", 2, "'1'")]
    assert traces.traces["group"].to_pylist() == ["1", "2", "1"]
    (tmp_path / "8.jsonl").write_text(json.dumps({"input": "x", "output": "z", "score": 0.0, "uid": "2"}))
    assert [(p.kind, p.value) for p in read(tmp_path).problems] == [("mixed-ids", "'1'"), ("mixed-ids", "'2'")]


KEY = "2b1f6f0e-8a43-4d0c-9c5e-0d9f6f0c1a7"  # of a prompt, but for its last digit


def outputs(*keys: str) -> list[Any]:
    """Rows of verl 0.9, each with a score of its own."""
    row = {"input": "x", "output": "y", "gts": None, "step": 7}
    return [row | {"score": float(number), "uid": f"{KEY}{key}"} for number, key in enumerate(keys)]


def test_keys_of_verl_name_the_prompt_the_rollout_and_the_output(tmp_path: Path) -> None:
    """Each row was a group of its own, and outputs of one rollout were rollouts."""
    traces = read(write(tmp_path, outputs("0_0_0", "0_1_0", "0_1_1", "0_1_2", "1_0_0")))
    assert not traces.problems
    assert traces.traces["trace"].to_pylist() == ["7/1", "7/2", "7/5"]
    assert traces.traces["group"].to_pylist() == [f"{KEY}0@7", f"{KEY}0@7", f"{KEY}1@7"]
    assert np.asarray(traces.reward)[:3].tolist() == [0, 3, 4]  # of the last output
    assert np.bincount(np.asarray(traces.graph.trace_ids)[: traces.sizes.events]).tolist() == [1, 3, 1]
    assert traces.events["line"].to_pylist() == [1, 2, 3, 4, 5] and traces.graph.action_mask[:5].all()


@pytest.mark.parametrize("lost", ["0_1_0", "0_1_1", "broken"])
def test_no_rollout_of_verl_is_read_without_one_of_its_outputs(tmp_path: Path, lost: str) -> None:
    rows = outputs("0_0_0", "0_1_0", "0_1_1", "0_1_2", "1_0_0")
    lines = [json.dumps(row) for row in rows if not row["uid"].endswith(lost)]
    if lost == "broken":
        lines[2] = lines[2][:-9]
    (tmp_path / "7.jsonl").write_text("\n".join(lines) + "\n")
    traces = read(tmp_path)
    assert "lost-row" in {problem.kind for problem in traces.problems}
    assert traces.traces["group"].to_pylist() == [f"{KEY}0@7", f"{KEY}1@7"]


ORDERS: dict[str, tuple[str, dict[str, float], list[tuple[str, int]]]] = {
    "whole": ("0_0 0_1 1_0", {"1": 1, "3": 2}, []),
    "its first line is lost": ("0_1 1_0", {"2": 1}, [("lost-row", 1)]),
    "an inner line is lost": ("0_0 0_2 1_0", {"3": 2}, [("lost-row", 1)]),
    "swapped at the head": ("0_1 0_0 1_0", {"2": 0, "3": 2}, []),
    "interleaved": ("0_0 1_0 2_0 0_1", {"1": 3, "2": 1, "3": 2}, []),
    "interleaved, and incomplete": ("0_0 1_0 2_0 0_2", {"2": 1, "3": 2}, [("lost-row", 1)]),
    "a uid of two rows": ("0_0 0_0 1_0", {"3": 2}, [("duplicate-id", 2)]),
}
"""Rollouts and outputs in the order of the rows, the reward of each trace by its line, and the kinds and lines of
problems. The reward of a row is its place in the file."""


@pytest.mark.parametrize("form", ["lines", "list", "behind a broken line"])
@pytest.mark.parametrize("name", ORDERS)
def test_outputs_of_a_rollout_are_joined_in_any_order_or_it_alone_is_refused(
    name: str, form: str, tmp_path: Path
) -> None:
    keys, rewards, problems = ORDERS[name]
    rows = [json.dumps(row) for row in outputs(*(f"0_{key}" for key in keys.split()))]
    before = int(form == "behind a broken line")
    text = (
        "[" + ",\n".join(rows) + "]"
        if form == "list"
        else "".join(row + "\n" for row in [json.dumps(VERL)[:-9]][:before] + rows)
    )
    (tmp_path / ("7.json" if form == "list" else "7.jsonl")).write_text(text)
    traces = read(tmp_path)
    found = [(problem.kind, problem.line - before) for problem in traces.problems if problem.kind != "bad-json"]
    assert found == problems
    numbers = [int(trace.removeprefix("7/")) - before for trace in traces.traces["trace"].to_pylist()]
    read_rewards = np.asarray(traces.reward)[: traces.sizes.traces].tolist()
    assert dict(zip(map(str, numbers), read_rewards, strict=True)) == rewards


def test_a_row_of_verl_that_stands_twice_counts_once(tmp_path: Path) -> None:
    rows = outputs("0_0_0", "0_0_1", "0_1_0")
    traces = read(write(tmp_path, rows * 2))
    assert {problem.kind for problem in traces.problems} == {"repeated-run"}
    assert np.asarray(traces.reward)[:2].tolist() == [1, 2] and traces.sizes.traces == 2


def test_a_line_that_is_too_large_refuses_the_rollout_of_which_it_is_an_output(tmp_path: Path) -> None:
    rows = outputs("0_0_0", "0_1_0", "0_0_1")
    rows[2]["output"] = "x" * 1000
    traces = read(write(tmp_path, rows), limits=Limits(record_bytes=500))
    assert {problem.kind for problem in traces.problems} == {"too-large", "lost-row"}
    assert traces.traces["trace"].to_pylist() == ["7/2"]


def test_outputs_of_one_rollout_at_two_steps_are_refused(tmp_path: Path) -> None:
    rows = outputs("0_0_0", "0_0_1", "0_1_0")
    rows[1]["step"] = 8
    traces = read(write(tmp_path, rows))
    assert [problem.kind for problem in traces.problems] == ["lost-row"] and traces.sizes.traces == 1


@pytest.mark.parametrize("name", ["8.jsonl", "8.json"])
def test_a_rollout_whose_outputs_lie_in_two_files_is_refused_in_both(name: str, tmp_path: Path) -> None:
    """Its first output alone would have been a trace with a reward that is not the last one's."""
    write(tmp_path, outputs("0_0_0", "0_1_0", "0_1_1"))
    rows = outputs("0_0_1", "0_2_0")
    (tmp_path / name).write_text(json.dumps(rows) if name == "8.json" else "\n".join(map(json.dumps, rows)))
    traces = read(tmp_path)
    found = [(problem.kind, problem.line) for problem in traces.problems]
    assert found == [("lost-row", 1), ("lost-row", 1)]
    assert traces.traces["trace"].to_pylist() == ["7/2", "8/2"]


@pytest.mark.parametrize(
    ("stated", "traces"),
    [
        ('"uid": "KEY0_0\\u005f1", "score": 0.5', []),  # an escape
        ('"uid": "KEY0_0_0", "score": 0.5', []),  # the same output with another reward
        ('"uid": "KEY0_1_0", "score": 0.5, "extra": {"uid": "KEY0_0_5"}', ["7/1", "8/1"]),  # no field of the row
    ],
)
def test_files_state_rows_of_a_rollout_by_the_field_of_the_row(stated: str, traces: list[str], tmp_path: Path) -> None:
    write(tmp_path, outputs("0_0_0"))
    row = '{"input": "x", "output": "y", "gts": null, "step": 7, ' + stated.replace("KEY", KEY) + "}"
    (tmp_path / "8.jsonl").write_text(row + "\n")
    if traces:
        assert read(tmp_path).traces["trace"].to_pylist() == traces
    else:
        with pytest.raises(NothingReadError, match="all outputs of one rollout in one file"):
            read(tmp_path)


def test_two_rows_on_one_line_refuse_the_rollouts_of_both(tmp_path: Path) -> None:
    """And the rollout before: nothing tells what such a line lost between the two."""
    first, *rows = (json.dumps(row) for row in outputs("0_0_0", "0_1_0", "0_2_0", "0_3_0"))
    (tmp_path / "7.jsonl").write_text("\n".join([first, rows[0] + rows[1], rows[2]]))
    traces = read(tmp_path)
    found = [(problem.kind, problem.line) for problem in traces.problems]
    assert found == [("lost-row", 1), ("lost-row", 2), ("lost-row", 2), ("bad-json", 2)]
    assert traces.traces["trace"].to_pylist() == ["7/3"]


def test_a_failed_judge_of_nemo_gym_is_no_outcome(tmp_path: Path) -> None:
    """NeMo Gym keeps such rows out of its numbers, in `OUTPUT_failures.jsonl`; their reward of 0 counted here."""
    failed = NEMO_GYM | {"reward": 0.0, "_ng_rollout_index": 1, "_ng_failure_class": "judge_failed"}
    traces = read(write(tmp_path, [NEMO_GYM, failed]))
    assert traces.reward[:1].tolist() == [0.5] and np.isnan(traces.reward[1])
    assert {problem.kind for problem in traces.problems} >= {"invalidated"}
    assert read(tmp_path, errors="drop").sizes.traces == 1


def test_a_masked_sample_of_nemo_gym_is_no_outcome_and_a_run_without_a_rollout_no_failure(tmp_path: Path) -> None:
    """Version 0.7 marks rewards that measure nothing, which counted; a run that came back without a rollout was an
    item that nobody knows."""
    failed = {"_ng_failure_class": "agent_run_error", "_ng_task_index": 4, "_ng_rollout_index": 2}
    masked = NEMO_GYM | {"reward": 0.0, "_ng_rollout_index": 1, "mask_sample": True, "failure_kind": "judge_failed"}
    traces = read(write(tmp_path, [NEMO_GYM | {"mask_sample": False}, masked, failed]))
    assert traces.reward[:1].tolist() == [0.5] and np.isnan(traces.reward[1])
    assert {problem.kind for problem in traces.problems} >= {"invalidated", "no-events"}
    assert [problem for problem in traces.problems if problem.is_failure] == []
    write(tmp_path, [failed, masked | {"_ng_rollout_index": 3}], "7_failures.jsonl")
    assert read(tmp_path).sizes.traces == 3


def test_states_of_aviary_s_agent_are_read_once(tmp_path: Path) -> None:
    """Each holds the one before, with what was said since; the output was refused as a list of lists."""
    said = NEMO_GYM["response"]["output"]
    row = NEMO_GYM | {"response": NEMO_GYM["response"] | {"output": [said[:3], said]}}
    (tmp_path / "flat").mkdir()
    (tmp_path / "states").mkdir()
    flat, states = read(write(tmp_path / "flat", [NEMO_GYM])), read(write(tmp_path / "states", [row]))
    assert states.graph.event_type.tolist() == flat.graph.event_type.tolist()
    row["response"]["output"] = [said[1:3], said]
    with pytest.raises(NothingReadError, match="begins with the one before"):
        read(write(tmp_path, [row]))


def test_a_verdict_among_other_columns_is_no_run_of_who_and_when(tmp_path: Path) -> None:
    """Rows of NeMo Gym's question answering have `question` and `is_correct`, too."""
    row = NEMO_GYM | {"question": "1+1?", "is_correct": 1.0}
    assert read(write(tmp_path, [row])).traces["format"].to_pylist() == ["rollouts"]
