"""Commands that compute advantages and fit critics."""
