"""Commands that run benchmarks and the demonstration."""
