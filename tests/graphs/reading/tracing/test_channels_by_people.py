"""Of several channels those that people gave come first, and are said to be theirs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import credit
from credit.cli import cli
from credit.reports.corpus import Tally
from graphs.errors import CreditError
from graphs.logs import read
from graphs.writers.native import write

from ..samples import LANGFUSE, OBSERVATIONS
from .test_sole_channels import langsmith


def of_langfuse(n: int, by: str) -> list[Any]:
    rows = []
    for trace, score in ((f"t{n}", {"name": "judge", "source": "EVAL"}), (f"t{n}", {"name": "review", "source": by})):
        rows.append(
            score | {"id": f"{score['name']}{n}", "traceId": trace, "dataType": "NUMERIC", "value": (n + len(rows)) % 2}
        )
    own = json.loads(json.dumps(OBSERVATIONS).replace('"t"', f'"t{n}"'))
    return [{"trace": LANGFUSE["trace"] | {"id": f"t{n}", "scores": rows}, "observations": own}]


def of_langsmith(n: int, by: str) -> list[Any]:
    sources = {"judge": {"type": "model"}, "review": {"type": "app" if by == "ANNOTATION" else "api"}}
    given = [
        {"id": f"{key}{n}", "key": key, "score": n % 2, "run_id": f"t{n}", "feedback_source": source}
        for key, source in sources.items()
    ]
    runs = langsmith([{}] * (n + 1))[2 * n :]
    return [*runs, *given]


def of_openinference(n: int, by: str) -> list[Any]:
    """As MLflow and Phoenix write their spans."""
    kinds = {"judge": "LLM", "review": "HUMAN" if by == "ANNOTATION" else "CODE"}
    stated = {
        f"trace.annotations.{number}.annotation.{key}": value
        for number, (name, kind) in enumerate(kinds.items())
        for key, value in (("name", name), ("score", n % 2), ("annotator_kind", kind))
    }
    span = {"name": "x", "context": {"trace_id": f"{n + 1:032x}"}, "start_time": "2026-01-01T00:00:00Z"}
    calls = {"openinference.span.kind": "LLM"}
    root = span | {"span_kind": "AGENT", "parent_id": None, "attributes": {"openinference.span.kind": "AGENT"} | stated}
    root["context"] = span["context"] | {"span_id": "1" * 16}
    call = span | {"span_kind": "LLM", "parent_id": "1" * 16, "attributes": calls}
    call["context"] = span["context"] | {"span_id": "2" * 16}
    return [root, call]


def of_mlflow(n: int, by: str) -> list[Any]:
    (root, call) = of_openinference(n, by)
    root["attributes"] = {"openinference.span.kind": "AGENT"}
    kinds = {"judge": "LLM_JUDGE", "review": "HUMAN" if by == "ANNOTATION" else "CODE"}
    given = [
        {"assessment_name": name, "feedback": {"value": n % 2}, "source": {"source_type": kind}}
        for name, kind in kinds.items()
    ]
    return [{"info": {"assessments": given}, "data": {"spans": [root, call]}}]


def of_weave(n: int, by: str) -> list[Any]:
    kind = "wandb.annotation.review" if by == "ANNOTATION" else "wandb.runnable.review"
    given = [
        {"id": f"j{n}", "feedback_type": "wandb.runnable.judge", "payload": {"output": n % 2}},
        {"id": f"r{n}", "feedback_type": kind, "payload": {("value" if "annotation" in kind else "output"): n % 2}},
    ]
    call = {
        "project_id": "p",
        "trace_id": f"t{n}",
        "started_at": "2026-01-01T00:00:00Z",
        "op_name": "weave:///a/b/op/x:1",
    }
    root = call | {"id": f"a{n}", "parent_id": None, "summary": {"weave": {"feedback": given}}}
    llm = call | {"id": f"b{n}", "parent_id": f"a{n}", "attributes": {"weave": {"kind": "llm"}}, "summary": {}}
    return [root, llm]


@pytest.mark.parametrize("log", [of_langfuse, of_langsmith, of_openinference, of_mlflow, of_weave])
def test_a_channel_that_people_gave_is_offered_first(tmp_path: Path, log: Any) -> None:
    """A judge's verdict was offered first, and nothing said which reward people had given."""
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(json.dumps(row) for n in range(3) for row in log(n, "ANNOTATION" if n else "API")))
    traces = read(path)
    assert not [problem for problem in traces.problems if problem.is_failure]
    assert traces.reward_channels == ["review", "judge"] and traces.by_people == {"review": 2}
    assert np.isnan(np.asarray(traces.reward)[:3]).all()  # the user chooses
    said = CliRunner().invoke(cli, ["validate", str(path)], env={"COLUMNS": "300"}).output
    offered = "could be it: review (3 of 3 traces, 2 by people), judge (3); `--reward-channel review` takes one"
    assert offered in " ".join(said.split())
    assert re.search(r"review \(3, 2 by people\), judge \(3\)", said)


def test_channels_are_offered_beside_rewards_of_events(tmp_path: Path) -> None:
    """`found event_reward alone` was said of a log with two channels, and to state an outcome of 0."""
    path = tmp_path / "log.jsonl"
    rows = [row for n in range(2) for row in of_langsmith(n, "ANNOTATION")]
    rows += [{"id": f"step{n}", "key": "step", "score": 0.5, "run_id": f"a{n}"} for n in range(2)]
    path.write_text("\n".join(map(json.dumps, rows)))
    traces = read(path)
    assert traces.evidence["event_reward"].mask.any()
    with pytest.raises(CreditError, match=r"could be it: review \(2 of 2 traces, by people\)") as caught:
        credit.run(traces, "rloo")
    assert "event_reward" not in str(caught.value)


def test_who_gave_a_channel_stays_with_the_log(tmp_path: Path) -> None:
    """In a native copy, in a cache, in chunks and where another channel was chosen."""
    path, copy = tmp_path / "log.jsonl", tmp_path / "copy.jsonl"
    path.write_text("\n".join(json.dumps(row) for n in range(4) for row in of_langfuse(n, "ANNOTATION")))
    write(read(path), copy)
    assert read(copy).by_people == {"review": 4}
    chunks = credit.read_chunks(copy, events=1)
    assert len(chunks) > 1
    first, *others = map(Tally.of, chunks)
    for other in others:
        first.add(other)
    assert [*first.channels] == ["review", "judge"] and first.by_people == {"review": 4}
    assert read(copy, rewards={"t0": 0.5, "t1": 1.0}, reward="review").by_people == {"review": 2}
    call = ["metrics", str(path), "--reward-channel", "judge"]
    said = CliRunner().invoke(cli, call, env={"COLUMNS": "300"}).output
    assert "Also in the log, by `--reward-channel`: review (by people) of 4 traces" in " ".join(said.split())


@pytest.mark.parametrize(
    ("columns", "given"),
    [
        ("trace,rewards.people,rater", {"people": 2}),
        ("trace,reward,rater", {"team": 2}),
        ("trace,rewards.people,note", {}),
        ("trace,reward,rater,rewards.judge", {"team": 2}),
        ("trace,rewards.a,rater,rewards.b", {}),
    ],
)
def test_a_table_of_rewards_says_by_its_raters_that_people_gave_them(
    tmp_path: Path, columns: str, given: dict[str, int]
) -> None:
    """Outcomes of people in a table stood as another judge's: the doctor held people against judges."""
    line = {"events": [{"id": "e", "type": "message", "agent": "a"}], "edges": [], "rewards": {"tests": 1.0}}
    logged = [line | {"trace_id": f"t{i}", "task_id": "q"} for i in range(3)]
    (log := tmp_path / "log.jsonl").write_text("".join(json.dumps(one) + "\n" for one in logged))
    more = ",1" * (columns.count(",") - 2)
    rows = [f"t{i},{i % 2},{rater}{more}\n" for i, rater in enumerate(("ann", "ben", ""))]
    (table := tmp_path / "people.csv").write_text("".join([f"{columns}\n", *rows]))
    assert read(log, rewards=table).by_people == given
