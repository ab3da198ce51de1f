"""Recording a team's model calls, and re-running the team by them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from credit.replay.drivers.call_session import Session
from credit.replay.drivers.call_tape import Tape
from credit.replay.replayer import Continuation, Prefix
from graphs.errors import CreditError

__all__ = ["Play", "TapeReplayer", "record"]

Play = Callable[[Session, str, int], float]
"""Runs the team on a task with a seed, all its models and tools behind the session, and returns the reward."""


def record(play: Play, trace: str, group: str, seed: int) -> Tape:
    """Run a team once and keep what its models and tools answered."""
    session = Session()
    reward = play(session, group, seed)
    if session.refused:
        raise CreditError(session.refused)
    return Tape(trace, group, session.calls, float(reward))


@dataclasses.dataclass(frozen=True)
class TapeReplayer:
    """A driver for teams whose model calls go through a `Session`. A forbidden agent is muted: it answers `mute`.

    Attributes:
      play: the team.
      tapes: the recorded runs by trace id.
      mute: what a forbidden agent answers to each call.
    """

    play: Play
    tapes: Mapping[str, Tape]
    mute: str = ""

    def run(
        self, prefix: Prefix, *, replace: str | None = None, forbid: Sequence[str] = (), n: int, seed: int
    ) -> list[Continuation]:
        """Run the team `n` times, with the seeds `seed`, `seed + 1`, …

        Raises:
          PrefixError: the prefix did not reproduce.
          CreditError: no tape of this trace, or a tool that must not be repeated.
        """
        return [self._one(prefix, replace, forbid, seed + i) for i in range(n)]

    def _one(self, prefix: Prefix, replace: str | None, forbid: Sequence[str], seed: int) -> Continuation:
        tape = self.tapes.get(prefix.trace)
        if tape is None:
            raise CreditError(f"trace is {prefix.trace!r}; expected one of the {len(self.tapes)} tapes")
        session = Session(tape, prefix, replace=replace, forbid=forbid, mute=self.mute)
        try:
            reward = float(self.play(session, prefix.group, seed))
        except Exception:
            session.finished()  # what went wrong first, if the framework wrapped it
            raise
        session.finished()
        earlier = frozenset(prefix.events)
        tokens = sum(call.tokens for call in session.calls if call.id not in earlier)
        return Continuation(reward, session.chosen[:200], tokens)
