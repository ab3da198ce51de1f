"""`Runs`: the draws of a scripted team, one row a trace."""

from __future__ import annotations

import dataclasses

import jax

from graphs.event_graph import Array

__all__ = ["Runs"]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Runs:
    """The draws: one row a trace.

    Attributes:
      trace, group, task: int32 [n]; trace i belongs to group i // group_size, which has task group % K.
      seed: uint32 [n], what the log's durations and token counts are drawn from.
      choice: bool [n, D], whether each decision was taken well; False where it was not taken at all.
      present: bool [n, D], decisions that were taken.
      score: int32 [n].
      reward: float32 [n], the outcome R.
      greedy_reward: float32 [n], outcome of a run of the group's task in which every choice was the likeliest.
    """

    trace: Array
    group: Array
    task: Array
    seed: Array
    choice: Array
    present: Array
    score: Array
    reward: Array
    greedy_reward: Array
