"""Readers of tracing tools."""
