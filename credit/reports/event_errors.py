"""Which events a log calls errors."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc

from graphs.traces.batch import Traces

__all__ = ["error_mask"]

ERRORS = r"error|failed|failure|exception|timeout|denied|rejected|cancelled|(^|[^a-z])err([^a-z]|$)"
"""What the status, in lower case, of an event that went wrong has in it; "err" as a word, since "deferred" has it."""


def error_mask(traces: Traces) -> np.ndarray:
    """Whether the log calls each real event an error: bool [number of real events]."""
    status = traces.events["status"].combine_chunks().dictionary_encode()  # few statuses, many events
    wrong = pc.match_substring_regex(pc.utf8_lower(status.dictionary), ERRORS).to_numpy(zero_copy_only=False)
    which = status.indices.fill_null(len(wrong)).to_numpy(zero_copy_only=False)
    errors: np.ndarray = np.append(wrong, False).astype(bool)[which]
    return errors
