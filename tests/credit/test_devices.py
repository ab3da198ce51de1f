"""A batch cut over devices gives the numbers of one device, and the parts need nothing from each other."""

from __future__ import annotations

import dataclasses
import json
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pyarrow.parquet as pq
import pytest
from several_devices import with_devices

import credit
import credit.devices
from credit.laws.trial_batches import SIZES, padded, ragged
from graphs.errors import CreditError

COLLECTIVES = re.compile(r"all-reduce|all-gather|all-to-all|reduce-scatter|collective")


def on_eight_devices(*command: str) -> str:
    done = subprocess.run([sys.executable, *command], env=with_devices(8), capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("evidence", [False, pytest.param(True, marks=pytest.mark.study)])
def test_a_method_of_each_scope_on_eight_devices_equals_one_device(evidence: bool) -> None:
    """How a batch is cut depends on the scope and the evidence; `test_scopes` tries groups alone with every method."""
    kinds = {(method.scope, evidence and method.needs): name for name, method in reversed(credit.METHODS.items())}
    out = on_eight_devices(str(Path(__file__).with_name("devices_trial.py")), *kinds.values())
    results = [json.loads(line) for line in out.splitlines()]
    assert [result["method"] for result in results] == list(kinds.values())
    assert {result["method"]: result["differs"] for result in results if result["differs"]} == {}


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("scope", ["batch", "group"])
def test_batches_of_one_shape_are_compiled_once(scope: str) -> None:
    """Each call compiled the method anew: 100 batches of a training run, 100 compilations."""
    traced = []

    def own(graph: Any, reward: Any, *, event_reward: Any = None, by: str = "task") -> credit.Credit:
        traced.append(by)
        return credit.rloo(graph, reward, event_reward=event_reward, by=by)

    method = dataclasses.replace(credit.METHODS["rloo"], fn=own, scope=scope)
    for reward in ([1.0, 0.0], [0.0, 1.0]):
        _, _, rows = credit.from_columns(group=["q", "q"], trace=[0, 1], reward=reward)
        for by in ("task", "task,agent"):
            result = credit.devices.run(rows, method, by=by)
            np.testing.assert_array_equal(result.advantage, credit.run(rows, credit.METHODS["rloo"], by=by).advantage)
    assert len(traced) == 2


COMPILED = """
import jax, numpy as np
import credit, credit.devices
from credit.laws.trial_batches import SIZES, padded, ragged
from estimators.composition.exact import exact_partition

def ledger(graph, reward):
    cells = credit.rloo(graph, reward).credit[:, None]
    return exact_partition(cells[:, 0], graph.trace_ids, graph.event_mask, reward)

batch = padded(ragged(0, {"context": "event", "node": "event"}), SIZES)
placed = credit.devices.place(batch.graph)
reward = placed.traces(batch.reward)
context, node = (placed.events(batch.evidence[name], ids=True) for name in ("context", "node"))
calls = {
    "rloo": (credit.rloo, reward),
    "dr_mas": (credit.dr_mas, reward),
    "c3": (lambda graph, reward, c, n: credit.c3(graph, reward, context=c, node=n), reward, context, node),
    "ledger": (ledger, reward),
    "shared": (lambda graph, reward: jax.lax.psum(reward, "groups"), reward),
}
for name, (fn, *arrays) in calls.items():
    print("==", name)
    print(credit.devices.over_groups(fn, placed).lower(placed.graph, *arrays).compile().as_text())
"""


@pytest.mark.study
def test_compiled_methods_and_the_partition_do_not_communicate() -> None:
    _, *texts = re.split(r"^== (\w+)$", on_eight_devices("-c", COMPILED), flags=re.MULTILINE)
    compiled = dict(zip(texts[::2], texts[1::2], strict=True))
    assert COLLECTIVES.search(compiled.pop("shared"))  # the search finds a collective where there is one
    assert {name for name, text in compiled.items() if COLLECTIVES.search(text)} == set()
    assert set(compiled) == {"rloo", "dr_mas", "c3", "ledger"}


OPTIONS = """
import sys
import jax, numpy as np
import credit, credit.devices
from credit.laws.subject import differ, numbers
from credit.methods.option_texts import parse_options

assert len(jax.devices()) == 8
traces = credit.read(sys.argv[1])
calls = [(name, parse_options(name, [text])) for name, m in credit.METHODS.items() for text in m.scope_by_option]
for name, options in [*calls, ("turn_baseline", {}), ("c3", {}), ("off_policy", {})]:
    one, many = credit.run(traces, name, **options), credit.devices.run(traces, name, **options)
    found, expected = ({k: np.asarray(v) for k, v in numbers(of).items()} for of in (many, one))
    print(name, "=", differ(found, expected, np.ones(traces.graph.num_events, bool)))
    if name == "turn_baseline":
        for a, b in zip(many.recursion.values, one.recursion.values):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-5, atol=1e-6)
"""


@pytest.mark.study
def test_options_and_shared_ids_give_the_numbers_of_one_device(tmp_path: Path) -> None:
    """Options that take the whole batch, errors that are pooled over it, and contexts that several groups share."""
    rng, lines = np.random.default_rng(0), []
    for number in range(18):
        count = int(rng.integers(2, 6))
        events = [
            {"id": f"e{k}", "type": "message", "agent": f"a{k % 2}", "value": float(rng.random()), "context": "root"}
            | {"stop_propensity": 0.3, "spawn_propensity": 0.2}
            | {"node": f"n{number % 3}" if k == 0 else f"{number}-{k}", "propensity": 0.3, "target_propensity": 0.4}
            | {"alternative": f"n{number % 3}" if k == 0 else "only"}
            for k in range(count)
        ]
        events[-1]["type"] = "stop" if number % 3 else "message"
        trace = {"trace_id": f"t{number}", "task_id": f"q{number % 3 % 2}", "model": "ab"[number % 2], "events": events}
        lines.append(json.dumps(trace | {"rewards": {"team": float(rng.random())}}) + "\n")
    log = tmp_path / "log.jsonl"
    log.write_text("".join(lines))
    said = on_eight_devices("-c", OPTIONS, str(log)).splitlines()
    assert len(said) == 11 and [line for line in said if not line.endswith(" = ")] == []


@pytest.mark.study
def test_two_processes_give_the_table_of_one(tmp_path: Path) -> None:
    """Methods of scope "group" bit for bit, those of scope "batch" by sums over both; different batches are refused."""
    rng = np.random.default_rng(0)
    lines = []
    for number in range(24):
        count = int(rng.integers(1, 6))
        events = [{"id": f"e{k}", "type": "message", "agent": f"a{k % 2}"} for k in range(count)]
        trace = {"trace_id": f"t{number}", "task_id": f"q{number % 5}", "events": events}
        lines.append(json.dumps(trace | {"rewards": {"team": float(rng.random())}}) + "\n")
    log = tmp_path / "log.jsonl"
    log.write_text("".join(lines))
    exact, near = ("rloo", "dr_mas"), ("reinforce_batch",)
    with socket.create_server(("localhost", 0)) as free:
        port = free.getsockname()[1]
    trial = str(Path(__file__).with_name("processes_trial.py"))
    started = [
        subprocess.Popen(
            [sys.executable, trial, str(port), "2", str(number), str(log), str(tmp_path), *exact, *near],
            env=with_devices(2), stderr=subprocess.PIPE, text=True,
        )
        for number in range(2)
    ]  # fmt: skip
    try:
        said = [process.communicate(timeout=600)[1] for process in started]
    finally:
        for process in started:
            process.kill()
    assert [process.returncode for process in started] == [0, 0], said
    traces = credit.read(log)
    for method in (*exact, *near):
        expected = credit.table(traces, credit.run(traces, method))
        for number in range(2):
            found = pq.read_table(tmp_path / f"{method}-{number}.parquet")
            if method in exact:
                assert found.to_pylist() == expected.to_pylist()
            else:
                np.testing.assert_allclose(found["advantage"], expected["advantage"], rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_one_device_gives_what_run_gives() -> None:
    graph, reward, rows = credit.from_columns(
        group=["q", "q", "r", "r"], trace=[0, 1, 2, 3], reward=[1.0, 0.0, 0.5, 0.25]
    )
    for method in ("rloo", "reinforce_batch"):
        spread = credit.devices.run(rows, method)
        np.testing.assert_allclose(spread.advantage, credit.run(rows, method).advantage, rtol=1e-6)
        assert isinstance(credit.table(rows, spread).column("advantage").to_pylist(), list)
    own = credit.devices.run(rows, lambda graph, reward, *, ranks=(): credit.rloo(graph, reward), ranks=(1, 2))
    np.testing.assert_array_equal(own.advantage, credit.rloo(graph, reward).advantage)


def test_refusals() -> None:
    _, reward, rows = credit.from_columns(group=["q"], trace=[0], reward=[1.0])
    with pytest.raises(CreditError, match="no trace has an outcome"):
        credit.devices.run(dataclasses.replace(rows.traces, reward=np.full_like(reward, np.nan)), "rloo")
    with pytest.raises(
        CreditError, match=r"leaf is an array of shape \(128,\); devices take arrays of log evidence only"
    ):
        credit.devices.run(rows, "c3_magrpo", leaf=np.ones(128, bool))
    batch = padded(ragged(0, {}), SIZES)
    with pytest.raises(CreditError, match="devices is empty"):
        credit.devices.place(batch.graph, [])
    placed = credit.devices.place(batch.graph, jax.local_devices()[:1])
    with pytest.raises(CreditError, match="first axis of 256"):
        placed.events(np.zeros(3))


@pytest.mark.slow
def test_the_blocks_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runs").mkdir()
    event = {"id": "e", "type": "message", "agent": "a"}
    traces = [{"trace_id": str(i), "task_id": "q", "events": [event], "rewards": {"team": i}} for i in range(2)]
    (tmp_path / "runs" / "log.jsonl").write_text("\n".join(map(json.dumps, traces)))
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).resolve().parents[2] / "docs" / "clusters.md"
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        exec(compile(block, "clusters.md", "exec"), names)
    np.testing.assert_allclose(names["placed"].cut.join_events(names["advantage"])[:2], [-1.0, 1.0])
