"""What happens in the worlds of benchmarks, in words, and the numbers that rebuild each."""

from __future__ import annotations

import dataclasses
from types import FunctionType
from typing import Any

import numpy as np

from credit.bench.against_truth import team_of
from credit.bench.own_worlds import HEAVY, TEAMS, micro_world
from credit.bench.snr_logs import WORLDS, sample_variance
from credit.bench.snr_theory import Setting
from credit.bench.training.learning_tasks import TASKS, LearningTask, learning_task
from credit.methods.own_functions import function_of, load_named
from graphs.errors import CreditError
from graphs.text import counted, excerpt
from graphs.worlds import KINDS, HeavyTailed, TeamWorld
from graphs.worlds.micro.examples import MICRO
from graphs.worlds.micro.orchestration import Micro

__all__ = ["WORLDS_OF", "bench_of", "parameters", "world_text"]

WORLDS_OF: dict[str, tuple[str, ...]] = {
    "bias": (*MICRO,),
    "truth": TEAMS,
    "snr": (*WORLDS,),
    "train": (*TASKS, HEAVY),
}
"""By benchmark, the names that it takes."""
_STATED = ("topology", "agents", "events", "kind", "group_size", "link")  # of a TeamWorld: settings, or said in words


def bench_of(world: str) -> str:
    """The benchmark that takes a world of yours, a key of `WORLDS_OF`.

    Args:
      world: "module:name".

    Raises:
      CreditError: there is none, or no benchmark takes it.
    """
    kinds = {"bias": Micro, "truth": TeamWorld, "train": LearningTask, "snr": FunctionType}
    found = load_named(world, "world", lambda value: isinstance(value, tuple(kinds.values())))
    for bench, kind in kinds.items():
        if isinstance(found, kind):
            if bench == "snr":
                sample_variance(world, 0)  # refuses other functions
            return bench
    expected = "a Micro, a TeamWorld, a LearningTask, or a function of noise, f(rng, shape)"
    raise CreditError(f"world {world!r} is {excerpt(found)}; expected {expected}")


def world_text(bench: str, world: str) -> str:
    """What happens in a world, in sentences that need no other world's.

    Args:
      bench: a key of `WORLDS_OF`.
      world: a name of it, or your own as "module:name".
    """
    if bench == "bias":
        micro = micro_world(world)
        roles = ", ".join(dict.fromkeys(micro.roles))
        expected = micro.probabilities() @ micro.total
        return f"{micro.about} Roles: {roles}. {len(micro.ends)} traces. J = {expected:.3f}."
    if bench == "truth":
        return _of_team(_team(world), own=world not in TEAMS)
    if bench == "train":
        return _of_task(learning_task(world), world)
    noise = {"normal": "Its noise is normal, of variance 1.", HEAVY: _tails(1.0)}
    told = noise.get(world, f"Its noise is that of {function_of(world)}.")
    return f"The return is the sum of the choices, each 1 or -1 with equal chances, and noise. {told}"


def _tails(variance: float) -> str:
    return f"Its noise has heavy tails: Student's t with three degrees of freedom, of variance {variance:.3g}."


def _team(world: str) -> TeamWorld:
    return team_of(world, topology=TeamWorld.topology, agents=TeamWorld.agents, events=TeamWorld.events)


def _of_team(team: TeamWorld, *, own: bool) -> str:
    fields = [field for field in dataclasses.fields(team) if field.name not in _STATED]
    changed = [f"{f.name} = {getattr(team, f.name)}" for f in fields if own and getattr(team, f.name) != f.default]
    tails = _tails(3 * team.outcome.noise**2) if isinstance(team.outcome, HeavyTailed) else ""
    return " ".join(filter(None, [KINDS[team.kind], tails, f"{', '.join(changed)}." * bool(changed)]))


def _of_task(task: LearningTask, name: str) -> str:
    made_by = TASKS["additive" if name == HEAVY else name] if name in WORLDS_OF["train"] else None
    agents = counted(len(set(task.agents)), "agent")
    own = f"{counted(task.decisions, 'decision')} of {agents}, {task.choices} choices each, as in {function_of(name)}."
    tails = "" if task.noise is None or not task.heavy else _tails(task.noise**2)
    return " ".join(filter(None, [own if made_by is None else made_by.__doc__ or "", tails]))


def parameters(bench: str, world: str) -> dict[str, Any]:
    """What rebuilds a world, as plain data: of `bias` its decisions, policy and traces, of others the fields.

    Args:
      bench, world: as of `world_text`; of `truth` with the team that it draws by default.
    """
    if bench == "bias":
        micro = micro_world(world)
        states = [
            {"history": history, "agent": d.agent, "role": d.role or d.agent, "type": d.type.name.lower(),
             "sees": d.sees, "stage": d.stage, "policy": row[: d.choices].tolist()}
            for (history, d), row in zip(micro.states.items(), micro.policy, strict=True)
        ]  # fmt: skip
        traces = [
            {"choices": end, "outcome_chance": chance, "outcome": outcome, "step_rewards": steps[: len(end)].tolist(),
             "probability": float(p), "return": float(total)}
            for (end, chance, outcome), steps, p, total in zip(
                micro.ends, micro.step_rewards, micro.probabilities(), micro.total, strict=True)
        ]  # fmt: skip
        return {"decisions": states, "traces": traces}
    if bench == "snr":
        return Setting(world=world)._asdict()
    held = _team(world) if bench == "truth" else learning_task(world)
    fields = {field.name: getattr(held, field.name) for field in dataclasses.fields(held)}
    if isinstance(held, TeamWorld):
        fields["link"] = {"form": type(held.outcome).__name__, **held.outcome._asdict()}
    return {
        name: {"shape": value.shape, "values": value.ravel().tolist()} if isinstance(value, np.ndarray) else value
        for name, value in fields.items()
    }
