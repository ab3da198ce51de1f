"""What readers share: files, places, typed decoding, joins, span trees."""
