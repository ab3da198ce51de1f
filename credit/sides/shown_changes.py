"""The words for a change between sides: beyond chance, shown in these tasks only, or not shown."""

from __future__ import annotations

from graphs.text import counted

__all__ = ["BEYOND_CHANCE", "only_in", "shown"]

BEYOND_CHANCE = "beyond chance"


def only_in(tasks: int) -> str:
    """The words for a change that the runs of these tasks show. Other tasks may change otherwise.

    Args:
      tasks: how many these are; 0 where several numbers are of other ones.
    """
    which = "this task" if tasks == 1 else f"these {counted(tasks, 'task')}" if tasks else "these tasks"
    return f"shown in {which} only"


def shown(*, beyond: bool = False, only: int = 0, seen: str | None = None) -> str:
    """The words for a change, by what its test found.

    Args:
      beyond: whether it is beyond chance over tasks.
      only: how many tasks there are, where it is so by their runs alone; else 0.
      seen: what would have been; "" where so few tasks show nothing; None where that is not known.

    Examples:
      >>> shown(beyond=True), shown(only=10), shown()
      ('beyond chance', 'shown in these 10 tasks only', 'no change shown')
      >>> shown(seen="0.4"), shown(seen="")
      ('no change shown (0.4 would be)', 'no change shown (too few tasks)')
    """
    if beyond:
        return BEYOND_CHANCE
    if only:
        return only_in(only)
    return "no change shown" + ("" if seen is None else f" ({f'{seen} would be' if seen else 'too few tasks'})")
