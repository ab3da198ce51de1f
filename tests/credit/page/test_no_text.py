"""`--no-text`: no page, served trace or label page quotes what a log says, in any format."""

from __future__ import annotations

import json
import threading
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import credit
from credit.cli import cli
from credit.page import Findings, Labels, PageServer
from credit.page.html import page
from credit.reports.event_errors import error_mask
from credit.reports.event_texts import event_texts
from credit.reports.task_and_result import task_and_result
from tests.credit.page.test_page import embedded
from tests.graphs.reading.samples import SAMPLES

SECRET = "hunter2"
SAID = {"text", "content", "output", "outputs", "result", "response", "arguments", "args", "command", "input", "inputs",
        "prompt", "completion", "message", "messages", "observation", "thought", "query", "reasoning", "answer",
        "error"}  # fmt: skip
NAMES = {"id", "type", "role", "name", "status", "timestamp", "model", "tool", "action", "author", "source", "uuid",
         "tool_use_id", "tool_call_id", "call_id", "callID", "toolCallId", "session_id", "sessionId", "agent_name",
         "created_at", "modelID", "providerID", "provider", "model_name", "ls_model_name",
         "model_provider"}  # fmt: skip


def planted(value: Any, said: bool = False) -> Any:
    """The values of a log whose texts end in a secret; names are as they were."""
    if isinstance(value, dict):
        return {
            key: one if key in NAMES else planted(one, said or key.lower().split(".")[-1] in SAID)
            for key, one in value.items()
        }
    if isinstance(value, list):
        return [planted(one, said) for one in value]
    if not said or not isinstance(value, str):
        return value
    try:
        inner = json.loads(value)
    except ValueError:
        return f"{value} {SECRET}"
    return json.dumps(planted(inner, True)) if isinstance(inner, dict | list) else f"{value} {SECRET}"


def found(folder: Path, name: str) -> Findings | None:
    sample = SAMPLES[name]
    path = sample._replace(values=[planted(one) for one in sample.values]).write(folder)
    try:
        traces = credit.read(path)
    except credit.CreditError:
        return None  # a format whose messages must not change, such as one that is a hash of them
    return Findings.of(traces, {}, text=False)


def quoted(findings: Findings) -> str:
    head, views = embedded(page(findings)[0])
    return json.dumps([head, views])


@pytest.mark.slow
def test_no_format_is_quoted_without_text(tmp_path: Path) -> None:
    read, leaking, quoting, asked = 0, [], 0, 0
    for i, name in enumerate(SAMPLES):
        findings = found(tmp_path / str(i), name)
        if findings is None:
            continue
        read += 1
        if SECRET in quoted(findings):
            leaking.append(name)
        traces = findings.traces
        quoting += any(SECRET in text for text in event_texts(traces, np.arange(traces.sizes.events), 600))
        asked += any(SECRET in text for i in range(traces.sizes.traces) for text in task_and_result(traces, i, 600))
    assert not leaking
    assert (
        read >= len(SAMPLES) - 4 and quoting > len(SAMPLES) / 3 and asked > 3
    )  # the secrets are where a page looks for texts


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """A session of a coding agent with a secret in a prompt, a call, a failed result, a message and a wrong value."""

    def line(number: int, kind: str, content: Any, **more: Any) -> dict[str, Any]:
        about = {"parentUuid": None if number == 0 else f"u{number - 1}", "isSidechain": False, "sessionId": "s"}
        moment = f"2026-01-05T09:0{number}:00.000Z"
        return {**about, "type": kind, "uuid": f"u{number}", "timestamp": moment,
                "message": {"role": kind, "content": content, **more}}  # fmt: skip

    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": f"curl {SECRET}"}}
    failed = {"type": "tool_result", "tool_use_id": "t", "content": f"401 {SECRET}", "is_error": True}
    lines = [
        line(0, "user", f"deploy with {SECRET}"),
        line(1, "assistant", [call], id="m1", model="m", usage={"input_tokens": 9, "output_tokens": 40}),
        line(2, "user", [failed]),
        line(3, "assistant", [{"type": "text", "text": f"used {SECRET}"}], id="m2", model="m",
             usage={"input_tokens": 9, "output_tokens": 400}),
    ]  # fmt: skip
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "s.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    wrong = line(0, "user", "go") | {"sessionId": "other", "timestamp": SECRET}
    (folder / "other.jsonl").write_text(json.dumps(wrong) + "\n")
    return folder


def test_the_report_of_a_session_has_no_secret(session: Path, tmp_path: Path) -> None:
    for options, secret in (([], True), (["--no-text"], False)):
        result = CliRunner().invoke(
            cli, ["report", str(session), "-o", str(tmp_path / "p.html"), "--allow-bad", *options]
        )
        assert result.exit_code == 0, result.output
        head, views = embedded((tmp_path / "p.html").read_text())
        assert len(head["overview"]["triage"]["suspects"]) == 1  # the error: where there is one, long texts are none
        assert (SECRET in json.dumps([head, views])) == secret


@pytest.mark.parametrize("options", [[], ["--no-text"]])
def test_a_label_page_without_text_is_asked_for(
    options: list[str], session: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`report` and `view` had the option; a label page always quoted the logs."""
    views: list[str] = []

    def looked(server: PageServer) -> None:
        views.append(server.get(server.url[server.url.index("/", 8) :] + "trace/0").body.decode())

    monkeypatch.setattr(PageServer, "serve", looked)
    command = ["label", str(session), "-o", str(tmp_path / "labels.csv"), "--no-browser", "--allow-bad", *options]
    result = CliRunner().invoke(cli, command)
    assert result.exit_code == 0 and (SECRET in views[0]) == (not options), result.output


@pytest.mark.slow
@pytest.mark.parametrize("labelled", [False, True])
def test_no_address_of_a_served_page_has_a_secret(session: Path, tmp_path: Path, labelled: bool) -> None:
    findings = Findings.of(credit.read(session), {}, text=False)
    labels = Labels(tmp_path / "labels.csv", rater="ann") if labelled else None
    with PageServer(findings, labels=labels) as server:
        threading.Thread(target=server.serve).start()
        try:
            for address in ("", "trace/0", *(["labels"] if labelled else [])):
                with urllib.request.urlopen(server.url + address) as answer:
                    assert SECRET not in answer.read().decode(), address
        finally:
            server.stop()


STATUSES = {f"error: HTTP 500 {SECRET}": "error", f"failed: customer {SECRET}, card 4111": "failed", "ok": "ok",
            f"ok ({SECRET} after 0 errors)": "ok", f"timed out {SECRET}": "timed out", f"{SECRET} denied": "denied",
            f"HTTP 500 Internal Error: {SECRET}": "Error", "not found": "not found", "tool_error": "tool_error",
            f"in progress - {SECRET}": "in progress", f'{{"error": "{SECRET}"}}': "error"}  # fmt: skip
"""What native logs have as statuses, and the word of each."""


@pytest.mark.parametrize("kind", ["message", "tool_call", "tool_result"])
def test_what_stands_behind_the_word_of_a_status_is_text(kind: str, tmp_path: Path) -> None:
    """`failed: customer Jane Doe, card 4111` was taken for a name: a page without text had it, and no excerpt."""
    events = [
        {"id": f"e{i}", "type": kind, "agent": "worker", "status": status, "tool": "pay" if "tool" in kind else None}
        for i, status in enumerate(STATUSES)
    ]
    log = tmp_path / "log.jsonl"
    log.write_text(json.dumps({"trace_id": "t", "task_id": "q", "events": events, "edges": [], "rewards": {}}))
    traces = credit.read(log)
    words = [*STATUSES.values()]
    assert traces.events["status"].to_pylist() == words
    wrong = [word not in ("ok", "not found", "in progress") for word in words]
    assert error_mask(traces).tolist() == wrong
    texts = event_texts(traces, np.arange(len(words)), 600)
    said = [SECRET in status and is_wrong for status, is_wrong in zip(STATUSES, wrong, strict=True)]
    assert [SECRET in text for text in texts] == said, texts
    assert SECRET not in quoted(Findings.of(traces, {}, text=False))
    assert SECRET in quoted(Findings.of(traces, {}))
