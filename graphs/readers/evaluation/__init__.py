"""Logs of evaluation harnesses and benchmarks."""
