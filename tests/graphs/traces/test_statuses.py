"""Which statuses say that their event went wrong: by words, by codes of HTTP, and not where a word is negated."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from credit.cli import cli
from graphs.traces.statuses import ERRORS, FINE, says_error, says_fine, status_text, status_word

_WRONG = """HTTP 429: Too Many Requests|429 Too Many Requests|HTTP 500|http_503|HTTP/1.1 502 Bad Gateway|rate_limited
status_code=503|status: 404|503|503: upstream|throttled|ThrottlingException|canceled|CANCELLED|aborted|killed|OOMKilled
quota exceeded|RESOURCE_EXHAUSTED|DEADLINE_EXCEEDED|Rate limited|failed: 0 errors|3 errors, 0 failed|10 errors
error: no errors found|timed out|timed_out|err|fail|tool err: 5|usage_limit_exceeded|no answer: timeout
error: column cust_id does not exist"""
_FINE = """ok|OK|200|HTTP 200|201 Created|status_code=204|completed without errors|no error|no_error|no errors
0 errors|0 errors, 0 failed|zero failures|not rejected|without any errors|NO_ERROR|success|completed|0"""
_NEITHER = "running|deferred|failover|declined|not found|450 rows|fetched 500 rows|took 500 ms|1404|500ms"
WRONG, FINE_ONES, NEITHER = (listed.replace("\n", "|").split("|") for listed in (_WRONG, _FINE, _NEITHER))


@pytest.mark.parametrize("status", WRONG + FINE_ONES + NEITHER)
def test_a_status_and_its_word_say_the_same_of_the_event(status: str) -> None:
    """`HTTP 429: Too Many Requests` was no error, and `completed without errors` was one."""
    word = status_word(status)
    assert (says_error(status), says_error(word)) == (status in WRONG,) * 2, word
    assert says_fine(word) == (status in FINE_ONES), word


def test_no_word_is_of_both_lists() -> None:
    assert all(map(says_error, ERRORS)) and all(map(says_fine, FINE))
    assert not any(map(says_error, FINE)) and not any(map(says_fine, ERRORS))


def test_a_status_may_be_a_long_text_of_a_stranger() -> None:
    for status in ("x" * 100_000, "no " * 30_000, "-" * 100_000 + "error", "status code" * 10_000):
        assert says_error(status_word(status)) == status.endswith("error")


def test_a_code_stays_with_its_text() -> None:
    said = {"HTTP 503: upstream": "503", "502 Upstream": "502", "503": "503", "error: HTTP 500": "error"}
    assert [status_word(status) for status in said] == [*said.values()]
    assert [status_text(status) for status in said] == ["HTTP 503: upstream", "502 Upstream", "", "HTTP 500"]


def test_validate_says_which_words_count_as_errors(tmp_path: Path) -> None:
    """A log whose words are of no list had "no errors", and nothing said so."""
    stated = [*["ok"] * 3, "HTTP 503", "declined", "declined", "error: no such table", None]
    events = [{"id": f"e{i}", "agent": "a", "type": "message", "status": one} for i, one in enumerate(stated)]
    trace = {"trace_id": "t", "task_id": "q", "events": events, "edges": [], "rewards": {"team": 1}}
    (log := tmp_path / "log.jsonl").write_text(json.dumps(trace))
    shown = " ".join(CliRunner().invoke(cli, ["validate", str(log)]).stdout.split())
    assert "503 (1), error (1) count as errors; ok (3) do not; declined (2) are of no list and do not" in shown
    counted = json.loads(CliRunner().invoke(cli, ["validate", str(log), "--json"]).stdout)["statuses"]
    assert counted == {"ok": 3, "declined": 2, "503": 1, "error": 1}


def test_the_docs_list_the_words() -> None:
    page = (Path(__file__).parents[3] / "docs/formats/native.md").read_text()
    (said,) = [" ".join(one.split()) for one in page.split("\n\n") if one.startswith("**Errors**")]
    for words in (("error", "err", *ERRORS[1:]), FINE):
        assert "/".join(words) in said
