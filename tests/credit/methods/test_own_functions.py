"""A fault in a user's own method is one line that names the method, the file, the line and the exception."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import credit
from credit.cli import cli
from graphs.errors import CreditError

BROKEN = """import credit

def centred(graph, reward, *, event_reward=None):
    result = credit.rloo(graph, reward)
    return result.no_such_method()

def refusing(graph, reward, *, event_reward=None):
    raise credit.CreditError("reward has no spread")
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_fault_names_method_file_line_and_exception(folder: Path) -> None:
    (folder / "broken_own.py").write_text(BROKEN)
    _, _, rows = credit.from_columns(group=["q", "q"], trace=[0, 1], reward=[1.0, 0.0])
    with pytest.raises(
        CreditError, match=r"method 'broken_own:centred' failed at .*broken_own\.py:5: AttributeError: "
    ):
        credit.run(rows, "broken_own:centred")
    with pytest.raises(CreditError, match=r"^method 'broken_own:refusing': reward has no spread$"):
        credit.run(rows, "broken_own:refusing")


def test_a_module_that_fails_names_its_line_and_the_command_prints_no_traceback(folder: Path) -> None:
    (folder / "failing_own.py").write_text("x = 1\nraise RuntimeError('two\\nlines')\n")
    log = folder / "log.jsonl"
    event = '{"id": "e", "type": "message", "agent": "a"}'
    log.write_text('{"trace_id": "t", "task_id": "q", "events": [' + event + '], "rewards": {"team": 1.0}}')
    done = CliRunner().invoke(cli, ["assign", str(log), "-m", "failing_own:f", "-o", "out.csv"])
    assert done.exit_code == 1
    line = done.output.strip().splitlines()[-1]
    assert line.startswith("error: method 'failing_own:f' cannot be imported: ")
    assert line.endswith("failing_own.py:2: RuntimeError: two lines")
