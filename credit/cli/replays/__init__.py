"""Commands that plan and make runs that no log holds."""
