"""Modules shared by readers: files, places, typed decoding, joins, span trees."""
