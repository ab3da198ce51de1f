"""Recursions along sequences of events: returns and generalised advantage estimation."""
