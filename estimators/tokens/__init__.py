"""Below events: numbers per row spread over tokens, turn masks, loss aggregation."""
