"""Baselines and normalisers: a trace, row, role or turn against others of its group."""
