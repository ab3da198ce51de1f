"""What happened: event graphs of agent teams as padded arrays, their structure, and worlds with known credit.

Importing this package imports NumPy and JAX and nothing that reads files; readers are in `graphs.readers`.
"""

from graphs.errors import CapacityError, CreditError, MissingExtraError, NothingReadError, Problem, TraceError
from graphs.event_graph import ACTION_TYPES, KINDS, EdgeType, EventGraph, EventType
from graphs.levels import LEVELS, key_ids, level_ids, pair_ids, unit_ids
from graphs.padding import Sizes, bucket, pad, pad_array, sizes, unpad

__all__ = [
    "ACTION_TYPES",
    "KINDS",
    "LEVELS",
    "CapacityError",
    "CreditError",
    "EdgeType",
    "EventGraph",
    "EventType",
    "MissingExtraError",
    "NothingReadError",
    "Problem",
    "Sizes",
    "TraceError",
    "bucket",
    "key_ids",
    "level_ids",
    "pad",
    "pad_array",
    "pair_ids",
    "sizes",
    "unit_ids",
    "unpad",
]
