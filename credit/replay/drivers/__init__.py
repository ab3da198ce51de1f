"""Drivers: what continues a team from a prefix, one file for each kind of team."""
