"""Which events a log calls errors."""

from __future__ import annotations

import numpy as np

from graphs.traces.batch import Traces
from graphs.traces.statuses import says_error

__all__ = ["error_mask"]


def error_mask(traces: Traces) -> np.ndarray:
    """Whether the log calls each real event an error: bool [number of real events]."""
    status = traces.events["status"].combine_chunks().dictionary_encode()  # few statuses, many events
    wrong = [says_error(word) for word in status.dictionary.to_pylist()]
    which = status.indices.fill_null(len(wrong)).to_numpy(zero_copy_only=False)
    errors: np.ndarray = np.append(wrong, False).astype(bool)[which]
    return errors
