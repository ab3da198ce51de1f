"""What a log can cost: reading is linear in it, whatever it holds."""
