"""Alternatives to what happened: replays, contrasts, other policies, difference rewards."""
