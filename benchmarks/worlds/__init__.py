"""Worlds with known truth that only benchmarks and tests draw from; those of the library are in `graphs.worlds`."""
