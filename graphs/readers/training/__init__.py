"""Logs of trainers: rollouts and rows."""
