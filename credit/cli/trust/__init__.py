"""Commands that list, choose, compare and score methods."""
