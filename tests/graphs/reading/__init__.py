"""Readers, room by room, and laws over all formats."""
