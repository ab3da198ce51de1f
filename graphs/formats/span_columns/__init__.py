"""Spans as columns: the graphs of all traces of a log at once, because most of the time goes to calls, not data.

`plain_spans` keeps what `otlp.spans.Span` keeps of a span, a column each; `attribute_shapes` and `blocks` fill the
columns from decoded dumps; `forest` sets up the span trees of all traces, `team_events` makes and orders their events,
`team_edges` links them, and `team_parts` joins all into a `Part`. A trace that is not plain - it bears marks, or a rule
of `otlp.tree` changes what one of its spans is - is made by `otlp.assembly`, as OTLP is; `bulk` divides the two.
`foreign_rows` finds spans whose parent is of another trace.
"""
