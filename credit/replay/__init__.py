"""Runs that did not happen: what to re-run within a budget, how to run it, and what evidence it becomes."""
