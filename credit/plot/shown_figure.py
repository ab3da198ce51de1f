"""A figure that a notebook shows without `%matplotlib inline`."""

from __future__ import annotations

import io

from matplotlib.figure import Figure

__all__ = ["ShownFigure"]


class ShownFigure(Figure):
    """A figure of matplotlib that is its own picture at the end of a cell."""

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=100)
        return file.getvalue()
