"""`python -m credit` and the `credit` command."""

from __future__ import annotations

import os
import signal
import sys

__all__ = ["main"]

INTERRUPTED = 128 + signal.SIGINT


def main() -> None:
    """Run the command line on `sys.argv`; leaves by `SystemExit` with the codes of `credit.cli`."""
    try:
        from credit.cli import cli

        cli()
    except (SystemExit, KeyboardInterrupt) as leaving:
        if isinstance(leaving, KeyboardInterrupt) or leaving.code == INTERRUPTED:
            # XLA's threads may still run, and crash an interpreter that is torn down.
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(INTERRUPTED)
        raise


if __name__ == "__main__":
    main()
