"""Pictures, drawn by matplotlib. It is an extra, imported with the first picture.

    draw_trace          one trace: swim lanes of agents, what led to what, and what each action earned
    draw_ledger         one trace's reward as nested bars: expected, added by each event, and unexplained
    draw_snr            signal to noise against trace length, or against cost
    draw_snr_report     the same from a report of `credit.bench.snr.run`
    draw_comparison     methods on the same logs: their agreement, and the part of each role
    draw_methods        methods side by side: their exact bias, variance and order
    draw_truth          methods beside true increments: slope and correlation with their intervals
    draw_training       learning curves of signals, a panel for each task
    draw_calibration    whether predictions come true as often as they state
    refine              the size, title and type of any of them

Every function returns a `matplotlib.figure.Figure`; its `savefig("name.svg")` writes a file, and a notebook shows it at
the end of a cell. Nothing is saved unasked, and matplotlib's global state stays unchanged. Colours suit colour-blind
readers, and no distinction depends on colour alone. Names from logs are drawn as text, never as mathematics or TeX.
"""

from credit.plot.bias_dots import draw_methods
from credit.plot.finishing import refine
from credit.plot.nested_bars import draw_ledger
from credit.plot.reliability_diagram import draw_calibration
from credit.plot.side_by_side import draw_comparison
from credit.plot.snr_curves import Curve, draw_snr, draw_snr_report
from credit.plot.swim_lanes import draw_trace
from credit.plot.training_curves import draw_training
from credit.plot.truth_dots import draw_truth

__all__ = [
    "Curve",
    "draw_calibration",
    "draw_comparison",
    "draw_ledger",
    "draw_methods",
    "draw_snr",
    "draw_snr_report",
    "draw_trace",
    "draw_training",
    "draw_truth",
    "refine",
]
