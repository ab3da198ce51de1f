"""Methods beside the truth: how much of the true credit their advantages hold, and how much noise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from credit.plot.finishing import shown_name
from credit.plot.interval_dots import Dot, draw_dots
from graphs.errors import CreditError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from credit.bench.against_truth import Match
    from credit.bench.refusals import Absent

__all__ = ["draw_truth"]

LABELS = {
    "slope": "slope on true increments",
    "correlation": "correlation with true increments",
    "sign": "share of advantages\nwith the true sign",
    "answered": "share of decisions\nwith an advantage",
}
PANELS = ("slope", "correlation")
LINES = {"slope": 1.0, "correlation": 0.0}
ENDS = ("", "_low", "_high")


def draw_truth(
    rows: Sequence[Match],
    *,
    title: str = "",
    scores: Sequence[str] = PANELS,
    values: str = "",
    absent: Sequence[Absent] = (),
) -> Figure:
    """Draw slope and correlation of each method with 95 % intervals, a marker for each world, methods in their order.

    Each of several sizes of groups has its own panels, on shared axes.

    Lines mark slope 1, where a method gives all of the true credit, and correlation 0, where it gives none of it.

    Args:
      rows: of `credit.bench.against_truth.score`.
      title: above the panels; "" for none.
      scores: fields of a row, a panel each.
      values: what values methods were given, to be stated, such as that of `credit.bench.given_values`.
      absent: methods that were left out, to be stated.

    Raises:
      MissingExtraError: matplotlib is not installed.
      CreditError: there are no rows.
    """
    from credit.bench.refusals import absent_caption, refused_caption

    if not rows:
        raise CreditError("rows is empty; expected results of credit.bench.against_truth.score")
    sizes = sorted({row.group_size for row in rows})
    dots = [
        Dot(row.method, row.world, row.group_size, LABELS[score], *(getattr(row, score + end, np.nan) for end in ENDS))
        for row in rows
        for score in scores
    ]
    counts = " to ".join(f"{n:,}" for n in sorted({f(row.groups for row in rows) for f in (min, max)}))
    of_size = f"groups of {sizes[0]} traces" if sizes[0] and len(sizes) == 1 else "groups"
    groups = f"{counts} {of_size}" if counts != "0" else of_size * (of_size != "groups")
    refused = refused_caption((shown_name(row.method), row.answered) for row in rows)
    lines = {LABELS[score]: at for score, at in LINES.items()}
    bars = ("bars: 95 % intervals",) if any(np.isfinite([dot.low, dot.high]).any() for dot in dots) else ()
    stated = (groups, *bars, values, refused, absent_caption(absent, shown_name))
    return draw_dots(dots, lines, stated, title, shares=[LABELS[score] for score in ("sign", "answered")])
