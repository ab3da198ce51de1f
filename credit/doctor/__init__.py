"""Faults of teams and of what they are rewarded for: checks of a batch, each with a statistic, a limit and a test."""
