"""Learned critics of logged traces: fitting them, what a fitted one answers, and the folder that keeps it."""
