"""Options of commands that write files beside what they print: a table by `--output`, a picture by `--plot`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from credit.cli.shared.answers import stderr, words
from credit.cli.shared.provenance import source
from graphs.errors import CreditError
from graphs.text import counted

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

__all__ = [
    "PICTURES",
    "check_folder",
    "check_room",
    "look_options",
    "output_option",
    "picture_option",
    "prints_table",
    "save_picture",
    "save_table",
    "stay_outside",
    "table_path",
    "write_output",
]

PICTURES = (".svg", ".png", ".pdf")
LOOK = "credit.picture"  # the key of a call's context that holds the look of its pictures
CHECKED = "credit.room"  # the key that says whether `check_room` found room
DPI = 200  # of .png files: sharp on dense screens and in print at the usual widths


def output_option(
    help_: str,
    *,
    required: bool = False,
    metavar: str = "OUT",
    suffixes: tuple[str, ...] | None = None,
    allow_dash: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`--output FILE`; an unknown suffix or a missing folder is refused before anything is read.

    Args:
      help_: the text of the option.
      required: whether a call without it is refused.
      metavar: what the help calls the file.
      suffixes: how the name may end, () for any way; by default as that of a table.
      allow_dash: whether a table may go to standard output, by the name "-"; the command calls `prints_table`.
    """

    def check(context: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
        if allow_dash and path == Path("-"):
            return path
        if suffixes is None or path is None:
            return table_path(context, parameter, path)
        if suffixes and path.suffix not in suffixes:
            raise click.BadParameter(f"{str(path)!r}; expected a name ending in {' or '.join(suffixes)}")
        check_folder(path, "--output")
        return path

    return click.option(
        "--output",
        "-o",
        required=required,
        metavar=metavar,
        type=click.Path(dir_okay=False, path_type=Path),
        callback=check,
        help=help_,
    )


def picture_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--plot FILE`, a picture; an unknown suffix or a missing folder is refused before anything is read."""
    return click.option(
        "--plot",
        metavar="FILE",
        type=click.Path(dir_okay=False, path_type=Path),
        callback=lambda context, parameter, path: _picture_path(path),
        help="Also draw a figure: .svg, .png or .pdf.",
    )(look_options(command))


def look_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--size`, `--title`, `--style` and `--dpi` of pictures, which `save_picture` finds in the context of the call."""

    def keep(name: str) -> Callable[..., Any]:
        def callback(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
            context.meta.setdefault(LOOK, {})[name] = value

        return callback

    options = (
        click.option("--size", metavar="WIDTHxHEIGHT", expose_value=False, callback=lambda context, parameter, value:
                     keep("size")(context, parameter, _size(value)), help="Size of the figure in inches, as 3.4x2.5."),
        click.option("--title", metavar="TEXT", expose_value=False, callback=keep("title"),
                     help='Title of the figure; "" for none.'),
        click.option("--style", type=click.Choice(["plain", "serif", "talk"]), default="plain", show_default=True,
                     expose_value=False, callback=keep("style"),
                     help="Type of the figure: serif for papers, talk with larger text and lines for slides."),
        click.option("--dpi", type=click.IntRange(30, 2400), default=DPI, show_default=True, expose_value=False,
                     callback=keep("dpi"), help="Resolution of .png files."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def _size(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    width, sign, height = text.partition("x")
    try:
        size = float(width), float(height)
    except ValueError:
        sign, size = "", (0.0, 0.0)
    if not sign or not all(0 < length < 200 for length in size):
        raise click.BadParameter(f"{text!r}; expected WIDTHxHEIGHT in inches, as 3.4x2.5")
    return size


def prints_table(output: Path | str, as_json: bool) -> bool:
    """Whether a table goes to standard output; refused where JSON does, or where nothing can."""
    if str(output) != "-":
        return False
    if as_json:
        raise click.UsageError("--output - writes the table to standard output; expected a file with --json")
    if sys.stdout is None:
        raise click.BadParameter("standard output is closed; name a file", param_hint="--output")
    return True


def write_output(table: pa.Table, output: Path | str) -> None:
    """Write a table whole or not at all, or to standard output as CSV for "-"."""
    from credit.tables.files import printable_table, write_csv, write_table

    if str(output) == "-":
        write_csv(printable_table(table), sys.stdout.buffer)
    else:
        write_table(table, output)


def save_table(table: pa.Table, path: Path) -> None:
    """Write a table as `write_output` does, and print its name."""
    write_output(table, path)
    place = "standard output" if str(path) == "-" else path
    stderr().print(words(f"wrote {counted(table.num_rows, 'row')} to {place}"), soft_wrap=True)


def check_room(draw: Callable[[], Figure]) -> None:
    """Refuse a look that leaves no room for a picture, before anything is measured; one of no size has room.

    Args:
      draw: the picture of stand-ins: as many panels and series, with the same names.
    """
    from credit.plot.canvas import new_figure
    from credit.plot.finishing import refine

    look = click.get_current_context().meta.get(LOOK, {})
    if look.get("size") is None and look.get("style") != "talk":
        new_figure(1, 1)  # or there is no matplotlib
        return
    try:
        refine(draw(), **{name: value for name, value in look.items() if name != "dpi"}, tell=_looking)
    except CreditError as error:
        raise CreditError(f"{error}; nothing was measured yet") from error
    click.get_current_context().meta[CHECKED] = True


def _looking(lacks: str) -> None:
    """Say at once what is wrong with a size: to find a better one takes up to a minute."""
    stderr().print(words(f"{lacks}; looking for one that has room"), soft_wrap=True)


def save_picture(figure: Figure, path: Path, sources: Iterable[str] = ()) -> None:
    """Write a picture whole or not at all, and print its name.

    What took long to measure is drawn larger where its numbers have no room that those of stand-ins had.

    Args:
      figure, path: the picture, and where to.
      sources: what made its numbers, if not this call.
    """
    from credit.plot.finishing import refine, write_figure
    from graphs.atomic import atomic_write

    meta = click.get_current_context().meta
    look = dict(meta.get(LOOK, {}))
    dpi = look.pop("dpi", DPI)
    refine(figure, **look, larger=meta.get(CHECKED, False), tell=_looking)
    with atomic_write(path) as file:
        write_figure(figure, file, path.suffix.lstrip("."), dpi, "; ".join([source(), *sources]))
    size = tuple(map(float, figure.get_size_inches()))
    no_room = look.get("size") not in (None, size)
    larger = f" at {size[0]:g}x{size[1]:g} inches: its numbers have no room in the size that was asked for" * no_room
    stderr().print(words(f"drew {path}{larger}"), soft_wrap=True)


def table_path(context: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    """A path that a table can be written to; checked before anything is read."""
    if path is not None:
        from credit.tables.files import table_writer

        table_writer(path)
        check_folder(path, parameter.opts[0])
    return path


def _picture_path(path: Path | None) -> Path | None:
    if path is not None:
        if path.suffix not in PICTURES:
            raise click.BadParameter(
                f"{str(path)!r}; expected a name ending in {', '.join(PICTURES)}", param_hint="--plot"
            )
        check_folder(path, "--plot")
    return path


def check_folder(path: Path, option: str) -> None:
    """Refuse an output whose folder does not exist, before anything is read."""
    if not path.parent.is_dir():
        raise click.BadParameter(f"folder {str(path.parent)!r} does not exist", param_hint=option)


def stay_outside(context: click.Context, output: Path) -> None:
    """Refuse an output in a folder that is read: the next call would read every trace twice."""
    from graphs.reading.addresses import is_remote, local_path

    place = output.resolve()
    for path in context.params["paths"]:
        if path == "-" or is_remote(path):
            continue
        folder = local_path(path).resolve()
        if folder.is_dir() and (folder == place or folder in place.parents):
            problem = f"{str(output)!r} lies in {path!r}, which is read: its traces would be there twice"
            raise click.BadParameter(f"{problem}; expected a path outside of it", param_hint="--output")
