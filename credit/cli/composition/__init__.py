"""Commands about ledgers: compose, audit, explain."""
