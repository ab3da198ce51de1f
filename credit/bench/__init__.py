"""Benchmarks on worlds whose truth is known: exact bias by enumeration, signal to noise by sampling."""
