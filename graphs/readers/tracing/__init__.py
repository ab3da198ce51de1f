"""Exports of tracing systems: traces made of spans."""
