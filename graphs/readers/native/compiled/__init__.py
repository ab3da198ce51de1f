"""Compiled loops that read native logs."""
