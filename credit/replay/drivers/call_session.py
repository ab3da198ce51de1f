"""One run of a team by its model calls: calls before a decision are answered from a tape, later ones by the model.

A `Session` stands between a team and its models in one run. Without a tape it records. With one, it answers each call
before the decision with what was recorded, if the request is the recorded one, and raises `PrefixError` otherwise. The
team's own code runs again in between, so hand-offs, routing and tools are repeated rather than imitated.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeVar, get_args

from credit.replay.drivers.call_tape import Call, Tape, digest
from credit.replay.replayer import Prefix, PrefixError
from graphs.errors import CreditError
from graphs.text import excerpt

__all__ = ["Answer", "Effects", "Session"]

Effects = Literal["none", "replayable", "once"]
"""What a tool changes: nothing; something that a run may change again; or something that must not be repeated."""

_ToolFn = TypeVar("_ToolFn", bound=Callable[..., Any])


@dataclasses.dataclass(frozen=True)
class Answer:
    """How a call is answered: "live" by the model, "logged" with `value` from the tape, or "text" with `value`."""

    kind: Literal["live", "logged", "text"]
    value: Any = None


class Session:
    """One run of a team, recorded or replayed.

    Args:
      tape: the run to repeat; None records a new one.
      prefix: where the repetition ends.
      replace: a text in place of the decision; None asks the model.
      forbid: agents that are muted: each of their calls is answered with `mute`.
      mute: that text.
    """

    def __init__(
        self,
        tape: Tape | None = None,
        prefix: Prefix | None = None,
        *,
        replace: str | None = None,
        forbid: Sequence[str] = (),
        mute: str = "",
    ) -> None:
        self._logged = {call.id: call for call in tape.calls} if tape is not None else {}
        self._before = frozenset(prefix.events) if prefix is not None else frozenset()
        self._decision = prefix.decision if prefix is not None else None
        self._replace, self._forbid, self._mute = replace, frozenset(forbid), mute
        self._count: dict[str, int] = {}
        self._lock = threading.Lock()
        self._ended: list[Call] = []
        self.passed = tape is None or self._decision is None
        self.strayed = ""
        self.refused = ""
        self.chosen = ""
        self.effects: dict[str, Effects] = {}

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls that have ended so far."""
        with self._lock:
            return tuple(self._ended)

    def ask(
        self, agent: str, request: Any, *, name: str | None = None, differs: Callable[[str], str] | None = None
    ) -> tuple[str, Answer]:
        """The id of an agent's next call, and how it is answered.

        Args:
          agent: who asks; of several instances of one agent, which.
          request: what is asked, as JSON.
          name: the agent's name, by which it is forbidden. Default: `agent`.
          differs: how the request of the call with this id differs from the recorded one, in words.

        Raises:
          PrefixError: the request of a call before the decision, or of the decision, is not the recorded one.
        """
        with self._lock:
            call = self._next(agent)
            if (agent if name is None else name) in self._forbid:
                return call, Answer("text", self._mute)
            if call not in self._before and call != self._decision:
                return call, Answer("live")
            logged = self._logged.get(call)
            if logged is None or logged.request != digest(request):
                how = "" if differs is None or logged is None else f": {differs(call)}"
                raise self._stray(f"call {call!r} was asked for something else than in the log{how}")
            if call in self._before:
                return call, Answer("logged", logged.response)
            self.passed = True
            return call, Answer("live") if self._replace is None else Answer("text", self._replace)

    def withdraw(self, agent: str) -> None:
        """The agent's latest call failed; its next one has the same id."""
        with self._lock:
            self._count[agent] -= 1

    def answered(self, name: str, agent: str, request: Any, response: Any, text: str, tokens: int) -> None:
        """Note the answer of a call; `text` is what stands for it as an alternative."""
        with self._lock:
            self._ended.append(Call(name, agent, digest(request), response, tokens))
            if name == self._decision:
                self.chosen = text

    def tool(self, effects: Effects) -> Callable[[_ToolFn], _ToolFn]:
        """Declare a tool: a decorator for a function of JSON arguments with a JSON result.

        A tool with the effect "none" or "replayable" runs again before the decision, and its answer must be the
        recorded one. One with "once" is answered from the tape there, and refused afterwards.

        Raises:
          CreditError: another effect.
        """
        if effects not in get_args(Effects):
            raise CreditError(f"effects is {effects!r}; expected {' or '.join(map(repr, get_args(Effects)))}")

        def declared(function: _ToolFn) -> _ToolFn:
            self.effects[function.__name__] = effects

            @functools.wraps(function)
            def call(*args: Any, **kwargs: Any) -> Any:
                return self._tool(function, effects, args, kwargs)

            return call  # type: ignore[return-value]

        return declared

    def check_tools(self, names: Iterable[str]) -> None:
        """Refuse tools that were not declared.

        Raises:
          CreditError: there is one.
        """
        unknown = sorted(set(names) - self.effects.keys())
        if unknown:
            self.refused = (
                f"tool {unknown[0]!r} is not declared; expected `session.tool(effects)` around it, since a replay "
                "repeats what it does"
            )
            raise CreditError(self.refused)

    def finished(self) -> None:
        """Check that the run came past its decision.

        Raises:
          PrefixError: it did not reproduce, or ended before.
          CreditError: a tool was refused.
        """
        if self.strayed:
            raise PrefixError(self.strayed)
        if self.refused:
            raise CreditError(self.refused)
        if not self.passed:
            raise PrefixError(f"the run ended before call {self._decision!r}")
        left = self._before & self._logged.keys() - {call.id for call in self.calls}
        if left:
            raise PrefixError(f"the run did not make call {min(left)!r}, which the log has before the decision")

    def _tool(
        self, function: Callable[..., Any], effects: Effects, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        request = [list(map(str, args)), {key: str(value) for key, value in kwargs.items()}]
        key = f"tool:{function.__name__}"
        with self._lock:
            name = self._next(key)
            logged = None if self.passed else self._logged.get(name)
        if logged is not None and logged.request != digest(request):
            raise self._stray(f"{name} was called with something else than in the log")
        if effects == "once" and self._logged:
            if logged is None:
                self.refused = f"{name} must not be repeated, and the log has no answer to it"
                raise CreditError(self.refused)
            result = logged.response
        else:
            result = function(*args, **kwargs)
            if logged is not None and json.loads(json.dumps(result)) != logged.response:
                raise self._stray(f"{name} answered {excerpt(result)}; the log has {excerpt(logged.response)}")
        with self._lock:
            self._ended.append(Call(name, "", digest(request), json.loads(json.dumps(result))))
        return result

    def _next(self, key: str) -> str:
        number = self._count.get(key, 0)
        self._count[key] = number + 1
        return f"{key}/{number}"

    def _stray(self, why: str) -> PrefixError:
        self.strayed = self.strayed or why  # a framework may swallow the exception
        return PrefixError(why)
