"""A team of any form and size, played from a script, whose true increments are known.

    world = TeamWorld("swarm", agents=300, events=4000, kind="padding")
    runs = world.sample(jax.random.key(0), 64)
    truth = world.increments(runs)             # R = expected + Σ increments + outcome, on every trace
    traces = world.traces(runs, truth)         # as if read from a log
    graph = world.graph(runs)                  # the same graph without the strings, for many traces

Six forms (`graphs.worlds.scripted.topologies`) times seven kinds of outcome (`graphs.worlds.scripted.scores`).
Choices are independent given the task; what they are worth together is up to the kind. `docs/worlds.md` has the
formulas.

Legend: n traces, K tasks, D decisions, V events of the script, A agents.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph, EventType
from graphs.text import counted
from graphs.worlds.scripted import run_log
from graphs.worlds.scripted.chances import expectations
from graphs.worlds.scripted.runs import Runs
from graphs.worlds.scripted.scores import ScoreRule, score_rule
from graphs.worlds.scripted.script import Script
from graphs.worlds.scripted.topologies import write_script
from graphs.worlds.team import Additive, Bernoulli, Outcome, Pivotal
from graphs.worlds.truth import Truth

if TYPE_CHECKING:
    from graphs.traces.batch import Traces
    from graphs.traces.record import TraceRecord

__all__ = ["Runs", "TeamWorld"]

_LINKS: dict[str, type] = {"bernoulli": Bernoulli, "bottleneck": Pivotal, "pivotal": Pivotal}
_FEWEST = 32  # decisions that kernels are compiled for; then powers of two
_CELLS = 1 << 24  # decisions of runs that are made again at once


class _Tables(NamedTuple):
    """A script's decisions as kernels take them, padded: chance [K, D], weight, gate and `on` [D]."""

    chance: Array
    weight: Array
    gate: Array
    on: Array


@dataclasses.dataclass(frozen=True)
class TeamWorld:
    """A team that plays a script, and its tasks.

    Attributes:
      topology: a key of `graphs.worlds.scripted.topologies.TEAMS`.
      agents: 1 to 300, the runtime of a harness not counted.
      events: in the log of a trace in which all waves are spawned, up to 100,000.
      kind: of outcome, one of `graphs.worlds.scripted.scores.KINDS`.
      difficulties: one for each task; subtracted from the logit of every chance.
      group_size: traces in a group.
      good: chance that a decision is taken well.
      spawn: chance that the lead spawns a wave which is not certain; 1 to spawn all.
      weights: of decisions in log order, over and over.
      links: length of the chain in kind "bottleneck".
      spawn_cost: in kind "padding", what each agent spawned by choice takes from the score.
      link: how the score becomes a reward: `Pivotal` for kinds "bottleneck" and "pivotal", `Bernoulli` for "bernoulli",
        `Additive` for the others; None chooses parameters that suit the script.

    Raises:
      CreditError: a parameter is out of range; it names the field.
    """

    topology: str = "swarm"
    agents: int = 5
    events: int = 100
    kind: str = "additive"
    difficulties: tuple[float, ...] = (0.0,)
    group_size: int = 8
    good: float = 0.5
    spawn: float = 1.0
    weights: tuple[int, ...] = (1,)
    links: int = 3
    spawn_cost: int = 1
    link: Outcome | None = None

    def __post_init__(self) -> None:
        def require(holds: bool, field: str, expected: str) -> None:
            if not holds:
                raise CreditError(f"TeamWorld.{field} is {getattr(self, field)!r}; expected {expected}")

        require(self.group_size >= 1, "group_size", "1 or more")
        require(len(self.difficulties) > 0, "difficulties", "at least one task")
        require(all(map(math.isfinite, self.difficulties)), "difficulties", "finite numbers")
        require(0 < self.good < 1, "good", "a probability between 0 and 1, exclusive")
        require(0 < self.spawn <= 1, "spawn", "a probability above 0")
        whole = all(isinstance(w, int) for w in self.weights)
        require(len(self.weights) > 0 and whole, "weights", "integers, at least one")
        require(self.links >= 1, "links", "1 or more")
        require(self.spawn_cost >= 0, "spawn_cost", "0 or more")
        wanted = _LINKS.get(self.kind, Additive)
        require(self.link is None or isinstance(self.link, wanted), "link", f"{wanted.__name__} for kind {self.kind!r}")
        if self.kind == "poisoned":
            require(self.spawn == 1, "spawn", "1 in kind 'poisoned', where the message gates what it reaches")
        _ = self.rule  # a script that cannot be written, or that the kind does not fit, is refused here

    @functools.cached_property
    def script(self) -> Script:
        """Who does what, in order."""
        return write_script(self.topology, self.agents, self.events)

    @functools.cached_property
    def rule(self) -> ScoreRule:
        """The weights and dependencies of decisions."""
        return score_rule(self.kind, self.script, self.weights, self.links, self.spawn_cost)

    @functools.cached_property
    def chance(self) -> np.ndarray:
        """Probability of a good choice for each task and decision: float64 [K, D]. The stop is certain."""
        types = self.script.types[self.script.events]
        odds = np.where(self.script.optional & (self.script.on[self.script.events] < 0), self.spawn, self.good)
        fixed = (types == EventType.STOP) | (odds == 1)
        logit = np.log(np.where(fixed, 1, odds) / np.where(fixed, 1, 1 - odds))
        return np.where(fixed, 1.0, 1 / (1 + np.exp(np.array(self.difficulties)[:, None] - logit)))

    @functools.cached_property
    def outcome(self) -> Outcome:
        """The rule by which the score becomes a reward."""
        if self.link is not None:
            return self.link
        if self.kind in ("bottleneck", "pivotal"):
            return Pivotal(0.9, 0.1)
        if self.kind != "bernoulli":
            return Additive(1.0, 1.0)
        worth = expectations(self.rule, self.chance.mean(0), Additive(1.0, 0.0), np.ones((1, self.decisions), bool))
        return Bernoulli(2 / math.sqrt(self.decisions), float(worth[0, 0]))

    @property
    def decisions(self) -> int:
        """D."""
        return len(self.script.events)

    def sample(self, key: jax.Array, n: int, *, first: int = 0) -> Runs:
        """Draw traces `first` to `first + n - 1`. What a trace draws depends on the key and its own number only."""
        numbers = jnp.arange(first, first + n, dtype=jnp.int32)
        runs = _sample(self._depth, self.group_size, self._tables, self.outcome, key, numbers)
        result: Runs = dataclasses.replace(
            runs, choice=runs.choice[:, : self.decisions], present=runs.present[:, : self.decisions]
        )
        return result

    def rerun(self, key: jax.Array, runs: Runs, trace: int, t: int, choice: bool, n: int) -> jax.Array:
        """Fresh outcomes of a trace in which action t was chosen otherwise: float32 [n].

        Decisions before action t stay as they were, t is as given here, all later ones are drawn anew.

        Args:
          key: of these runs; run i uses `fold_in(key, i)`.
          runs: where the trace is.
          trace: its row there.
          t: number of the action among the trace's actions in log order.
          choice: well (spawned) or badly (not spawned).
          n: how many runs.

        Raises:
          CreditError: no such trace or action.
        """
        if not 0 <= trace < len(runs.reward):
            raise CreditError(f"trace is {trace}; expected 0 to {len(runs.reward) - 1}")
        taken = np.flatnonzero(np.asarray(runs.present[trace]))
        if not 0 <= t < len(taken):
            raise CreditError(
                f"t is {t}; expected 0 to {len(taken) - 1}, trace {trace} has {counted(len(taken), 'action')}"
            )
        rows = np.full(n, trace), np.full(n, taken[t]), np.full(n, choice)
        return self.reruns(key, runs, *rows)

    def reruns(
        self, key: jax.Array, runs: Runs, trace: np.ndarray, decision: np.ndarray, choice: np.ndarray
    ) -> jax.Array:
        """A fresh outcome for each row, as of `rerun`: of a trace, with a decision chosen so: float32 [n].

        Args:
          key: of these runs; that of row i uses `fold_in(key, i)`.
          runs: where the traces are.
          trace: int [n], their rows there.
          decision: int [n], its number in the script; the trace has it.
          choice: bool [n], well (spawned) or badly (not spawned).
        """
        room = self._tables.gate.shape[0]
        past = np.pad(np.asarray(runs.choice), ((0, 0), (0, room - self.decisions)))
        task, outcomes = np.asarray(runs.task), []
        for first in range(0, len(trace), max(1, _CELLS // room)):
            rows = slice(first, first + max(1, _CELLS // room))
            number = np.arange(len(trace), dtype=np.int32)[rows]
            columns = past[trace[rows]], task[trace[rows]], decision[rows].astype(np.int32), choice[rows]
            outcomes.append(_rerun(self._depth, self._tables, self.outcome, key, *columns, number))
        result: jax.Array = jnp.concatenate(outcomes) if outcomes else jnp.zeros(0, jnp.float32)
        return result

    def increments(self, runs: Runs) -> Truth:
        """The change in expected outcome by each event of each trace; in float64, exact up to rounding."""
        choice, task = np.asarray(runs.choice), np.asarray(runs.task)
        value = np.zeros((len(task), self.decisions + 1))
        for k in np.unique(task):
            rows = task == k
            value[rows] = expectations(self.rule, self.chance[k], self.outcome, choice[rows])
        decision = self.script.decision
        mask = self.present(runs)
        chosen = mask & (decision >= 0)
        gained = np.where(chosen, np.diff(value, axis=1)[:, np.maximum(decision, 0)], 0.0)
        done: np.ndarray = np.cumsum(decision >= 0) - (decision >= 0)  # decisions of the script before each event
        before = np.where(mask, value[:, done], 0.0)
        order = np.argsort(~mask, axis=1, kind="stable")
        gained, before, entry_mask = (np.take_along_axis(x, order, axis=1) for x in (gained, before, mask))
        return Truth(
            expected=value[:, 0],
            increments=gained,
            values=before,
            outcome=np.asarray(runs.reward, np.float64) - value[:, -1],
            event_mask=entry_mask,
        )

    def present(self, runs: Runs) -> np.ndarray:
        """Events of the script that each trace has: bool [n, V]."""
        on = self.script.on
        result: np.ndarray = (on < 0) | np.asarray(runs.choice)[:, np.maximum(on, 0)]
        return result

    def graph(self, runs: Runs) -> EventGraph:
        """The event graph of the traces, unpadded NumPy arrays; what `traces(runs).graph` is without its padding."""
        return run_log.graph(self, runs)

    def records(self, runs: Runs, truth: Truth | None = None) -> list[TraceRecord]:
        """The traces as a reader would find them; with `truth`, true values are logged as value evidence."""
        return run_log.records(self, runs, truth)

    def traces(self, runs: Runs, truth: Truth | None = None, **options: Any) -> Traces:
        """The traces as a batch; `options` go to `graphs.traces.assembling.assemble`."""
        from graphs.traces.assembling import assemble

        return assemble(self.records(runs, truth), **options)

    @functools.cached_property
    def _tables(self) -> _Tables:
        room = max(_FEWEST, 1 << (self.decisions - 1).bit_length())
        spare = room - self.decisions
        on = self.script.on[self.script.events]
        return _Tables(
            jnp.asarray(np.pad(self.chance, ((0, 0), (0, spare))), jnp.float32),
            jnp.asarray(np.pad(self.rule.weight, (0, spare))),
            *(jnp.asarray(np.pad(x, (0, spare), constant_values=-1)) for x in (self.rule.gate, on)),
        )

    @functools.cached_property
    def _depth(self) -> int:
        """The most gates above one decision."""
        depth = np.zeros(self.decisions, int)
        for d in np.flatnonzero(self.rule.gate >= 0):
            depth[d] = depth[self.rule.gate[d]] + 1
        return int(depth.max(initial=0))


# The key of a purpose is fold_in(fold_in(key, family), number), then one fold for each of seed, choices and outcome.
_TRACE, _GREEDY, _RERUN = range(3)
_CHOICES, _OUTCOME, _SEED = range(3)


def _member(key: jax.Array, family: int, number: Array) -> jax.Array:
    return jax.random.fold_in(jax.random.fold_in(key, family), number)


def _taken(tables: _Tables, choice: Array) -> jax.Array:
    """Decisions that are there: what they hang on was chosen; bool [D]."""
    result: jax.Array = (tables.on < 0) | choice[jnp.maximum(tables.on, 0)]
    return result


def _score(depth: Array, tables: _Tables, choice: Array) -> jax.Array:
    above, root = jnp.maximum(tables.gate, 0), tables.gate < 0
    counts = jax.lax.fori_loop(
        0, depth, lambda _, counts: root | (choice[above] & counts[above]), jnp.ones_like(choice)
    )
    return jnp.sum(jnp.where(choice & counts, tables.weight, 0), dtype=jnp.int32)


@jax.jit
def _sample(
    depth: Array, group_size: Array, tables: _Tables, outcome: Outcome, key: jax.Array, numbers: jax.Array
) -> Runs:
    def one(number: Array) -> Runs:
        member = _member(key, _TRACE, number)
        group = number // group_size
        task = group % tables.chance.shape[0]
        uniform = jax.random.uniform(jax.random.fold_in(member, _CHOICES), tables.gate.shape, jnp.float32)
        drawn = uniform < tables.chance[task]
        present = _taken(tables, drawn)
        choice = drawn & present
        score = _score(depth, tables, choice)
        likeliest = tables.chance[task] >= 0.5
        greedy = _score(depth, tables, likeliest & _taken(tables, likeliest))
        return Runs(
            trace=number,
            group=group,
            task=task,
            seed=jax.random.bits(jax.random.fold_in(member, _SEED), dtype=jnp.uint32),
            choice=choice,
            present=present,
            score=score,
            reward=outcome.draw(jax.random.fold_in(member, _OUTCOME), score),
            greedy_reward=outcome.draw(_member(key, _GREEDY, group), greedy),
        )

    return jax.vmap(one)(numbers)


@jax.jit
def _rerun(
    depth: Array,
    tables: _Tables,
    outcome: Outcome,
    key: jax.Array,
    past: Array,
    task: Array,
    t: Array,
    replacement: Array,
    number: Array,
) -> jax.Array:
    """All but the first four by row: [n, D] and [n]."""
    place = jnp.arange(past.shape[1], dtype=jnp.int32)

    def again(past: Array, task: Array, t: Array, replacement: Array, number: Array) -> jax.Array:
        member = _member(key, _RERUN, number)
        uniform = jax.random.uniform(jax.random.fold_in(member, _CHOICES), past.shape, jnp.float32)
        fresh = uniform < tables.chance[task]
        choice = jnp.where(place < t, past, jnp.where(place == t, replacement, fresh))
        score = _score(depth, tables, choice & _taken(tables, choice))
        return outcome.draw(jax.random.fold_in(member, _OUTCOME), score)

    result: jax.Array = jax.vmap(again)(past, task, t, replacement, number)
    return result
