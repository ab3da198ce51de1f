"""What a function of a user's own may not return: refused by every door that runs it."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import credit
from credit.bench.snr import QUICK, measure
from credit.bench.snr_schemes import scheme_of
from credit.bench.snr_theory import Setting
from credit.cli import cli
from credit.methods.own_functions import load_function
from credit.methods.own_results import FINITE, check_finite, check_form
from estimators.base import REASONS, Reason
from graphs.errors import CreditError

MODULE = """
import dataclasses
import jax.numpy as jnp
import credit

def short(graph, reward):
    result = credit.rloo(graph, reward)
    return dataclasses.replace(result, credit=result.credit[:-1])

def traces(graph, reward):
    return dataclasses.replace(credit.rloo(graph, reward), credit=reward)

def nan(graph, reward):
    return dataclasses.replace(credit.rloo(graph, reward), baseline=jnp.full(graph.num_events, jnp.nan))

def nan_of_two(graph, reward):
    result = credit.rloo(graph, reward)
    of_trace = jnp.sum(graph.trace_mask) <= 2
    return dataclasses.replace(result, baseline=jnp.where(of_trace, jnp.nan, result.baseline))

def negated(graph, reward):
    result = credit.rloo(graph, reward)
    return dataclasses.replace(result, credit=-result.credit, baseline=-result.baseline)

def same(graph, reward):
    return credit.rloo(graph, reward)

def refusing(graph, reward):
    result = credit.rloo(graph, reward)
    return dataclasses.replace(result, reason=jnp.full_like(result.reason, 6))

def halved(graph, reward):
    result = credit.rloo(graph, reward)
    alternate = jnp.arange(graph.num_events) % 2 == 0
    return dataclasses.replace(result, reason=jnp.where(alternate & (result.reason == 0), 6, result.reason))
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "badly_made.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    return "badly_made"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"unit": "swarm"}, "unit is 'swarm'; expected one of trace, role, agent, turn, event"),
        ({"estimand": "vibe"}, "estimand is 'vibe'; expected one of increment"),
        ({"scale": np.ones(3, np.float32)}, r"scale has shape \(3,\); expected \(128,\), one entry for each event"),
        ({"credit": np.ones(128, np.complex64)}, "credit is complex"),
    ],
)
def test_a_wrong_form_is_named(change: dict[str, object], words: str) -> None:
    graph, reward, _ = credit.from_columns(group=["q"] * 2, trace=["a", "b"], reward=[1.0, 0.0])
    with pytest.raises(CreditError, match=words):
        check_form("mine", graph, dataclasses.replace(credit.rloo(graph, reward), **change))
    with pytest.raises(CreditError, match="mine returned 3; expected a Credit"):
        check_form("mine", graph, 3)


def test_what_is_no_credit_is_named_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`VmapTracer(aval=float64[12], …)` was named; `credit.run` raised an AttributeError."""
    returned = {
        "result.advantage": r"an array of shape \(\d+,\)",
        "(result.credit, 3)": r"a tuple of an array of shape \(\d+,\), 3",
        "{'advantage': result.advantage}": r"a dict with the keys \['advantage'\]",
        "None": "None",
        "type('Own', (), {})()": "an object of the class Own",
    }
    functions = (
        f"def own_{number}(graph, reward):\n    result = credit.rloo(graph, reward)\n    return {what}\n"
        for number, what in enumerate(returned)
    )
    (tmp_path / "bare.py").write_text("\n".join(["import credit", *functions]))
    monkeypatch.chdir(tmp_path)
    rows = credit.from_columns(group=[0, 0], trace=["a", "b"], reward=[1.0, 0.0])[2]
    for number, words in enumerate(returned.values()):
        asked = ["bench", "bias", "-m", f"bare:own_{number}", "--world", "relay-and", "--group-size", "2"]
        said = CliRunner().invoke(cli, asked).stderr
        assert re.search(f"method 'bare:own_{number}' returned {words}; expected a Credit", said), said
        with pytest.raises(CreditError, match=f"returned {words}; expected a Credit"):
            credit.run(rows, load_function(f"bare:own_{number}"))


@pytest.mark.slow
def test_valid_numbers_are_finite() -> None:
    graph, reward, _ = credit.from_columns(group=["q"] * 2, trace=["a", "b"], reward=[1.0, 0.0])
    result = credit.rloo(graph, reward)
    check_finite("mine", result)
    check_finite("mine", dataclasses.replace(result, credit=np.where(result.valid, result.credit, np.nan)))
    with pytest.raises(CreditError, match="the advantage of event 0 is nan and marked valid, and 1 more"):
        check_finite("mine", dataclasses.replace(result, credit=np.full(graph.num_events, np.nan, np.float32)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "bench"),
    [
        ("short", ("bias", "--world", "relay-and")),
        ("traces", ("bias", "--world", "relay-and")),
        ("short", ("snr", "--quick", "--lengths", "10")),
    ],
)
def test_benchmarks_refuse_a_wrong_shape(module: str, fault: str, bench: tuple[str, ...]) -> None:
    result = CliRunner().invoke(cli, ["bench", *bench, "-m", f"{module}:{fault}"])
    assert result.exit_code == 1 and f"method '{module}:{fault}': credit has shape" in result.output


@pytest.mark.slow
def test_no_ratio_is_taken_of_nan(module: str) -> None:
    with pytest.raises(CreditError, match="nan and marked valid"):
        measure(scheme_of(f"{module}:nan"), 10, Setting(group=8), QUICK, 0)


def test_a_table_is_not_written_with_numbers_that_are_none(module: str, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("trace,group,reward,event\na,q,1,0\nb,q,0,0\n")
    result = CliRunner().invoke(cli, ["assign", "log.csv", "-m", f"{module}:nan", "-o", "out.csv"])
    notice, error = result.output.splitlines()
    assert result.exit_code == 1 and error.startswith(f"error: method '{module}:nan': the advantage of event 0")
    assert notice.startswith(f"{module}:nan: run as it is.") and notice.endswith(f"credit check {module}:nan")
    assert not (tmp_path / "out.csv").exists()


def test_a_report_has_what_a_method_raises(module: str) -> None:
    def failing(graph: object, reward: object) -> object:
        raise KeyError("mood")

    report = credit.check(failing, strict=False)  # type: ignore[arg-type]
    assert "KeyError: 'mood'" in str(report)


def test_a_wrong_sign_is_shown_and_own_functions_share_their_draws(module: str) -> None:
    def point(name: str) -> float:
        return measure(scheme_of(f"{module}:{name}"), 10, Setting(group=8), QUICK, 0).snr

    assert point("negated") == pytest.approx(-point("same")) and point("same") > 0.2


def test_the_folder_of_a_measurement_is_made(module: str, tmp_path: Path) -> None:
    arguments = ["bench", "snr", "--quick", "--lengths", "10", "-m", f"{module}:same", "-o", "new/deep"]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "new" / "deep" / "snr.json").stat().st_size > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "bench",
    [
        ("bias", "--world", "relay-and", "-m"),
        ("snr", "--quick", "--lengths", "10", "-m"),
        ("truth", "--world", "additive", "--traces", "16", "-m"),
        ("train", "--quick", "--tasks", "bottleneck", "-m"),
    ],
    ids=lambda bench: bench[0],
)
def test_every_benchmark_refuses_an_advantage_that_is_no_number(module: str, bench: tuple[str, ...]) -> None:
    """`bench bias` printed "undefined / undefined", `bench train` a difference of +0.000."""
    result = CliRunner().invoke(cli, ["bench", *bench, f"{module}:nan"])
    assert result.exit_code == 1 and f"{module}:nan" in result.output and FINITE in " ".join(result.output.split())


@pytest.mark.slow
@pytest.mark.parametrize(
    "bench",
    [
        ("bias", "--world", "relay-and", "-m", "NAN", "-m", "rloo", "--plot", "bias.svg"),
        ("truth", "--world", "additive", "--traces", "16", "-m", "NAN", "-m", "rloo", "--plot", "truth.svg"),
        ("train", "--quick", "--tasks", "bottleneck", "-m", "NAN,rloo", "--seeds", "1", "--steps", "2"),
        ("robustness", "-m", "NAN", "-m", "rloo"),
    ],
    ids=lambda bench: bench[0],
)
def test_a_benchmark_leaves_out_what_is_no_number_and_measures_the_others(module: str, bench: tuple[str, ...]) -> None:
    """One method without numbers stopped the whole call."""
    asked = [part.replace("NAN", f"{module}:nan") for part in bench]
    result = CliRunner().invoke(cli, ["bench", *asked])
    assert result.exit_code == 0, result.output
    assert "rloo" in result.stdout
    assert f"{module}:nan is left out in " in result.stdout.replace(", size 2,", "") and FINITE in result.stdout


@pytest.mark.slow
def test_a_size_without_numbers_leaves_the_other_sizes(module: str) -> None:
    """A median of two of three others is no number in groups of two."""
    asked = ["bench", "bias", "--world", "relay-and", "--world", "spawn-and", "-m", f"{module}:nan_of_two"]
    result = CliRunner().invoke(cli, asked)
    assert result.exit_code == 0, result.output
    assert f"{module}:nan_of_two, size 2, is left out in relay-and, spawn-and: method" in result.stdout
    assert result.stdout.count("left out / 0") == 2, result.stdout
    kept = json.loads(CliRunner().invoke(cli, [*asked, "--json"]).stdout)["rows"]
    assert {row[2]: row[3] is None for row in kept} == {2: True, 3: False}


def test_a_point_that_was_cut_off_is_named(module: str, tmp_path: Path) -> None:
    """`bench snr` raised a traceback of JSON where `bench train` named its file."""
    arguments = ["bench", "snr", "--quick", "--lengths", "10", "-m", "grpo", "-o", "out"]
    assert CliRunner().invoke(cli, arguments).exit_code == 0
    (point,) = (tmp_path / "out" / "points").iterdir()
    point.write_text(point.read_text()[:40])
    again = CliRunner().invoke(cli, arguments)
    assert again.exit_code == 1 and f"{point.name} cannot be resumed" in again.output, again.output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bench", "name"),
    [
        (("bias", "--world", "relay-and", "-m"), "refusing"),
        (("bias", "--world", "relay-and", "-m"), "halved"),
        (("snr", "--quick", "--lengths", "10", "-m"), "refusing"),
        (("snr", "--quick", "--lengths", "10", "-m"), "halved"),
        (("truth", "--world", "additive", "--traces", "16", "-m"), "refusing"),
        (("truth", "--world", "additive", "--traces", "16", "-m"), "halved"),
        (("train", "--quick", "--tasks", "bottleneck", "-m"), "refusing"),
        (("train", "--quick", "--tasks", "bottleneck", "-m"), "halved"),
    ],
    ids=lambda part: part[0] if isinstance(part, tuple) else part,
)
def test_every_benchmark_says_why_decisions_have_no_number(module: str, bench: tuple[str, ...], name: str) -> None:
    """Of refused decisions `bench bias` printed a bias of 1, `bench truth` "undefined", `bench train` nothing."""
    result = CliRunner().invoke(cli, ["bench", *bench, f"{module}:{name}"])
    said = " ".join(result.output.split())
    assert f"most often: {REASONS[Reason.TOO_FEW]}" in said and f"{module}:{name}" in said, said
    if bench[0] == "bias" and name == "refusing":
        assert "refused / refused" in said
