"""Prefixes that traces of one log share, and the siblings that follow them."""
