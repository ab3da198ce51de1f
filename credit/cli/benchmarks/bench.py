"""`credit bench`: the group of the commands that measure methods on worlds whose truth is known."""

from __future__ import annotations

import click

from credit.cli.benchmarks.bench_bias import bias
from credit.cli.benchmarks.bench_doctor import doctor
from credit.cli.benchmarks.bench_plot import plot
from credit.cli.benchmarks.bench_robustness import robustness
from credit.cli.benchmarks.bench_snr import snr
from credit.cli.benchmarks.bench_table import table
from credit.cli.benchmarks.bench_train import train
from credit.cli.benchmarks.bench_truth import truth
from credit.cli.benchmarks.bench_worlds import worlds

__all__ = ["bench"]


class InOrder(click.Group):
    """A group whose help lists commands in the order in which they were added; click sorts them by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names."""
        return list(self.commands)


@click.group(cls=InOrder, short_help="Measure methods on worlds with known truth.")
def bench() -> None:
    """Measure methods on worlds with known truth.

    A method that cannot be measured, as for want of evidence, is left out: tables and captions say so, and why. Where
    no other is left, the call is refused.
    """


for _command in (bias, truth, snr, doctor, robustness, train, table, plot, worlds):
    bench.add_command(_command)
