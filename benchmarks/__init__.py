"""Programs that make the stored numbers of the documentation, and what only they and the tests need."""
