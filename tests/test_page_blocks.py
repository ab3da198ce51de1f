"""Every block of Python on a page is run by some test, and the command line takes every command of a page."""

from __future__ import annotations

import builtins
import contextlib
import functools
import io
import json
import re
import shlex
import shutil
import symtable
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import jax
import numpy as np
import pytest
from click.testing import CliRunner

import credit
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
    "docs/ledger.md": "credit/test_pages.py",
    "docs/clusters.md": "credit/test_devices.py",
    "docs/shapley.md": "estimators/shapley/test_shapley_logs.py",
    "docs/trainers.md": "integrations/test_trainers_page.py",
    **{f"docs/tutorials/{path.name}": "test_tutorials.py" for path in (ROOT / "docs" / "tutorials").glob("*.md")},
}
"""The tests that run the blocks of the other pages."""


def runs(suffix: str = "runs") -> None:
    """A folder of logs with values, one trace of which is called run-17."""
    world = World(group_size=4)
    episodes = world.sample(jax.random.key(0), 40)
    folder = Path(suffix)
    folder.mkdir()
    native.write(world.traces(episodes, world.increments(episodes)), folder / "log.jsonl")
    text = (folder / "log.jsonl").read_text().replace('"trace-000017"', '"run-17"')
    (folder / "log.jsonl").write_text(text)


def judged() -> None:
    runs()
    traces = credit.read("runs")
    agent = traces.agents["agent"][0].as_py()
    verdict = {"trace": traces.traces["trace"][0].as_py(), "judge": "critic", "agent": agent, "score": 0.8}
    Path("verdicts.jsonl").write_text(json.dumps(verdict))


def siblings() -> None:
    """Logs of a hundred draws of two alternatives in each of three contexts."""
    rng = np.random.default_rng(0)
    Path("runs").mkdir()
    with Path("runs/log.jsonl").open("w") as file:
        for i in range(300):
            context, choice = f"context {i % 3}", int(rng.integers(0, 2))
            event = {"id": "e", "type": "message", "agent": "a", "context": context, "propensity": 0.5}
            event |= {"alternative": f"{context}, {choice}", "target_propensity": (0.3, 0.7)[choice]}
            rewards = {"team": float(rng.random() < 0.3 + 0.4 * choice)}
            trace = {"trace_id": str(i), "task_id": str(i % 3), "events": [event], "rewards": rewards}
            file.write(json.dumps(trace) + "\n")


def columns() -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = {"traj_uid": ["a", "b"], "uid": ["q", "q"], "agent_id": ["solver"] * 2, "reward": [1.0, 0.0]}
    pq.write_table(pa.table(rows), "dump.parquet")


def outcomes(log: str) -> Path:
    """A table of outcomes for a log, of one trace after the other."""
    names = credit.read(log).traces["trace"].to_pylist()
    table = Path("outcomes.csv")
    table.write_text("trace,reward\n" + "".join(f"{name},{i % 2}\n" for i, name in enumerate(names)))
    return table


def episodes() -> None:
    shutil.copy(RECORDINGS / "verifiers_episodes.jsonl", "traces.jsonl")


TEAM = """
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph

outer = StateGraph(MessagesState)
outer.add_node("solver", lambda state: {"messages": [("ai", "four")]})
outer.add_edge(START, "solver")
outer.add_edge("solver", END)
graph = outer.compile(checkpointer=InMemorySaver())
config = {"configurable": {"thread_id": "1"}}
question = {"messages": [("user", "2+2")]}
"""


def langgraph_team() -> None:
    pytest.importorskip("langgraph")
    Path("my_team.py").write_text(TEAM)


def of_inspect() -> None:
    pytest.importorskip("inspect_ai", reason="the extra `inspect-ai` is not installed")
    Path("logs").mkdir()
    shutil.copy(RECORDINGS / "inspect_team.eval", "logs/quiz.eval")


def scored_log() -> None:
    """The log that the page shows."""
    Path("logs").mkdir()
    Path("logs/quiz.json").write_text(PAGES["docs/formats/inspect-ai.md"].split("```json\n")[1].split("```")[0])


PREPARED: dict[str, Callable[[], None]] = {
    "docs/critic.md": runs,
    "docs/doctor.md": runs,
    "docs/judgements.md": judged,
    "docs/laws.md": lambda: None,
    "docs/metrics.md": runs,
    "docs/off-policy.md": siblings,
    "docs/re-running.md": of_inspect,
    "docs/structure.md": runs,
    "docs/posterior.md": lambda: None,
    "docs/worlds.md": lambda: None,
    "docs/formats/inspect-ai.md": scored_log,
    "docs/formats/langgraph.md": langgraph_team,
    "docs/formats/table.md": columns,
    "docs/formats/verifiers.md": episodes,
}
"""The files in the working directory before the first block of a page, which a reader has. Names there are none."""

OF_THE_READER = {
    "README.md": {"config", "model", "prompts", "rewards", "tokenizer"},
    "CONTRIBUTING.md": {"event_reward", "graph", "m", "reward"},
    "docs/trainers.md": {
        *("AgentTrainer", "GRPOConfig", "cluster", "config", "episodes", "model", "path", "prompts", "rewards"),
        *("sampled", "store", "tokenizer"),
    },
}
"""Names in excerpts (`py`) that stand for what a reader's own program has."""


def shorten(page: str, patch: pytest.MonkeyPatch) -> None:
    """What other tests try at length: a fit of a critic, and the laws that compile a method anew."""
    if page == "docs/critic.md":
        short = Settings(members=2, model="additive")
        patch.setattr(credit, "fit_critic", functools.partial(credit.fit_critic, settings=short))
    if page == "docs/laws.md":
        slow = ("jit", "padding_changes_nothing", "gradients", "dtypes", "vmap", "no_event_reward", "replays")
        patch.setattr(credit.laws, "LAWS", {name: law for name, law in LAWS.items() if name not in slow})


def test_every_page_with_blocks_is_run_by_a_test() -> None:
    with_blocks = {name for name, text in PAGES.items() if BLOCK.search(text)}
    assert with_blocks == {*RUN_BY, *PREPARED}
    for page, test in RUN_BY.items():
        folder = "tutorials" if "tutorials" in page else Path(page).name
        assert folder in (TESTS / test).read_text() or folder == "trainers.md", page


@pytest.mark.parametrize("page", PAGES)
def test_what_is_pasted_from_a_page_knows_its_names(page: str) -> None:
    """Tests gave blocks names that the page did not: pasted by a reader they ended in a NameError."""
    known, used = {*dir(builtins), "__file__"}, set[str]()
    for kind, body in re.findall(r"```(python|py)(?: title=\"[\w.]+\")?\n(.*?)```", PAGES[page], re.DOTALL):
        # An excerpt may be the inside of a function, or an entry of a table.
        text = body if kind == "python" else f"def excerpt():\n{textwrap.indent(body, ' ')}"
        try:
            table = symtable.symtable(text, page, "exec")
        except SyntaxError:
            assert kind == "py", body
            continue
        made = {name.get_name() for name in table.get_symbols() if name.is_assigned() or name.is_imported()}
        known |= made if kind == "python" else set()
        used |= global_names(table) - known - {"excerpt"}
    assert used == OF_THE_READER.get(page, set())


def global_names(table: symtable.SymbolTable) -> set[str]:
    """The names that a piece of code takes from outside its functions."""
    own = {name.get_name() for name in table.get_symbols() if name.is_global() or table.get_type() == "module"}
    return own.union(*map(global_names, table.get_children()))


@pytest.mark.slow
@pytest.mark.parametrize("page", PREPARED)
def test_blocks_run_and_print_what_they_say(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    PREPARED[page]()
    names: dict[str, Any] = {}
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
    """Commands behind `$ ` in consoles, and those of blocks for shells."""
    found = []
    for page, text in PAGES.items():
        for kind, body in re.findall(r"```(console|bash|sh|text)\n(.*?)```", text, re.DOTALL):
            body = re.sub(r"\\\n\s*", "", body)
            lines = [line.removeprefix("$ ") for line in body.splitlines()]
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
    assert not [page for page, text in PAGES.items() if re.search(r"^% ", text, re.MULTILINE)]  # one prompt, `$`
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
