"""Readers of coding agents."""
