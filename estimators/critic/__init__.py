"""A learned critic for orchestrator decisions: a value for every prefix of a trace, and credit as its increments.

`features` holds what the critic sees, `network` its value of a prefix, `data` and `train` the fitting,
`calibration` how accurate it is, `credit` its increments of events, `contrasts` what spawning or stopping was
worth. `credit.critics.fitting` fits, keeps and applies one to traces that were read.

Fitting needs the extra `critic` (flax, optax); importing this package loads none of them.
"""
