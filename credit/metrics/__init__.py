"""Numbers of traces beside credit: metrics, durations, costs, and what depends on an event."""
