"""Agents that write, read or cost more in a run in which they act, however often that is, in words."""

from __future__ import annotations

from collections.abc import Sequence

from credit.sides.side_agents import AgentDifference
from credit.sides.side_words import MOST_TOLD, first_to_second, short, up_to
from graphs.text import counted, printable

__all__ = ["agents_that_changed"]

DOES = {"tokens": "write", "input_tokens": "read"}
"""What an agent does that has more of a metric; of money it costs more."""
ALWAYS = 1 - 1e-9
"""Part of the runs from which an agent acts in all of them."""


def agents_that_changed(metric: str, parts: Sequence[AgentDifference], *, brief: bool = False) -> list[str]:
    """Who has more of a cost in a run in which it acts, and who less, beyond chance; nothing where the differences of
    all runs say as much, as of agents that act in all of them.

    Args:
      metric: the cost.
      parts: what each agent adds to it.
      brief: whether only by how many times is told.

    Examples:
      >>> import numpy as np
      >>> from credit.reports.trace_numbers import numbered
      >>> from credit.sides.side_tests import compare_metric
      >>> wrote, side = numbered(np.repeat([366.0, 565.0], 9)), np.repeat([0, 1], 9)
      >>> test = compare_metric("tokens", wrote, side, np.arange(18), None)
      >>> one = AgentDifference("tech", 92.0, 141.0, 49.0, ([], []), acting=(0.2, 0.3), test=test, changed=True)
      >>> agents_that_changed("tokens", [one])
      ['tech writes more: 366 to 565 tokens a run in which it acts']
    """
    told = []
    for rises, more in ((True, "more"), (False, "less")):
        of = [one for one in parts if one.changed and one.test is not None and one.test.rises == rises]
        if all(min(one.acting) >= ALWAYS and one.stands_out for one in of):
            continue
        unit = f"{'tokens ' * (metric in DOES)}a run in which it acts"
        numbers = [first_to_second(one.test.first, one.test.second) for one in of if one.test is not None]
        names = [printable(one.agent, 60) for one in of]
        verb = DOES.get(metric, "cost")
        if brief and len(of) == 1:
            told.append(f"{names[0]} {verb}s {_times(of[0])} a run in which it acts")
            continue
        if brief and of:
            said = up_to([f"{name} {_times(one)}" for name, one in zip(names, of, strict=True)], MOST_TOLD)
            told.append(f"{_group(of, parts)} {verb} {more} where they act: {', '.join(said)}")
            continue
        if len(of) == 1:
            told.append(f"{names[0]} {verb}s {more}: {numbers[0]} {unit}{_by_calls(of[0], metric)}")
            continue
        pairs = (f"{name} {number}" for name, number in zip(names, numbers, strict=True))
        said = [f"{pair} {unit}" if place == 0 else pair for place, pair in enumerate(pairs)]
        told.append(f"{_group(of, parts)} {verb} {more}: {', '.join(up_to(said, MOST_TOLD))}")
    return told


def _times(one: AgentDifference) -> str:
    """By what a run in which it acts has more, or less."""
    first, second = (0.0, 0.0) if one.test is None else (one.test.first, one.test.second)
    return f"{short(second / first)} times as much" if first > 0 else first_to_second(first, second)


def _by_calls(one: AgentDifference, metric: str) -> str:
    """By what its calls of such a run, and the tokens of a call, were multiplied; "" where these are not known."""
    tokens = {"tokens": one.generated, "input_tokens": one.read}.get(metric, (0.0, 0.0))
    if min(*tokens, *one.calls, *one.acting) <= 0:
        return ""
    (first, second), (a, b) = ([of / of_all for of, of_all in zip(*both, strict=True)]
                               for both in ((one.calls, one.acting), (tokens, one.calls)))  # fmt: skip
    return f" (calls ×{short(second / first)}, tokens per call ×{short(b / a)})"


def _group(of: Sequence[AgentDifference], parts: Sequence[AgentDifference]) -> str:
    """How many agents these are, and whether all: of the team, or of those that act in only some runs."""
    some = [one for one in parts if min(one.acting) < ALWAYS]
    count = counted(len(of), "agent")
    if len(of) == len(parts):
        return f"all {count}"
    if len(of) == len(some) and all(one in some for one in of):
        return f"all {count} that act in only some runs"
    return count
