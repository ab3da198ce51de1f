"""An additive critic, which learns from a few hundred traces."""
