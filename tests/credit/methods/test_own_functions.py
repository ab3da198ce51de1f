"""A fault in a user's own method is one line that names the method, the file, the line and the exception."""

from __future__ import annotations

import csv
import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import credit
from credit.bench.bias import measure
from credit.bench.training.training_loop import TrainingSettings
from credit.bench.training.training_runs import run_training
from credit.cli import cli
from credit.integrations import RowAdvantages
from credit.methods.method_page import method_page
from credit.methods.own_functions import load_function, load_named
from credit.methods.registry import METHODS
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


@pytest.mark.slow
def test_a_fault_names_method_file_line_and_exception(folder: Path) -> None:
    (folder / "broken_own.py").write_text(BROKEN)
    _, _, rows = credit.from_columns(group=["q", "q"], trace=[0, 1], reward=[1.0, 0.0])
    with pytest.raises(
        CreditError, match=r"method 'broken_own:centred' failed at .*broken_own\.py:5: AttributeError: "
    ):
        credit.run(rows, "broken_own:centred")
    with pytest.raises(CreditError, match=r"^method 'broken_own:refusing': reward has no spread$"):
        credit.run(rows, "broken_own:refusing")


@pytest.mark.parametrize(
    ("path", "instead"),
    {"Mine.estimate": "Mine().estimate", "Mine.plain": "Mine.plain", "mine.estimate": "mine.estimate"}.items(),
)
def test_a_method_of_a_class_is_told_how_it_gets_a_name(path: str, instead: str, folder: Path) -> None:
    """It said that the module has no 'Mine.estimate', and named functions that are near it."""
    (folder / "of_class.py").write_text(
        "import credit\n\nclass Mine:\n"
        "    def estimate(self, graph, reward):\n        return credit.rloo(graph, reward)\n"
        "    @staticmethod\n    def plain(graph, reward):\n        return credit.rloo(graph, reward)\n"
        "mine = Mine()\n"
    )
    with pytest.raises(CreditError) as caught:
        load_function(f"of_class:{path}")
    assert f"write `own_method = {instead}` in of_class and pass of_class:own_method" in str(caught.value)
    with (folder / "of_class.py").open("a") as file:
        file.write(f"own_method = {instead}\n")
    sys.modules.pop("of_class")
    importlib.invalidate_caches()
    assert load_function("of_class:own_method")


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


def test_what_is_assumed_of_a_function_is_not_printed_as_a_finding(folder: Path) -> None:
    """The page said estimand score, unbiased no and scope batch of whatever function it was asked about."""
    page = method_page("estimators:rloo")
    unknown = ("estimand", "unit", "unbiased", "scope", "cost")
    assert all(page.facts[fact].startswith("not known") for fact in unknown), page.facts
    assert page.method == page.name == "estimators:rloo"
    assert page.facts["status"] == "your own function" and page.facts["computes"].startswith("Leave-one-out")
    assert method_page("rloo").facts["unbiased"] == "yes"


@pytest.mark.slow
def test_a_quadratic_function_is_refused_before_it_takes_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Benchmarks took 10 and 15 GB for a table of all pairs of events, and then the machine."""
    (tmp_path / "pairs.py").write_text(
        "import dataclasses\nimport jax.numpy as jnp\nfrom estimators import rloo\n"
        "def fn(graph, reward, *, event_reward=None):\n"
        "    alike = graph.agent_ids[:, None] == graph.agent_ids[None, :]\n"
        "    plain = rloo(graph, reward)\n"
        "    return dataclasses.replace(plain, credit=plain.credit + 0 * jnp.sum(alike.astype(jnp.float32), axis=1))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    graph, _, rows = credit.from_columns(group=["q"] * 600, trace=range(600), reward=[float(i % 2) for i in range(600)])
    n = graph.num_events
    assert credit.run(rows.traces, "pairs:fn").credit.shape == (n,)
    monkeypatch.setattr("credit.methods.own_memory.room", lambda: 4 * n * n - 1)
    with pytest.raises(CreditError, match=f"method 'pairs:fn' makes an array of {n:,} x {n:,} numbers"):
        credit.run(rows.traces, "pairs:fn")
    monkeypatch.setattr("credit.methods.own_memory.room", lambda: 4 * n * n)
    assert credit.run(rows.traces, "pairs:fn").credit.shape == (n,)


def test_a_misspelt_function_names_the_nearest(folder: Path) -> None:
    """Of a method of the library the nearest names were given, of a function of one's own none."""
    (folder / "near_own.py").write_text("def second_least(graph, reward):\n    raise NotImplementedError\n")
    with pytest.raises(CreditError, match=r"module 'near_own' has no 'secondleast'\. Did you mean second_least\?"):
        load_function("near_own:secondleast")


def test_a_function_in_place_of_its_name_is_refused_in_words() -> None:
    """`bias.measure` and `run_training` raised a bare TypeError."""
    expected = "expected .*such as 'rloo' or 'mine:estimator'"
    with pytest.raises(CreditError, match=f"name is .*{expected}"):
        measure(credit.rloo, "relay-and", 2)  # type: ignore[arg-type]
    with pytest.raises(CreditError, match=f"signals is .*{expected}"):
        run_training(["rloo", credit.rloo], ["pivotal"], 1, TrainingSettings(steps=2))  # type: ignore[list-item]


def test_a_seed_that_is_no_number_is_refused_in_plain_words() -> None:
    """'x' is not a valid integer range."""
    found = CliRunner().invoke(cli, ["bench", "snr", "--seed", "x"])
    assert found.exit_code and "'x' is not a valid integer." in found.output


def test_a_module_lists_what_it_defines_and_no_option_is_any(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ "There are 8" counted what a module imports and keeps to itself, and an option was "float or Any"."""
    (tmp_path / "mine_with_imports.py").write_text(
        "import functools\nimport numpy as np\nfrom estimators import gae, rloo\nfrom graphs.worlds import TeamWorld\n"
        "def first(graph, reward):\n    return rloo(graph, reward)\nsecond = functools.partial(first)\n"
        "def _finish(graph):\n    pass\n"
    )
    monkeypatch.chdir(tmp_path)
    for kind in ("method", "world"):
        with pytest.raises(CreditError, match=r"There are 2: first, second\.$"):
            load_named("mine_with_imports:zzz", kind)
    options = [text for name in METHODS for text in method_page(name).options.values()]
    assert "default 1e-05; float" in options and not any("Any" in text or "str or str" in text for text in options)


def test_a_published_fault_names_no_path_of_somebodys_machine(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A caption cut what went wrong, behind the whole path of a module that stood outside of the working folder."""
    (folder / "helpers").mkdir()
    (folder / "elsewhere").mkdir()
    (folder / "helpers" / "broken_outside.py").write_text(BROKEN)
    monkeypatch.syspath_prepend(folder / "helpers")
    monkeypatch.chdir(folder / "elsewhere")
    _, _, rows = credit.from_columns(group=["q", "q"], trace=[0, 1], reward=[1.0, 0.0])
    place = re.escape(str(Path("helpers", "broken_outside.py")))
    with pytest.raises(CreditError, match=rf"^method 'broken_outside:centred' failed at {place}:5: AttributeError: "):
        credit.run(rows, "broken_outside:centred")


NEEDY = """import dataclasses
import credit

def less(graph, reward, *, own_number):
    result = credit.rloo(graph, reward)
    return dataclasses.replace(result, baseline=result.baseline + own_number)

def less_of_mine(graph, reward, *, hardness):
    return less(graph, reward, own_number=hardness)
"""


def test_a_column_of_ones_own_is_evidence_of_ones_own_method(folder: Path) -> None:
    """No column, and no array of another name than those of the library's evidence, could be."""
    (folder / "needy_own.py").write_text(NEEDY)
    hardness = [0.25, 0.5, 0.125, 0.75]
    columns = {"group": [*"qqqq"], "trace": [*"baba"], "agent": [*"ssss"], "reward": [1.0, 0.0, 1.0, 0.0]}
    rows = credit.from_columns(**columns, evidence={"own_number": hardness})[2]
    expected = [0.75, -1.5, 0.875, -1.75]
    assert rows.gather(credit.run(rows, "needy_own:less")).tolist() == expected
    array = np.zeros(rows.events, np.float32)
    array[rows.event] = hardness
    assert rows.gather(credit.run(rows, "needy_own:less_of_mine", hardness=array)).tolist() == expected
    with pytest.raises(CreditError, match=r"'hardness': logs have no such key: call it own_number"):
        credit.run(rows, "needy_own:less_of_mine")
    with pytest.raises(CreditError, match=r"hardness has 4 numbers, .*from_columns, as evidence={'own_number'"):
        credit.run(rows, "needy_own:less_of_mine", hardness=np.array(hardness))
    own = RowAdvantages(load_function("needy_own:less"))
    reward = np.array(columns["reward"])
    assert own(**columns | {"reward": reward}, evidence={"own_number": hardness}).advantages.tolist() == expected
    with pytest.raises(CreditError, match=r"method 'less' needs own_number; pass a column each in evidence="):
        own(**columns | {"reward": reward})
    table = pa.table({**columns, "hard": hardness})
    pq.write_table(table, folder / "rows.parquet")
    command = ["assign", "rows.parquet", "-m", "needy_own:less", "--columns", "own_number=hard", "-o", "out.csv"]
    assert CliRunner().invoke(cli, command).exit_code == 0
    written = csv.DictReader((folder / "out.csv").read_text().splitlines())
    assert sorted(float(row["advantage"]) for row in written) == sorted(expected)


def test_no_benchmark_is_named_where_no_world_has_the_evidence(folder: Path) -> None:
    """`assign` named `credit bench bias`, which leaves a method of `own_number` out of every world."""
    plain = "\ndef plain(graph, reward):\n    return credit.rloo(graph, reward)\n"
    (folder / "needy_or_not.py").write_text(NEEDY + plain)
    (folder / "log.csv").write_text("trace,group,reward,own_number\na,q,1,0.5\nb,q,0,0.25\n")
    for method, named in (("needy_or_not:less", False), ("needy_or_not:plain", True)):
        done = CliRunner().invoke(cli, ["assign", "log.csv", "-m", method, "-o", "out.csv"])
        assert done.exit_code == 0 and "may be biased: that is not known" in done.stderr, done.output
        assert (f"`credit bench bias --method {method}` computes it" in done.stderr) == named
