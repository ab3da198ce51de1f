"""Receipts: what each claim on an event asked for, what the ledger paid, and why they differ."""
