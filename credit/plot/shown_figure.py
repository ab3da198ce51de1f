"""A figure that a notebook shows without `%matplotlib inline`."""

from __future__ import annotations

import io
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

__all__ = ["LETTERS", "ShownFigure"]

DPI = 100  # of the page
LETTERS: dict[Any, Any] = {"text.hinting": "none"}  # on places between dots


class ShownFigure(Figure):
    """A figure of matplotlib that is its own picture at the end of a cell.

    Its letters stand where they belong, not on whole dots: those of a page, as `%matplotlib inline` draws them, are so
    few that words fell apart.
    """

    def draw(self, renderer: Any) -> None:
        """As matplotlib draws it."""
        with rc_context(LETTERS):
            super().draw(renderer)

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """Two dots for each of the page, so that type is sharp."""
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=2 * DPI)
        width, height = (int(length * DPI) for length in self.get_size_inches())
        return file.getvalue(), {"width": width, "height": height}
