"""Rows of OpenHands' `output.jsonl`: their fields, and which of them several files hold."""

from __future__ import annotations

from typing import Annotated

import msgspec

from graphs.errors import Problem, TraceError
from graphs.reading.decode import decode
from graphs.reading.documents import Place, documents
from graphs.reading.keys import has_key
from graphs.reading.repeated_runs import RepeatedRuns, Run, content_of, digest_of
from graphs.reading.source import Source
from graphs.traces.record import LARGEST_COUNT

__all__ = ["ROW", "Settings", "Tool", "Usage", "key_of", "run_of", "runs_of"]

_Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)]


class Usage(msgspec.Struct):
    """The tokens of a model response."""

    prompt_tokens: _Count | None = None
    completion_tokens: _Count | None = None
    response_id: str | None = None
    model: str | None = None


class _Response(msgspec.Struct):
    id: str | None = None
    usage: Usage | None = None


class Tool(msgspec.Struct):
    """The tool call of an event, and the response that it is of."""

    tool_call_id: str | None = None
    function_name: str | None = None
    model_response: _Response | None = None


class _Metrics(msgspec.Struct):
    token_usages: list[Usage] = []


class _Report(msgspec.Struct):
    resolved: bool | None = None


class _Test(msgspec.Struct):
    report: _Report | None = None
    resolved: bool | None = None


class _Model(msgspec.Struct):
    model: str | None = None


class Settings(msgspec.Struct):
    """The agent and the model of a row."""

    agent_class: str | None = None
    llm_config: _Model | None = None


class _Issue(msgspec.Struct):
    owner: str = ""
    repo: str = ""
    number: int = 0


class _Row(msgspec.Struct):
    history: list[msgspec.Raw]
    instance_id: str | None = None
    issue: _Issue | None = None
    metrics: _Metrics | None = None
    success: bool | None = None
    resolved: bool | None = None
    report: _Report | None = None
    test_result: _Test | None = None
    metadata: Settings | None = None

    @property
    def task(self) -> str:
        """The instance, or the repository's issue."""
        if self.instance_id:
            return self.instance_id
        return f"{self.issue.owner}/{self.issue.repo}#{self.issue.number}" if self.issue is not None else ""

    @property
    def verdicts(self) -> list[bool]:
        """Whether the harness's tests passed, as often as it is stated, else whether the run was judged a success."""
        test = self.test_result or _Test()
        report, inner = self.report or _Report(), test.report or _Report()
        tested = [v for v in (self.resolved, report.resolved, test.resolved, inner.resolved) if v is not None]
        return tested or ([] if self.success is None else [self.success])


ROW = msgspec.json.Decoder(_Row)


def runs_of(sources: list[Source]) -> RepeatedRuns:
    """The rows of all files by instance and history: `output.jsonl` repeats those of `output.critic_attempt_N.jsonl`.

    `read` names what cannot be read.
    """
    runs = RepeatedRuns()
    for source in sources:
        for document in documents(source):
            if isinstance(document, Problem) or not has_key(document.raw, "history"):
                continue
            try:
                row = decode(ROW, document.raw, file=source.name, line=document.place.line)
            except TraceError:
                continue
            if row.history:
                runs.note(key_of(row), run_of(row, document.place))
        source.release()
    return runs


def key_of(row: _Row) -> bytes:
    """What tells a row: its history, which holds times and ids of responses, and its verdict.

    Its `instance_id` is the task's, so rows of one history with two verdicts may be two runs.
    """
    settings = row.metadata or Settings()
    model = settings.llm_config.model if settings.llm_config is not None else None
    return digest_of(row.task, settings.agent_class, model, row.verdicts, *map(content_of, row.history))


def run_of(row: _Row, place: Place) -> Run:
    """What `RepeatedRuns` keeps of a row; its verdict is part of its key."""
    return Run(None, (), place.file, max(place.line, 1))
