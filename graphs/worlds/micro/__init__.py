"""Micro-orchestrations: teams small enough to enumerate every trace."""
