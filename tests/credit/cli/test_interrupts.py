"""Interrupts: no file is left, and nothing crashes."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import pytest

from .logs import start

LISTENING = (
    "-c",  # a shell starts what it runs in the background with interrupts ignored, and that is inherited
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); import credit.__main__ as c; c.main()",
)


@pytest.mark.sampled
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.slow
def test_an_interrupt_leaves_no_file(sent: signal.Signals, code: int, tmp_path: Path) -> None:
    with start("assign", "-", "-o", tmp_path / "out.csv", stdin=subprocess.PIPE, program=LISTENING) as process:
        assert process.stdin and process.stderr
        process.stdin.write(b" " * (1 << 20))  # more than a pipe holds: once it is gone, the command is reading
        process.stdin.flush()
        process.send_signal(sent)
        process.stdin.close()  # so that a signal between two system calls is noticed too
        assert b"Traceback" not in process.stderr.read()
    assert process.returncode == code
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_a_callback_is_not_ignored_and_leaves_no_part(sent: signal.Signals, tmp_path: Path) -> None:
    """An exception raised in a callback of the garbage collector, as JAX has one, would be printed and forgotten."""
    script = (
        "import gc, signal, sys\nimport credit.__main__ as door\nfrom graphs.atomic import atomic_write\n"
        "number = int(sys.argv[1])\nsignal.signal(number, door._leave)\n"
        "with atomic_write(sys.argv[2]) as file:\n    file.write(b'half')\n"
        "    gc.callbacks.append(lambda *_: signal.raise_signal(number))\n    gc.collect()\n"
    )
    with start(int(sent), tmp_path / "out.csv", program=("-c", script)) as process:
        assert process.communicate() == (b"", b"")
    assert process.returncode == 128 + sent
    assert not list(tmp_path.iterdir())


def test_an_interrupt_after_the_work_changes_no_exit_code() -> None:
    """While Python shut down, it killed a command that was done."""
    late = "import atexit, signal; atexit.register(signal.raise_signal, signal.SIGINT); "
    with start("--version", program=("-c", late + LISTENING[1])) as process:
        process.communicate()
    assert process.returncode == 0


@pytest.mark.slow
def test_threads_within_xla_change_no_exit_code(tmp_path: Path) -> None:
    """The teardown of Python ends a thread that asks for the interpreter; one that compiles aborted the process then.

    What Python does at its end is done all the same: threads that it waits for, handlers, temporary files, output.
    """
    script = (
        "import atexit, builtins, sys, tempfile, threading, time\nimport jax, jax.numpy as jnp\n"
        "import credit.__main__ as door\n"
        "class Slow:\n    def __del__(self, sleep=time.sleep):\n        sleep(3)\n"
        "builtins.slow = Slow()\n"  # within the teardown, so that the thread meets it
        "def compile_on(i=0):\n    while True:\n        i += 1\n        jax.jit(lambda x: x * i)(jnp.ones(100 + i))\n"
        "threading.Thread(target=compile_on, daemon=True).start()\n"
        "threading.Thread(target=lambda: (time.sleep(0.5), print('awaited'))).start()\n"
        "atexit.register(print, 'handled')\nfolder = tempfile.TemporaryDirectory(dir=sys.argv.pop())\n"
        "time.sleep(0.3)\ndoor.run()\n"
    )
    with start("validate", "--nonsense", tmp_path, program=("-c", script)) as process:
        out, error = process.communicate(timeout=120)
    assert process.returncode == 1, error.decode()
    assert out.split() == [b"awaited", b"handled"] and b"No such option" in error
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_an_interrupt_while_computing_is_no_crash(good: Path, tmp_path: Path) -> None:
    """Interpreters that are torn down while XLA compiles crash; the command leaves without tearing down."""
    command = ("compose", good, "--methods", "rloo,dr_mas", "-o")
    whole = tmp_path / "whole.csv"
    with start(*command, whole, program=LISTENING) as process:
        process.communicate()
    for delay in (1.5, 3.0):
        out = tmp_path / f"{delay}.csv"
        with start(*command, out, program=LISTENING) as process:
            time.sleep(delay)
            process.send_signal(signal.SIGINT)
            process.communicate()
        assert process.returncode in (130, 0)  # 0 where it was done before
        assert {path.name for path in tmp_path.iterdir()} <= {good.name, whole.name, "1.5.csv", "3.0.csv"}
        if out.exists() or process.returncode == 0:  # met after its work was written, an interrupt takes nothing back
            assert out.read_bytes() == whole.read_bytes()
