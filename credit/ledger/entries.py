"""The entries of a ledger as arrays, and their totals at any level."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credit.ledger.rules import Reconcile
from credit.metrics.clustered_error import beyond_two_errors
from estimators.base import Credit, Reason
from estimators.composition.exact import Partition
from estimators.composition.nesting import level_size
from estimators.composition.votes import Errors
from graphs.event_graph import EventGraph
from graphs.html_table import html_table
from graphs.levels import TableLevel, ids_on_host
from graphs.text import counted

__all__ = ["Entries", "Totals"]


class Totals(NamedTuple):
    """Sums of increments over the units of a level, N of them; `units * 2**exponent` are the amounts exactly.

    Attributes:
      units: int64 [N, C], by channel; sums of integers, so exact in any order.
      exponent: int32 [N], of the unit's trace.
      amount: float [N], over all channels.
      unit_mask: bool [N], units that have an event; ids without one are padding.
    """

    units: np.ndarray
    exponent: np.ndarray
    amount: np.ndarray
    unit_mask: np.ndarray


@dataclasses.dataclass(frozen=True)
class Entries:
    """Entries of a batch. Integers are canonical (`partition`); the floats here derive from them.

    A **channel** is a source of credit, a column of cells: what an event got is the sum of what each channel brought.

    Attributes:
      graph: the batch.
      rule: by which it was composed.
      channels: C names; of the sources, and "total" for what the exact total moved under rule "reconcile".
      reward: float [T], the total of each trace; 0 where it has none.
      scored: bool [T], traces that have a reward.
      expected, outcome, unexplained, remainder: float [T].
      cells: float [E, C], what each channel brought to each event.
      increments: float [E], sums of cells; exactly 0 on events without a claim.
      stderr: float [E], of the increments; infinite where no source stated an error, NaN on events without a claim.
      claimed: bool [E], events that a claim, or the named scale of rule "reconcile", lets have an entry.
      partition: the integers and the grid; `partition.units` is [E * C].
      claims: the claims that took part, in the form in which they did.
      scales: results of estimand "scale", by source: no claims, but factors that `advantage` can apply last.
      refused: claims that took no part, or not everywhere, by source, and why.
      refused_traces: traces whose entries are outside the range of exact arithmetic, by row, and why; not `scored`.
      chi_squared: for pairs of sources, mean of (c_s − c_t)² / (s_s² + s_t²) where both claim with stated errors: near
        1 where errors are honest and independent, above 2 where they are too small or the claims mean different things,
        below 0.5 where the sources share rollouts.
      coverage: 1 − Var(unexplained) / Var(R − expected) over traces, what the entries account for: 1 by construction
        where they hold the trace's own outcome. NaN where R − expected does not vary.
      explained: share of the variance of the reward within groups that was known before the outcome, out of sample
        (`estimators.composition.explained`); NaN where nothing can be said.
      explained_stderr: its standard error over groups.
      unexplained_variance: τ², the prior variance of `unexplained` under rule "reconcile"; NaN under other rules.
      errors: how errors of 0 were taken.
      other_rewards: results that add up to something else than the reward of their trace, by source, and to what.
    """

    graph: EventGraph
    rule: str
    channels: tuple[str, ...]
    reward: jax.Array
    scored: jax.Array
    expected: jax.Array
    outcome: jax.Array
    unexplained: jax.Array
    remainder: jax.Array
    cells: jax.Array
    increments: jax.Array
    stderr: jax.Array
    claimed: jax.Array
    partition: Partition
    claims: tuple[Credit, ...]
    scales: Mapping[str, Credit]
    refused: Mapping[str, str]
    refused_traces: Mapping[int, str]
    chi_squared: Mapping[tuple[str, str], float]
    coverage: float
    explained: float = float("nan")
    explained_stderr: float = float("nan")
    unexplained_variance: float = float("nan")
    errors: Errors = dataclasses.field(default_factory=Errors)
    other_rewards: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def __repr__(self) -> str:
        traces, entries = int(np.asarray(self.scored).sum()), int(np.asarray(self.claimed).sum())
        refused = f"; refused: {', '.join(self.refused)}" if self.refused else ""
        refused += f"; of other rewards: {', '.join(self.other_rewards)}" if self.other_rewards else ""
        refused += f"; {self.holding_luck}" if self.holding_luck else ""
        refused += f"; none of {self.without_share}" if self.without_share else ""
        return (
            f"{type(self).__name__}(rule {self.rule!r}, {counted(traces, 'trace')}, "
            f"{counted(entries, 'action')} with an entry of "
            f"{', '.join(self.channels) or 'nobody'}, coverage {self.coverage:.3f}{refused})"
        )

    def _repr_html_(self) -> str:
        """What the ledger accounts for, and what of it is unexplained, for notebooks."""
        scored = np.asarray(self.scored)
        facts: dict[str, object] = {
            "rule": self.rule,
            "traces with a reward": int(scored.sum()),
            "actions with an entry": int(np.asarray(self.claimed).sum()),
            "channels": ", ".join(self.channels) or "none",
            "coverage": self.coverage,
            "entries within two standard errors of 0": int(self.noise.sum()),
        }
        facts |= {f"refused: {name}": why for name, why in self.refused.items()}
        facts |= {f"of other rewards: {name}": why for name, why in self.other_rewards.items()}
        facts |= {"outcome": self.holding_luck} if self.holding_luck else {}
        facts |= {"no entry": self.without_share} if self.without_share else {}
        parts = {
            "reward": self.reward,
            "expected": self.expected,
            "increments": self.increments,
            "outcome": self.outcome,
            "unexplained": self.unexplained,
            "remainder": self.remainder,
        }
        rows = [{"part": name, "sum over traces": float(np.asarray(v, np.float64).sum())} for name, v in parts.items()]
        return html_table(type(self).__name__, facts, rows)

    @property
    def took_part(self) -> tuple[str, ...]:
        """The sources of claims that made entries: by rule "reconcile" those that state an error."""
        unweighed = self.rule != Reconcile.name
        states = [claim for claim in self.claims if unweighed or np.isfinite(claim.stderr[claim.valid]).any()]
        return tuple(dict.fromkeys(claim.source for claim in states))

    @property
    def holding_luck(self) -> str:
        """Which claims hold the luck after the last action, in words, where `outcome` does not have it; else ""."""
        own = {claim.source for claim in self.claims if claim.own_outcome}
        holding = [source for source in self.took_part if source in own]
        if not holding or np.asarray(self.outcome).any():
            return ""
        return f"luck after the last action in entries of {', '.join(holding)}, as no outcome= states it"

    @property
    def at_once(self) -> np.ndarray:
        """bool [E], actions without an entry since several agents act at once: claims know what all did together."""
        reasons = [np.asarray(claim.reason) == Reason.AT_ONCE for claim in self.claims]
        at_once: np.ndarray = np.any([*reasons, np.zeros(self.graph.num_events, bool)], axis=0)
        at_once &= ~np.asarray(self.claimed)
        return at_once

    @property
    def without_share(self) -> str:
        """How many actions are `at_once`, and where their sum is, in words; "" where none is."""
        acts = counted(int(self.at_once.sum()), "action")
        said = f"{acts} of agents that act at once: what each brought is not known, and unexplained holds their sum"
        return said if self.at_once.any() else ""

    @property
    def reward_or_nan(self) -> jax.Array:
        """The reward of each trace, NaN where it has none, as methods take it: [T]."""
        return jnp.where(self.scored, self.reward, jnp.nan)

    @property
    def noise(self) -> np.ndarray:
        """bool [E], entries that are no more than two of their standard errors from 0.

        An entry without a stated error (`stderr` infinite) is never marked as noise, although it may be noise.
        """
        stderr = np.asarray(self.stderr, np.float64)
        beyond = beyond_two_errors(np.asarray(self.increments, np.float64), stderr)
        noise: np.ndarray = np.asarray(self.claimed) & np.isfinite(stderr) & ~beyond
        return noise

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reasons for doubt about the entries.

        They are: results that were computed from other rewards; no claim; entries that explain nothing out of sample,
        or have negative coverage; entries that are mostly noise; traces that were left out; pairs of sources whose χ²
        is above 2 or below 0.5.
        """
        words = list(self.other_rewards.values())
        claimed = np.asarray(self.claimed)
        if not claimed.any() and not self.at_once.any():
            words.append(
                "no claim is about increments of actions, so nothing is explained: pass increments, or returns with "
                "values (`gae`, `critic`)"
            )
        elif claimed.any() and self.coverage < 0:
            words.append(f"the entries have negative coverage ({self.coverage:.3g}): they vary more than the reward")
        if claimed.any() and self.explained - 2 * self.explained_stderr <= 0:
            words.append(
                f"out of sample the entries explain {self.explained:.3g} of the variance of the reward, which does not "
                "exceed 0 significantly"
            )
        noise = int(self.noise.sum())
        if claimed.any() and noise > claimed.sum() / 2:
            words.append(f"{noise} of {int(claimed.sum())} entries are within two standard errors of 0")
        if self.refused_traces:
            row, why = next(iter(self.refused_traces.items()))
            words.append(f"{counted(len(self.refused_traces), 'trace')} left out; trace {row}: {why}")
        for (source, other), value in self.chi_squared.items():
            if value > 2:
                words.append(
                    f"{source!r} and {other!r} differ more than their errors allow (χ² {value:.2f}): the stated errors "
                    "are too small, or the claims estimate different quantities"
                )
            elif value < 0.5:
                words.append(
                    f"{source!r} and {other!r} agree better than independent errors allow (χ² {value:.2f}): if they "
                    "share rollouts, give them one source"
                )
        return tuple(words)

    @property
    def units(self) -> np.ndarray:
        """The cells as integers, int64 [E, C]; a unit of a trace is worth 2**`partition.exponent` of it."""
        shape = (self.graph.num_events, len(self.channels))
        return np.asarray(self.partition.units).astype(np.int64).reshape(shape)

    def totals(self, level: TableLevel) -> Totals:
        """Increments summed over the units of a level, exactly.

        Raises:
          CreditError: no such level.
        """
        ids = ids_on_host(self.graph, level)
        real = np.asarray(self.graph.event_mask)
        count = level_size(self.graph, level)
        units = np.zeros((count, len(self.channels)), np.int64)
        np.add.at(units, ids[real], self.units[real])
        exponent = np.zeros(count, np.int32)
        exponent[ids[real]] = np.asarray(self.partition.exponent)[np.asarray(self.graph.trace_ids)[real]]
        unit_mask = np.zeros(count, bool)
        unit_mask[ids[real]] = True
        dtype = np.asarray(self.reward).dtype
        amount = np.ldexp(units.sum(axis=1).astype(dtype), exponent).astype(dtype)
        return Totals(units, exponent, amount, unit_mask)
