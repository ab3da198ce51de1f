"""The core of all trainers: advantages of rows, their columns, which of them count, and metrics."""
