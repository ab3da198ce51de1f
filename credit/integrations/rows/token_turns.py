"""Turns of conversations: stretches of tokens that the policy wrote, and the rows that they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphs.errors import CreditError

__all__ = ["named_turns", "rows_of_turns"]


def named_turns(wrote: np.ndarray, messages: Sequence[Mapping[str, Any]]) -> tuple[np.ndarray, list[str]]:
    """The turn of each token of a conversation, -1 for the environment's, and the agent of each turn, "" for no name.

    Args:
      wrote: bool [tokens], what the policy wrote.
      messages: of the conversation, in order; the "name" of an assistant's is its agent.

    Raises:
      CreditError: messages of the assistant have names, but are not as many as there are turns.
    """
    begins = wrote & ~np.concatenate([[False], wrote[:-1]])
    turn = np.where(wrote, np.cumsum(begins) - 1, -1)
    count = int(begins.sum())
    names = [message.get("name") for message in messages if message.get("role") == "assistant"]
    if not any(names) or not count:
        return turn, [""] * count
    if len(names) != count or not all(names):
        raise CreditError(
            f"a trajectory has {count} stretches of the policy's tokens and messages of the assistant by {names}; "
            "expected one named message for each stretch"
        )
    return turn, [str(name) for name in names]


def rows_of_turns(
    turns: Sequence[tuple[np.ndarray, list[str]]], width: int
) -> tuple[np.ndarray, list[str] | None, list[int], np.ndarray]:
    """Rows of conversations: of each its conversation, agent and turn; and the row of each token, the last for none.

    Agents are None where no turn has a name: a column would say that all are one agent's.

    Args:
      turns: of each conversation, as of `named_turns`.
      width: tokens of the batch, [conversations, width]; what is beyond is cut off.

    Raises:
      CreditError: turns of some conversations only have names.
    """
    named = [any(agents) for _, agents in turns if agents]
    if any(named) and not all(named):
        raise CreditError(
            f"messages of the assistant have names in {sum(named)} of {len(named)} conversations; expected all or none"
        )
    sample: list[int] = []
    names: list[str] = []
    number: list[int] = []
    of_token = np.full((len(turns), width), -1)
    for i, (turn, agents) in enumerate(turns):
        kept = turn[:width]
        of_token[i, : len(kept)] = np.where(kept >= 0, kept + len(sample), -1)
        count = max(len(agents), 1)  # a conversation without tokens of the policy still has an outcome
        sample += [i] * count
        names += agents or [""]
        number += range(count)
    of_rows = [name or "agent" for name in names] if any(named) else None
    return np.array(sample, np.int64), of_rows, number, of_token
