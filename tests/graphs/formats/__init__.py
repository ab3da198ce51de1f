"""Tests of the formats of other projects that every one of them must pass, and of each by itself."""
