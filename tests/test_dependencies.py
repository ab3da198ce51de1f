"""Upper bounds where a major version broke something, pinned versions for CI, and a look for known vulnerabilities."""

from __future__ import annotations

import ast
import itertools
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
CI = ROOT / ".ci"


@pytest.fixture
def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return found


@pytest.fixture
def ci() -> Path:
    if not CI.is_dir():
        pytest.skip("what runs CI is not part of the source distribution")
    return CI


def name_of(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def test_each_dependency_has_a_lower_bound_and_three_an_upper(project: dict[str, Any]) -> None:
    bounded = {name_of(one) for one in project["dependencies"] if "<" in one}
    assert bounded == {"numpy", "networkx", "click"}
    assert all(">=" in one for one in project["dependencies"])


def test_trainers_whose_private_names_are_overridden_have_an_upper_bound(project: dict[str, Any]) -> None:
    """The version that each integration names is allowed, and the next one that may rename is not."""
    first = [extra[0] for extra in project["optional-dependencies"].values()]
    texts = [path.read_text() for path in (ROOT / "credit" / "integrations").glob("*.py")]
    against = {found for text in texts for found in re.findall(r"Written against ([\w -]+) (\d[\d.]*\d)", text)}
    assert len(against) > 10
    for trainer, version in against:
        name = trainer.replace(" ", "").lower()
        if name == "verifiers":  # its integration fills public fields
            continue
        (wanted,) = [one for one in first if name_of(one).removeprefix("google-").removeprefix("openpipe-") == name]
        least, below = re.findall(r"[0-9.]+", wanted.removeprefix(name_of(wanted)))
        key = [tuple(map(int, number.split("."))) for number in (least, version, below)]
        assert key[0] <= key[1] < key[2] and "<" in wanted, (wanted, version)


def test_private_names_of_others_are_hooks() -> None:
    """`require_hooks` refuses a trainer that has renamed one; `getattr` with a default would take another way in
    silence, as it did with OmegaConf's `_get_root`."""
    for file in (ROOT / "credit" / "integrations").rglob("*.py"):
        nodes = list(ast.walk(ast.parse(file.read_text())))
        known = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
        tuples = [name for node in nodes if isinstance(node, ast.Tuple) for name in node.elts]
        known |= {str(name.value) for name in tuples if isinstance(name, ast.Constant)}
        known.add("_replace")  # of named tuples, which Python documents
        read = [(node.attr, node.value) for node in nodes if isinstance(node, ast.Attribute)]
        calls = [node.args for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func) == "getattr"]
        read += [(str(name.value), owner) for owner, name, *_ in calls if isinstance(name, ast.Constant)]
        of_others = {name for name, owner in read if re.match("_[^_]", name) and ast.unparse(owner) != "self"}
        assert of_others <= known, (file.name, of_others - known)


def test_ci_tries_the_lowest_version_of_each_package(project: dict[str, Any], ci: Path) -> None:
    printed = subprocess.run([sys.executable, ci / "lowest.py"], capture_output=True, text=True, check=True).stdout
    bounds = dict(line.split("==") for line in printed.splitlines())
    extras = [project["optional-dependencies"][name] for name in ("test", "plot", "pandas", "critic")]
    wanted = [
        one for one in itertools.chain(project["dependencies"], *extras) if name_of(one) != name_of(project["name"])
    ]
    assert len(bounds) == len(wanted)
    assert all(f"{name_of(one)}>={bounds[name_of(one)]}" == one.split(",")[0].lower() for one in wanted)


@pytest.mark.parametrize("extra", ["", "plot", "critic", "pandas", "test", "docs", "run-notebooks"])
def test_ci_pins_what_is_required(project: dict[str, Any], ci: Path, extra: str) -> None:
    pins = dict(line.split("==") for line in (ci / "constraints.txt").read_text().split("\n") if "==" in line)
    pinned = {name_of(name): version for name, version in pins.items()}
    wanted = project["optional-dependencies"][extra] if extra else project["dependencies"]
    for one in wanted:
        name = name_of(one)
        if name == name_of(project["name"]):
            continue
        version = tuple(map(int, re.findall(r"\d+", pinned[name])))
        for bound, least in re.findall(r"(>=|<)([0-9.]+)", one.split(";")[0]):
            within = version >= tuple(map(int, least.split("."))) if bound == ">=" else version < (int(least),)
            assert within, (one, pinned[name])


@pytest.mark.parametrize(
    ("printed", "code", "wanted"),
    [
        ("No known vulnerabilities found", 0, 0),
        ("Found 2 known vulnerabilities in 1 package\nx 1.0 CVE-1 denial of service", 1, 1),
        ("ERROR: HTTPSConnectionPool: Max retries exceeded: connection refused", 1, 0),
        ("x could not be audited", 1, 0),
    ],
)
def test_a_known_vulnerability_fails_ci_and_a_database_out_of_reach_is_said(
    ci: Path, tmp_path: Path, printed: str, code: int, wanted: int
) -> None:
    """The function of the stage, with what pip-audit prints in its place."""
    script = (ci / "run").read_text()
    start = script.index("audit() {")
    function = script[start : script.index("\n}\n", start) + 3]
    assert 'stage "pip-audit" pinned audit' in script and "PIP_CONSTRAINT=$PWD/.ci/constraints.txt" in script
    (tmp_path / "bin").mkdir()
    (tmp_path / "tests" / "integrations").mkdir(parents=True)
    stubs = {"tests/integrations/install": "exit 0", "bin/pip-audit": f"printf '%s\\n' '{printed}'; exit {code}"}
    for name, body in stubs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    given = os.environ | {"VENV": str(tmp_path)}
    program = ["bash", "-c", f"set -euo pipefail\n{function}\naudit"]
    done = subprocess.run(program, capture_output=True, text=True, check=False, env=given, cwd=tmp_path)
    assert done.returncode == wanted, done.stderr
    assert ("nothing was audited" in done.stdout) == (code == 1 and wanted == 0)
