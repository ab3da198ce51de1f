"""Re-running: plan runs within a budget, run them, and turn them into evidence."""
