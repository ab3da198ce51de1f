"""A figure that a notebook shows without `%matplotlib inline`."""

from __future__ import annotations

import io

from matplotlib.figure import Figure

__all__ = ["ShownFigure"]

DPI = 100  # of the page


class ShownFigure(Figure):
    """A figure of matplotlib that is its own picture at the end of a cell."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """Two dots for each of the page, so that type is sharp."""
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=2 * DPI)
        width, height = (int(length * DPI) for length in self.get_size_inches())
        return file.getvalue(), {"width": width, "height": height}
