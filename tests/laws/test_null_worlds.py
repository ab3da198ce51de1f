"""Worlds whose outcomes nobody moves: by every method, agents stand out in at most one of twenty."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import click
import numpy as np
import pytest

import credit
from credit.cli import cli
from credit.methods.registry import METHODS
from credit.reports.who_matters import who_matters
from credit.telling_apart import place_note
from graphs.traces.batch import Traces


@dataclasses.dataclass(frozen=True)
class Null:
    """What a world without effects is like.

    Attributes:
      is_equal: whether all traces are equally long; else lengths are log-normal.
      has_places: whether the first action is always one agent's, and the last another's; else anyone acts anywhere.
      off: what is added to all values.
      rise: what is added to them from a trace's begin to its end.
      cost: of each action.
      returns: whether one observation is met at several places of a trace.
    """

    is_equal: bool = True
    has_places: bool = True
    off: float = 0.0
    rise: float = 0.0
    cost: float = 0.0
    returns: bool = False

    def columns(self, seed: int) -> tuple[dict[str, list[object]], dict[str, list[object]]]:
        """Columns of `credit.from_columns`, and of all evidence that methods need."""
        rng = np.random.default_rng(seed)
        agents, tasks = int(rng.integers(2, 6)), int(rng.integers(8, 41))
        members = min(int(rng.integers(2, 9)), 120 // tasks)
        most, rate = int(rng.integers(agents, 2 * agents + 2)), rng.uniform(0.3, 0.7)
        columns: dict[str, list[object]] = {}
        evidence: dict[str, list[object]] = {}
        for task in range(tasks):
            chance, greedy = np.clip(rate + rng.normal(0, 0.1), 0.05, 0.95), float(rng.random() < rate)
            for trace in range(members):
                length = most if self.is_equal else int(np.clip(most * rng.lognormal(0, 0.6), agents, 16))
                outcome = float(rng.random() < chance)
                for place in range(length):
                    inner = 1 + (place - 1) % max(agents - 2, 1)
                    agent = 0 if place == 0 else agents - 1 if place == length - 1 else min(inner, agents - 1)
                    right = chance - self.cost * (length - place)
                    value = right + self.off + self.rise * place / length + rng.normal(0, 0.1)
                    choices, policy = value + rng.normal(0, 0.1, 3), rng.dirichlet(np.ones(3))
                    chosen = int(rng.choice(3, p=policy))
                    may_spawn = rng.uniform(0.1, 0.9)
                    row = {
                        "group": task,
                        "trace": f"{task}.{trace}",
                        "turn": place,
                        "agent": f"agent {agent if self.has_places else int(rng.integers(agents))}",
                        "reward": outcome,
                        "tokens": int(rng.integers(20, 400)),
                        "event_type": "spawn" if rng.random() < may_spawn else "message",
                    }
                    known = {
                        "event_reward": -self.cost,
                        "value": value,
                        "value_high": right + self.off + rng.normal(0, 0.1),
                        "segment": f"{task}.{trace}.{place // 3}",
                        "q_value": choices[chosen],
                        "target_value": policy @ choices,
                        "alternative": str(chosen),
                        "propensity": policy[chosen],
                        "target_propensity": rng.dirichlet(np.ones(3))[chosen],
                        "stop_propensity": rng.uniform(0.1, 0.9),
                        "spawn_propensity": may_spawn,
                        "counterfactual_reward": float(rng.random() < chance),
                        "solo_reward": float(rng.random() < chance),
                        "greedy_reward": greedy,
                        "self_rating": rng.uniform(),
                        "share": rng.normal(0, 0.2),
                        "hindsight_log_prob": min(rng.normal(-1, 0.5), 0.0),
                        "context": f"{task}" if place == 0 else None,
                        "node": f"{task}.{trace}" if place == 0 else None,
                        "anchor": f"{task}.{0 if self.returns else place}.{rng.integers(3)}",
                        "tree": trace // 2,
                        "block": f"{task}",
                        "stage": place,
                    }
                    for into, cells in ((columns, row), (evidence, known)):
                        for name, cell in cells.items():
                            into.setdefault(name, []).append(cell)
        return columns, evidence

    def traces(self, seed: int, method: str) -> Traces:
        """A world with the evidence that a method needs, in one shape for all seeds."""
        columns, evidence = self.columns(seed)
        needed = {name: evidence[name] for name in METHODS[method].needs if name != "tokens"}
        rewards = evidence["event_reward"] if self.cost else None
        shape = {"events": 2048, "traces": 128, "agents": 640}
        return credit.from_columns(**columns, event_reward=rewards, evidence=needed, **shape)[2].traces  # type: ignore[arg-type]


def starred(null: Null, method: str, worlds: int) -> int:
    """In how many worlds an agent stands out."""
    found = 0
    for seed in range(worlds):
        traces = null.traces(seed, method)
        found += any(unit.stands_out for unit in who_matters(traces, credit.run(traces, method)))
    return found


@pytest.mark.parametrize(
    ("method", "null"),
    [
        pytest.param("hae", Null(), marks=pytest.mark.slow),
        pytest.param("maac", Null(cost=0.05), marks=pytest.mark.slow),
        pytest.param("maac", Null(off=-0.2), marks=pytest.mark.slow),
        ("gae", Null(off=-0.2)),
        pytest.param("gae", Null(rise=0.3), marks=pytest.mark.slow),
        pytest.param("critic", Null(off=-0.2), marks=pytest.mark.slow),
        pytest.param("critic", Null(rise=0.3), marks=pytest.mark.slow),
        pytest.param("gigpo", Null(is_equal=False, cost=0.05), marks=pytest.mark.slow),
        pytest.param("hgpo", Null(cost=0.05, returns=True), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_neither_values_nor_costs_make_an_agent_stand_out(method: str, null: Null) -> None:
    """Half or more of such worlds had stars. Whoever always acts last, or first, had them."""
    assert starred(null, method, 8) <= 1


@pytest.mark.parametrize(
    ("method", "null", "options", "note"),
    [
        ("gae", Null(), {}, ""),
        ("gae", Null(cost=0.05), {}, ""),
        ("gae", Null(), {"discount": 0.9}, "By gae an action's place makes its number more or less"),
        ("gae", Null(off=0.2), {}, "Values before last actions are too high by 0."),
        ("gae", Null(rise=0.1), {}, "Values rise within a trace by 0.0"),
        ("critic", Null(off=-0.2), {}, "Values before last actions are too low by 0."),
        *(
            pytest.param(*more, marks=pytest.mark.slow)
            for more in (
                ("gae", Null(rise=-0.1), {}, "Values fall within a trace by 0.0"),
                ("critic", Null(cost=0.05), {}, ""),
                ("maac", Null(), {}, ""),
                ("maac", Null(cost=0.05), {}, "By maac an action's place makes its number more or less"),
                ("gae", Null(cost=0.05), {"along": "agent"}, "By gae an action's place makes its number more or less"),
                ("hae", Null(), {}, "By hae an action's place makes its number more or less"),
                ("gigpo", Null(), {}, ""),
                ("gigpo", Null(cost=0.05), {}, ""),
                (
                    "gigpo",
                    Null(cost=0.05, is_equal=False),
                    {},
                    "Actions after one observation have more or fewer actions",
                ),
                ("gigpo", Null(returns=True), {}, ""),
                (
                    "gigpo",
                    Null(cost=0.05, returns=True),
                    {},
                    "Actions after one observation have more or fewer actions",
                ),
            )
        ),
    ],
)
def test_what_is_said_of_values(method: str, null: Null, options: dict[str, object], note: str) -> None:
    traces = null.traces(0, method)
    said = place_note(traces, credit.run(traces, method, **options))
    assert said.startswith(note) and bool(said) == bool(note)
    assert ("`credit fit critic LOGS -o critic/` fits others" in said) == note.startswith("Values")


def test_the_commands_behind_values_that_are_off_are_legal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The note named no next step."""
    monkeypatch.chdir(tmp_path)
    Path("critic").mkdir()
    Path("LOGS").mkdir()
    traces = Null(off=0.2).traces(0, "gae")
    said = place_note(traces, credit.run(traces, "gae"))
    commands = re.findall("`credit (.*?)`", said)
    assert [command.split()[0] for command in commands] == ["fit", "assign"]
    for command in commands:
        of, arguments = cli, command.split()
        while isinstance(of, click.Group):
            of = of.commands[arguments.pop(0)]
        of.make_context("credit", arguments)  # a usage error names what is wrong


@pytest.mark.every_method
@pytest.mark.filterwarnings("ignore:m(grpo|atpo) compares by the parent")
@pytest.mark.parametrize("name", METHODS)
def test_agents_stand_out_by_chance_at_most(name: str) -> None:
    """In 40 worlds of each kind at most 6: more have a chance of 0.3 % at a rate of 5 %."""
    for null in (
        Null(),
        Null(is_equal=False),
        Null(cost=0.05),
        Null(is_equal=False, off=-0.2, cost=0.05, returns=True),
    ):
        assert starred(null, name, 40) <= 6, null


def moved(seed: int) -> Traces:
    """A world in which one of two agents is called at each turn: one raises the chance of success, one lowers it."""
    rng = np.random.default_rng(seed)
    columns: dict[str, list[object]] = {name: [] for name in ("group", "trace", "turn", "agent", "value", "reward")}
    for task in range(16):
        for trace in range(4):
            good = rng.random(5) < 0.5
            chance = 0.5 + 0.08 * np.cumsum(np.where(np.append(False, good), 1, -1)) + 0.08
            outcome = float(rng.random() < chance[-1])
            for turn in range(5):
                row = (task, f"{task}.{trace}", turn, "good" if good[turn] else "bad", chance[turn], outcome)
                for column, cell in zip(columns.values(), row, strict=True):
                    column.append(cell)
    value = columns.pop("value")
    return credit.from_columns(**columns, evidence={"value": value})[2].traces  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["critic", "gae"])
def test_who_moves_right_values_stands_out(method: str) -> None:
    found = [who_matters(traces, credit.run(traces, method)) for traces in map(moved, range(8))]
    assert sum({unit.name for unit in units if unit.stands_out} == {"good", "bad"} for units in found) >= 6
    assert all(unit.difference > 0 for units in found for unit in units if unit.stands_out and unit.name == "good")
