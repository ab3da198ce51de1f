"""What a shell sees first: help without anything heavy, completion, the schema."""

from __future__ import annotations

import dataclasses
import json
import math
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from credit.cli import cli
from graphs.errors import CreditError

from .logs import GOOD, ROOT, run


@pytest.mark.slow
@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("args", [["--help"], ["assign", "--help"], ["--version"], ["completion", "zsh"]])
def test_help_imports_nothing_heavy(args: list[str]) -> None:
    script = (
        "import sys\nfrom credit.cli import cli\n"
        f"try: cli({args!r})\nexcept SystemExit as e: assert e.code == 0, e.code\n"
        "heavy = {'jax', 'numpy', 'pyarrow', 'matplotlib', 'networkx', 'pandas', 'torch', 'msgspec', 'rich'}\n"
        "found = heavy & {m.split('.')[0] for m in sys.modules}\nassert not found, found\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout


def test_help_names_every_limit() -> None:
    from graphs.traces.limits import LARGEST_LIMIT, Limits

    told = " ".join(run("assign", "--help").stdout.split())
    names = [field.name.replace("_", "-") for field in dataclasses.fields(Limits)]
    unbroken = told.replace("- ", "-")  # lines of the help may break after a hyphen
    assert f"NAME is {', '.join(names[:-1])} or {names[-1]}." in unbroken
    assert LARGEST_LIMIT == 10**18 - 1 and "from 1 to 10^18 - 1" in told
    assert Limits.parse([f"files={LARGEST_LIMIT}"]).files == LARGEST_LIMIT
    for wrong in ("0", str(LARGEST_LIMIT + 1), "1" + "0" * 5000, "1e3"):
        with pytest.raises(CreditError, match=f"expected an integer from 1 to {LARGEST_LIMIT}"):
            Limits.parse([f"files={wrong}"])


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_name_the_command(shell: str) -> None:
    result = run("completion", shell)
    assert result.exit_code == 0
    assert "_CREDIT_COMPLETE" in result.stdout


def test_completion_knows_methods_and_formats() -> None:
    def complete(words: str) -> str:
        env = {"_CREDIT_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        return CliRunner().invoke(cli, [], env=env, prog_name="credit").output

    assert "plain,rloo" in complete("credit assign --method rl")
    assert "plain,native" in complete("credit validate --format nat")


@pytest.mark.slow
def test_schema_is_a_json_schema() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(run("schema").stdout)
    jsonschema.validators.validator_for(schema).check_schema(schema)
    jsonschema.validate(GOOD[0], schema)


def numbers_of(command: click.Command, name: str = "") -> Iterator[tuple[str, click.ParamType]]:
    """Every option of every command that is a number, with its type."""
    for sub, inner in getattr(command, "commands", {}).items():
        yield from numbers_of(inner, f"{name} {sub}")
    for parameter in command.params:
        if isinstance(parameter.type, click.types.FloatParamType):
            yield f"{name} {parameter.opts[0]}", parameter.type


def test_no_option_takes_what_is_no_finite_number() -> None:
    """click lets NaN into any range: `replay --seconds nan` had no limit, `--score-failed nan` no outcomes.

    A limit may be inf, as in Python: `compose --max-advantage inf` was refused, and `limit=inf` is its advice.
    """
    found = dict(numbers_of(cli))
    assert {" replay --seconds", " compose --max-advantage", " fit critic --lambda"} <= found.keys()
    for name, kind in found.items():
        is_limit = name in (" replay --seconds", " compose --max-advantage")
        assert not is_limit or kind.convert("inf", None, None) == math.inf
        for text in ("nan", "-inf", *["inf"] * (not is_limit)):
            with pytest.raises(click.BadParameter):
                print(name, kind.convert(text, None, None))


def test_help_states_no_range_of_none() -> None:
    """click says "x<=None" of a number without bounds."""
    for command in ("doctor", "metrics", "replay", "decisions"):
        assert "None" not in run(command, "--help").stdout.replace("None:", "")
