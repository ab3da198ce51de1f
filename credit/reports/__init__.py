"""Diagnostics: what a corpus holds, one trace as text, methods compared, human labels, reliability."""
