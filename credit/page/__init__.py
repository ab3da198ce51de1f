"""A page about logs: what was read, which groups carry a signal, who earned the reward, and a view of each trace.

    Findings       traces with the results of methods and their ledger: what a page shows
    write_page     findings → one HTML file that needs no network
    PageServer     findings → the same page on the loopback address, which asks for one trace at a time
    Labels         outcomes that a person gives to traces on a served page

`credit report`, `credit view` and `credit label` call them. Every number on a page is that of the function that
computes it elsewhere: `credit.table`, `credit.compose`, `credit.explain`, `credit.compare`, and those of
`credit.reports`. The page only arranges them.
"""

from credit.page.findings import Findings
from credit.page.html import write_page
from credit.page.labels import Label, Labels
from credit.page.serving import PageServer

__all__ = ["Findings", "Label", "Labels", "PageServer", "write_page"]
