"""A page about logs: their contents, the groups with a signal, the credit of agents, and a view of each trace.

    Findings       the content of a page: traces, results of methods, and their ledger
    write_page     findings → one HTML file that needs no network
    PageServer     findings → the same page on the loopback address; it loads one trace at a time
    Labels         outcomes that a person gives to traces on a served page

`credit report`, `credit view` and `credit label` call them. The page computes no number. It arranges the
results of `credit.table`, `credit.compose`, `credit.explain`, `credit.compare` and `credit.reports`.
"""

from credit.page.findings import Findings
from credit.page.html import write_page
from credit.page.labels import Label, Labels
from credit.page.serving import PageServer

__all__ = ["Findings", "Label", "Labels", "PageServer", "write_page"]
