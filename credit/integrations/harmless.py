"""What runs inside a trainer whether or not it asked for credit: an error there must not end its run."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable

__all__ = ["harmless"]


def harmless(act: Callable[[], None]) -> Callable[[], None]:
    """The function, but an exception is logged in place of being raised.

    A run that then names an estimator or a trainer of this library fails with the trainer's error for unknown names;
    the log says why.
    """

    @functools.wraps(act)
    def guarded() -> None:
        try:
            act()
        except Exception as error:  # noqa: BLE001 - libraries that do not fit together raise errors of any class
            what = "orchestration-credit adds nothing to this trainer, which runs as without it"
            logging.getLogger("credit").warning("%s: %s: %s", what, type(error).__name__, error)

    return guarded
