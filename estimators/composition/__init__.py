"""What the ledger solves: increments, claims at nested levels, exact partitions, control variates."""
