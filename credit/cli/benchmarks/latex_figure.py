"""A figure for LaTeX: a picture whose notes stand in the caption, and the lines that include it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from credit.cli.benchmarks.latex_text import typeset
from credit.cli.benchmarks.long_table import COLUMN, label_of
from credit.cli.shared.answers import stderr, words
from credit.cli.shared.outputs import save_picture
from graphs.text import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["save_latex_figure"]

POINTS = 72.27
"""Of TeX, to an inch."""


def save_latex_figure(figure: Figure, path: Path, caption: str, sources: Iterable[str] = ()) -> None:
    """Write the picture beside `path` as .pdf, at the size that it has on the page, and the lines as `path`.

    Args:
      figure: of a benchmark; the title of its legend, which has the notes, moves into the caption.
      path: ends in .tex.
      caption: what the figure shows.
      sources: what made its numbers.
    """
    from graphs.atomic import atomic_write

    notes = [text for legend in figure.legends if (text := " ".join(legend.get_title().get_text().split()))]
    for legend in figure.legends:
        legend.set_title("")
    picture = path.with_suffix(".pdf")
    save_picture(figure, picture, sources := [*sources])
    star = "*" if figure.get_figwidth() * POINTS > COLUMN else ""
    told = ". ".join([caption, *(note[0].upper() + note[1:] for note in notes)])
    lines = [
        *(f"% {printable(one, 2000)}" for one in sources),
        r"% needs \usepackage{graphicx}",
        rf"\begin{{figure{star}}}",
        r"\centering",
        rf"\includegraphics{{{picture.name}}}",
        rf"\caption{{{typeset(told)}}}",
        rf"\label{{{label_of(path.stem, 'fig')}}}",
        rf"\end{{figure{star}}}",
    ]
    with atomic_write(path) as file:
        file.write("".join(f"{line}\n" for line in lines).encode())
    stderr().print(words(f"wrote {path}"), soft_wrap=True)
