"""`python -m credit` and the `credit` command."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import threading
from typing import NoReturn

__all__ = ["main", "run"]

SHOW_CURSOR = b"\x1b[?25h"  # which a progress bar hides


def run() -> NoReturn:
    """`main`, and the end of the process.

    Where JAX was loaded, all that Python does at its end is done, but the interpreter is not torn down: it ends threads
    that ask for it, and one that is within XLA aborts the process then, with code 134 in place of the command's own.
    """
    code: str | int | None = 0
    try:
        main()
    except SystemExit as leaving:
        code = leaving.code or 0
    if "jaxlib" in sys.modules and isinstance(code, int):
        for thread in threading.enumerate():
            if thread is not threading.current_thread() and not thread.daemon:
                thread.join()
        atexit._run_exitfuncs()
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except OSError:
            sys.exit(code)  # Python tries again as it shuts down, and says so
        os._exit(code)
    sys.exit(code)


def main() -> None:
    """Run the command line on `sys.argv`; leaves by `SystemExit` with the codes of `credit.cli`."""
    gc.set_threshold(100_000)  # a command's objects are modules and functions, which no search for cycles frees
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):  # else `nohup` or a caller's own
            signal.signal(number, _leave)
    from credit.cli import cli
    from credit.compilation_cache import keep_compiled
    from graphs.when_imported import when_imported

    keep_compiled()
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # its own holds 20 to 35 MB more of a command
    when_imported("pyarrow", _leave_pandas)
    try:
        cli()
    finally:
        gc.freeze()  # nor does the one at the end, which took a sixth of a command
        # Python restores the default as it shuts down, and a late interrupt would kill a command whose work is done.
        if signal.getsignal(signal.SIGINT) is _leave:
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def _leave_pandas() -> None:
    """Have Arrow not look for pandas, which takes half a second to import: no command makes a data frame.

    Arrow looks once in a process, at the first list that becomes an array.
    """
    import pyarrow as pa

    if "pandas" not in sys.modules:
        sys.meta_path.insert(0, _NoPandas)
        try:
            pa.array([None])
        finally:
            sys.meta_path.remove(_NoPandas)


class _NoPandas:
    """A finder of modules that reports pandas as not installed."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name=name)


def _leave(number: int, frame: object) -> NoReturn:
    """Leave at once, without unfinished files: 130 when interrupted, 143 when terminated, as by a scheduler.

    It raises no exception: one raised within a callback of JAX would be ignored. It does not let Python shut down
    either: threads of XLA that still run would crash the interpreter.
    """
    atomic = sys.modules.get("graphs.atomic")
    if atomic is not None:
        atomic.remove_unfinished()
    if os.isatty(2):
        os.write(2, SHOW_CURSOR)
    os._exit(128 + number)


if __name__ == "__main__":
    run()
