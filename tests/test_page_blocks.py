"""Every block of Python on a page is run by some test, and the command line takes every command of a page."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import jax
import numpy as np
import pytest
from click.testing import CliRunner

import credit
import estimators
from credit.cli import cli
from credit.laws import LAWS
from estimators.critic.train import Settings
from graphs.worlds import World
from graphs.writers import native

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
RECORDINGS = TESTS / "recordings"
PAGES = {
    str(path.relative_to(ROOT)): path.read_text()
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
}
BLOCK = re.compile(r"```python(?: title=\"[\w.]+\")?\n(.*?)```", re.DOTALL)

RUN_BY: dict[str, str] = {
    "README.md": "test_readme.py",
    "CONTRIBUTING.md": "credit/test_pages.py",
    "docs/channels.md": "credit/test_pages.py",
    "docs/gallery.md": "credit/test_pages.py",
    "docs/ledger.md": "credit/test_pages.py",
    "docs/clusters.md": "credit/test_devices.py",
    "docs/shapley.md": "estimators/shapley/test_shapley_logs.py",
    "docs/trainers.md": "integrations/test_trainers_page.py",
    **{f"docs/tutorials/{path.name}": "test_tutorials.py" for path in (ROOT / "docs" / "tutorials").glob("*.md")},
}
"""The tests that run the blocks of the other pages."""


def runs(suffix: str = "runs") -> Path:
    """A folder of logs with values, one trace of which is called run-17."""
    world = World(group_size=4)
    episodes = world.sample(jax.random.key(0), 40)
    folder = Path(suffix)
    folder.mkdir()
    native.write(world.traces(episodes, world.increments(episodes)), folder / "log.jsonl")
    text = (folder / "log.jsonl").read_text().replace('"trace-000017"', '"run-17"')
    (folder / "log.jsonl").write_text(text)
    return folder


def judged() -> dict[str, Any]:
    traces = credit.read(runs())
    agent = traces.agents["agent"][0].as_py()
    verdict = {"trace": traces.traces["trace"][0].as_py(), "judge": "critic", "agent": agent, "score": 0.8}
    Path("verdicts.jsonl").write_text(json.dumps(verdict))
    return {"traces": traces}


def siblings() -> dict[str, Any]:
    """Forty draws of two alternatives in each of three contexts."""
    rng = np.random.default_rng(0)
    n = 120
    graph, reward, _ = credit.from_columns(
        group=[i // 40 for i in range(n)], trace=list(range(n)), reward=rng.normal(size=n).tolist()
    )
    room = graph.num_events - n
    context = np.pad(np.arange(n) // 40, (0, room), constant_values=-1).astype(np.int32)
    choice = rng.integers(0, 2, n)
    alternative = np.pad(2 * (np.arange(n) // 40) + choice, (0, room), constant_values=-1).astype(np.int32)
    target = np.pad(np.where(choice == 1, 0.7, 0.3), (0, room), constant_values=np.nan).astype(np.float32)
    given = {"context": context, "alternative": alternative, "target_propensity": target}
    given |= {"propensity": np.full_like(target, 0.5)}
    return {"credit": credit, "estimators": estimators, "graph": graph, "reward": reward} | given


def columns() -> dict[str, Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = {"traj_uid": ["a", "b"], "uid": ["q", "q"], "agent_id": ["solver"] * 2, "reward": [1.0, 0.0]}
    pq.write_table(pa.table(rows), "dump.parquet")
    return {"credit": credit}


def outcomes(log: str) -> Path:
    """A table of outcomes for a log, of one trace after the other."""
    names = credit.read(log).traces["trace"].to_pylist()
    table = Path("outcomes.csv")
    table.write_text("trace,reward\n" + "".join(f"{name},{i % 2}\n" for i, name in enumerate(names)))
    return table


def recorded(name: str, format_: str) -> Callable[[], dict[str, Any]]:
    def prepare() -> dict[str, Any]:
        shutil.copy(RECORDINGS / name, name)
        traces = credit.read(name, rewards=outcomes(name))
        assert traces.traces["format"].to_pylist()[0] == format_
        return {"traces": traces, "result": credit.run(traces, "discounted_return")}

    return prepare


def langgraph_team() -> dict[str, Any]:
    pytest.importorskip("langgraph")
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import END, START, MessagesState, StateGraph

    def answer(state: MessagesState) -> dict[str, Any]:
        return {"messages": [("ai", "four")]}

    outer = StateGraph(MessagesState)
    outer.add_node("solver", answer)
    outer.add_edge(START, "solver")
    outer.add_edge("solver", END)
    graph = outer.compile(checkpointer=InMemorySaver())
    return {"graph": graph, "config": {"configurable": {"thread_id": "1"}}, "question": {"messages": [("user", "2+2")]}}


def of_inspect() -> dict[str, Any]:
    pytest.importorskip("inspect_ai", reason="the extra `inspect-ai` is not installed")
    Path("logs").mkdir()
    shutil.copy(RECORDINGS / "inspect_team.eval", "logs/quiz.eval")
    return {}


def with_runs() -> dict[str, Any]:
    runs()
    return {}


PREPARED: dict[str, Callable[[], dict[str, Any]]] = {
    "docs/critic.md": with_runs,
    "docs/doctor.md": with_runs,
    "docs/judgements.md": judged,
    "docs/laws.md": dict,
    "docs/metrics.md": with_runs,
    "docs/off-policy.md": siblings,
    "docs/re-running.md": of_inspect,
    "docs/structure.md": with_runs,
    "docs/posterior.md": dict,
    "docs/worlds.md": dict,
    "docs/formats/inspect-ai.md": recorded("inspect_team.eval", "inspect-ai"),
    "docs/formats/langgraph.md": langgraph_team,
    "docs/formats/table.md": columns,
    "docs/formats/verifiers.md": recorded("verifiers_episodes.jsonl", "verifiers"),
}
"""What is there before the first block of a page: files in the working directory, and names."""


def shorten(page: str, patch: pytest.MonkeyPatch) -> None:
    """What other tests try at length: a fit of a critic, and the laws that compile a method anew."""
    if page == "docs/critic.md":
        short = Settings(members=2, model="additive")
        patch.setattr(credit, "fit_critic", functools.partial(credit.fit_critic, settings=short))
    if page == "docs/laws.md":
        for name in ("jit", "padding_changes_nothing", "gradients", "dtypes", "vmap", "no_event_reward", "replays"):
            patch.delitem(LAWS, name)


def test_every_page_with_blocks_is_run_by_a_test() -> None:
    with_blocks = {name for name, text in PAGES.items() if BLOCK.search(text)}
    assert with_blocks == {*RUN_BY, *PREPARED}
    for page, test in RUN_BY.items():
        folder = "tutorials" if "tutorials" in page else Path(page).name
        assert folder in (TESTS / test).read_text() or folder == "trainers.md", page


@pytest.mark.slow
@pytest.mark.parametrize("page", PREPARED)
def test_blocks_run_and_print_what_they_say(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = PREPARED[page]()
    shorten(page, monkeypatch)
    for body in BLOCK.findall(PAGES[page]):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(body, page, "exec"), names)
        expected = [line[2:] for line in body.splitlines() if line.startswith("# ")]
        assert not expected or out.getvalue().rstrip().splitlines() == expected
    if page == "docs/formats/langgraph.md":
        assert [credit.read(name).traces["format"][0].as_py() for name in ("run.jsonl", "history.jsonl")] == [
            "langgraph"
        ] * 2


def commands() -> list[tuple[str, str]]:
    """Commands in consoles, `% ` before those whose files the page does not have, and in blocks for shells."""
    found = []
    for page, text in PAGES.items():
        for kind, body in re.findall(r"```(console|bash|sh|text)\n(.*?)```", text, re.DOTALL):
            body = re.sub(r"\\\n\s*", "", body)
            lines = [re.sub(r"^[$%] ", "", line) for line in body.splitlines()]
            given = [
                line
                for line, raw in zip(lines, body.splitlines(), strict=True)
                if line.startswith("credit ") and (kind != "console" or raw != line)
            ]
            found += [(page, shlex.split(line, comments=True)) for line in given]
    return [(page, shlex.join(words)) for page, words in found]


def test_every_command_of_a_page_is_one_that_the_command_line_takes() -> None:
    """Names of commands and options; what they do with them is tried where the files of the page are."""
    assert len(commands()) > 70
    for page, line in commands():
        words, command, path = shlex.split(line.split(" > ")[0].split(" | ")[0])[1:], cli, "credit"
        while isinstance(command, click.Group):
            inner = command.get_command(click.Context(command), words[0])
            assert inner is not None, (page, line)
            command, path, words = inner, f"{path} {words[0]}", words[1:]
        context = click.Context(command, info_name=path)
        try:
            command.make_parser(context).parse_args(args=words)
        except click.UsageError as error:
            pytest.fail(f"{page}: {line}: {error.format_message()}")


@pytest.mark.slow
@pytest.mark.parametrize("page", ["docs/report.md", "docs/bias.md", "docs/worlds.md", "docs/formats/inspect-ai.md"])
def test_commands_of_pages_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without those that serve pages, and the whole table of bias, which takes minutes."""
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    runs()
    shutil.copytree("runs", "sessions")
    Path("labels.csv").write_text("trace,reward\nrun-17,1\n")
    Path("logs").mkdir()
    shutil.copy(RECORDINGS / "inspect_team.eval", "logs")
    serving, long = ("credit view", "credit label"), ("credit bench bias --score variance --json",)
    ran = 0
    for line in (line for of, line in commands() if of == page and not line.startswith(serving) and line not in long):
        given = ["--rewards", str(outcomes("logs"))] if " logs/ " in line else []  # the recorded team has no scorer
        result = CliRunner().invoke(cli, [*shlex.split(line)[1:], *given])
        assert result.exit_code == 0, f"{line}\n{result.output}"
        ran += 1
    assert ran
