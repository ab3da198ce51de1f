"""The picture of a measured report: signal to noise of each scheme against trace length."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from credit.plot.snr_curves import Curve, draw_snr

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from credit.bench.snr import Report

__all__ = ["draw_snr_report"]


def draw_snr_report(report: Report, *, names: Sequence[str] | None = None, equal_cost: bool = False) -> Figure:
    """The points of the first group size against trace length.

    Args:
      report: what was measured.
      names: of the schemes to draw; all by default.
      equal_cost: divide by the square root of the rollouts that the evidence of a trace takes, since gradients average:
        what one rollout's worth of evidence gives.

    Raises:
      MissingExtraError: matplotlib is not installed.
      CreditError: no scheme has points at two lengths.
    """
    drawn = []
    for line in report.fits:
        points = [p for p in report.points if p.scheme == line.scheme and p.group == line.group]
        if line.group != report.points[0].group or (names is not None and line.scheme not in names):
            continue
        scale = 1 / np.sqrt([p.cost for p in points]) if equal_cost else np.ones(len(points))
        theory = [p.theory for p in points]
        drawn.append(
            Curve(
                name=line.scheme,
                length=np.array([p.length for p in points]),
                snr=scale * [p.snr for p in points],
                low=scale * [p.low for p in points],
                high=scale * [p.high for p in points],
                theory=None if any(t is None for t in theory) else scale * np.array(theory, float),
                slope=None if equal_cost else line.slope,
            )
        )
    figure = draw_snr(drawn)
    if equal_cost:
        figure.axes[0].set_ylabel("signal to noise / √(rollouts of evidence a trace)", fontsize=9)
    return figure
