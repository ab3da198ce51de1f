"""Strictness for the whole suite, and the real logs where they are present."""

from __future__ import annotations

import atexit
import ctypes
import functools
import gc
import importlib
import importlib.util
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import pytest

# One setting for the whole run: a compiled function is traced again under another one, and a law counts the traces.
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")

# Where the environment forbids to keep bytecode, as images of containers do, each worker and each command that a test
# starts would compile the library again, and pytest would rewrite its plugins again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Hypothesis draws the same examples in each run, so that a run can be repeated; `pytest --hypothesis-profile=search`
# draws others. A busy machine is no failure: no example has a deadline.
if importlib.util.find_spec("hypothesis") is not None:  # not in the environments of `make integrations`
    import hypothesis

    hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None)
    hypothesis.settings.register_profile("search", deadline=None)
    hypothesis.settings.load_profile("repeatable")

# Python looks for garbage in cycles after every 700 new objects, and a thorough look goes through all that JAX traced
# and pytest collected: a fifth of the time of collecting tests, and a second now and then in a test.
gc.set_threshold(500_000, 100, 50)

# What a test writes need not outlast a power cut: the disk took 12 ms a file, in which nothing ran.
os.fsync = os.fstat  # type: ignore[assignment]

# Threads of linear algebra wait for work by spinning: a tenth of the time of two workers on two cores. They are started
# with NumPy, so this is for workers and commands.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

# To free what JAX compiled takes a worker seconds at its end. This is called after what later imports have registered.
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")
if WORKER:
    atexit.register(os._exit, 0)

# Tables are as wide as the console; tests read those of a console that has no width.
os.environ.pop("COLUMNS", None)

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tests" / "helpers"))  # helpers of tests in several folders, by their names
LONGEST_TEST = 1200
"""Seconds of the wall clock after which a test fails: none may hang, whatever it waits for."""

# Compiling takes most of the suite's time, and every worker would compile the same small operations. Commands and
# notebooks that tests start, the next run, and the run on the next interpreter of the same JAX find them here.
COMPILED = {
    "jax_compilation_cache_dir": str(ROOT / ".pytest_cache" / "xla"),
    "jax_persistent_cache_min_compile_time_secs": 0,
    "jax_persistent_cache_min_entry_size_bytes": -1,
    "jax_persistent_cache_enable_xla_caches": "",  # those of GPUs: their folder is part of each key, so a copy misses
}
for option, setting in COMPILED.items():
    jax.config.update(option, setting)
    os.environ[option.upper()] = str(setting)

# JAX makes a context of MLIR for each function that it lowers, and keeps it with the function: a tenth of the time of
# tests that compile, and a third of their memory. One context serves all. A release that has no such function has none.
mlir = importlib.import_module("jax._src.interpreters.mlir")
if hasattr(mlir, "make_ir_context"):
    mlir.make_ir_context = functools.cache(mlir.make_ir_context)

# What JAX compiles and traces lives as long as the process, more than 1 MB for each compilation. A compiled function
# also keeps about 24 regions of memory mapped, and Linux allows a process 65,530: a worker at that limit ends with a
# segmentation fault at its next compilation. To forget takes a second for each GB, and what is used again is traced
# again: workers may hold a third of the memory, up to 4 GB each.
COMPILATIONS_BETWEEN_LOOKS = 50
MACHINE = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if sys.platform == "linux" else 0
WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
MOST_RESIDENT = max(1_500_000_000, min(4_000_000_000, MACHINE // (3 * WORKERS)))
MOST_MAPPED_REGIONS = 40_000
compilations = 0
times_forgotten = 0
modules = 0  # imported before the test

# Folders whose tests draw random numbers in JAX by way of library functions.
DRAWING = ("shapley", "critic", "training", "worlds", "replay")


def count_compilation(event: str, _seconds: float, **_attributes: str | int) -> None:
    global compilations
    compilations += event == "/jax/core/compile/backend_compile_duration"


jax.monitoring.register_event_duration_secs_listener(count_compilation)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Refuse a random key that is used twice, in the tests concerned.

    The check of keys takes every call of a compiled function out of JAX's fast path: operations cost eight times as
    much, so it is made in the test files that draw random numbers in JAX.
    """
    global modules
    jax.config.update("jax_debug_key_reuse", draws_keys(item.path))
    modules = len(sys.modules)


@functools.cache
def draws_keys(path: Path) -> bool:
    return any(folder in path.parts for folder in DRAWING) or "jax.random" in path.read_text(encoding="utf-8")


def forget_own_modules(item: pytest.Item) -> None:
    """Forget modules that a test wrote and imported: another file's test found the first `worlds_of_mine`."""
    folder = getattr(item, "funcargs", {}).get("tmp_path")
    if folder is not None and len(sys.modules) > modules:
        for name, module in list(sys.modules.items())[modules:]:
            if str(getattr(module, "__file__", "")).startswith(f"{folder}{os.sep}"):
                del sys.modules[name]


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Forget what JAX compiled when the process holds `MOST_RESIDENT` bytes or nearly all regions that Linux allows."""
    global compilations, times_forgotten
    forget_own_modules(item)
    if compilations < COMPILATIONS_BETWEEN_LOOKS or sys.platform != "linux":
        return
    compilations = 0
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    if resident > MOST_RESIDENT or Path("/proc/self/maps").read_bytes().count(b"\n") > MOST_MAPPED_REGIONS:
        jax.clear_caches()
        getattr(mlir.make_ir_context, "cache_clear", list)()
        gc.collect()
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc keeps what is freed between what is in use
        if trim is not None:
            trim(0)
        times_forgotten += 1


@pytest.fixture
def compiled_since() -> int:
    """A number that changes when compiled functions are forgotten: what was traced before is traced again."""
    return times_forgotten


# XLA takes five times as long to make its code fast as to make it, and few tests run a function often enough to gain
# by that. Slow tests that are marked `optimised` run on optimised code, as users have it, instead (`make test-slow`);
# default tests with this mark do so as well, but among the studies: methods' laws and references, the released code's
# numbers, and what must hold bit for bit, which contraction and reordering could break.
QUICKLY_COMPILED = (
    "--xla_backend_optimization_level=0",
    "--xla_cpu_use_fusion_emitters=false",
    "--xla_cpu_parallel_codegen_split_count=1",
)


def pytest_configure(config: pytest.Config) -> None:
    """Have XLA compile quickly, here and in every process started from here, but for `-m "optimised ..."`.

    Flags of somebody's own stay as they are: `XLA_FLAGS= python -m pytest` runs everything on optimised code.
    """
    if config.getoption("markexpr").startswith("optimised") or "XLA_FLAGS" in os.environ:
        return
    quickly = os.environ | {"XLA_FLAGS": " ".join(QUICKLY_COMPILED)}
    # XLA ends a process that passes a flag which another release has dropped: then do without.
    reads_flags = [sys.executable, "-c", "from jaxlib import xla_client; xla_client.CompileOptions()"]
    if subprocess.run(reads_flags, capture_output=True, env=quickly, check=False).returncode == 0:
        os.environ.update(quickly)


SETTLED = {
    "rloo", "grpo", "dr_grpo", "remax", "reinforce_batch", "moving_average", "discounted_return", "critic", "maac",
    "puppeteer", "pass_at_k", "verl_grpo", "verl_rloo", "trl_grpo", "openrlhf_group_norm", "slime_grpo",
    "agent_lightning", "agent_lightning_rows", "dr_mas", "dr_mas_rloo", "reinforce_pp_baseline", "off_policy", "coma",
    "difference_reward", "turn_baseline", "mt_grpo", "mgrpo", "mrlx", "matpo", "wideseek_r1", "magrpo", "c3_magrpo",
    "foldgrpo", "foldgrpo_fork", "marshal", "maporl", "shapley", "spiral_rae", "gigpo", "reinforce_pp", "gae", "c3",
    "max_rl", "opo", "gpg", "prime_rl_grpo", "rllm_reinforce_pp", "igpo", "igrpo", "hgpo", "g2po", "graph_gpo",
    "adca_grpo", "ccpo", "marti", "tree_grpo", "hcapo", "hae", "hierarchical_grpo", "unitymas_o",
    "at_grpo", "sepo",
    "stop_credit", "spawn_credit",
}  # fmt: skip
"""Methods whose tests marked `every_method` are no default tests; a new method is not listed, so runs them."""

OF_EACH_KIND = {
    "grpo", "reinforce_pp", "moving_average", "gae", "mgrpo", "gigpo", "c3", "off_policy", "shapley", "maporl",
}  # fmt: skip
"""One method of each scope and family of kernels: CI runs its tests marked `every_method`, studies the others'."""


@pytest.fixture(scope="session")
def of_each_kind() -> set[str]:
    """`OF_EACH_KIND`, for tests that take several methods at once."""
    return OF_EACH_KIND


LONGEST = (
    "tests/test_notebooks.py", "tests/test_page_blocks.py", "tests/test_doctests.py", "tests/test_wheel.py",
    "tests/test_tutorials.py", "tests/credit/page/test_browser.py", "tests/credit/methods/test_scopes.py",
    "tests/test_readme.py", "tests/credit/cli/test_json.py", "tests/laws/test_shapley.py", "tests/critic/test_door.py",
    "tests/credit/test_devices.py", "tests/credit/test_killed.py", "tests/credit/test_pages.py",
)  # fmt: skip
"""Files of the slow run that take longest, in this order: begun last, one of them would keep a single process busy."""


class FromTheEnd(pytest.Dir):
    """A folder of tests whose last file is collected first."""

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        return reversed([*super().collect()])


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Let every other worker begin at the end: in a first run each finds half of the files compiled by the other."""
    if WORKER[-1:] not in set("13579") or (path / "__init__.py").is_file():
        return None  # as pytest has it
    return FromTheEnd.from_parent(parent, path=path)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what a later run takes over: settled methods, and all but the first parameters of a `sampled` test.

    A `study` is run where the expression of markers names it, and nowhere else. The slow run begins with the files that
    take longest.
    """
    if WORKER:
        items.sort(key=lambda item: item.path)  # the same order in each worker
    if config.getoption("markexpr") != "not slow":
        rank = {str(ROOT / file): i for i, file in enumerate(LONGEST)}
        items.sort(key=lambda item: rank.get(str(item.path), len(LONGEST)))
    with_studies = "study" in config.getoption("markexpr")
    studies, run, begun = [], [], set()
    for item in items:
        methods = item.get_closest_marker("every_method")
        if methods is not None and item.callspec.params["name"] in SETTLED:
            of_kind, others = ("", "slow") if methods.kwargs.get("others") == "slow" else ("slow", "study")
            if marker := of_kind if item.callspec.params["name"] in OF_EACH_KIND else others:
                item.add_marker(marker)
        sampled = item.get_closest_marker("sampled")
        if sampled is not None:
            test = item.path, item.originalname
            if test in begun:
                item.add_marker(sampled.kwargs.get("others", "study"))
            begun.add(test)
        (run if with_studies or not item.get_closest_marker("study") else studies).append(item)
    config.hook.pytest_deselected(items=studies)
    items[:] = run


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over what lives as long as the run: modules, tests and their parameters."""
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Look for garbage a last time: pytest and Python would go through all that JAX compiled thrice more."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fail a test that waits for something that does not come."""

    def fail(*_: object) -> None:
        pytest.fail(f"{item.nodeid} did not end within {LONGEST_TEST} s")

    if not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread():
        return (yield)
    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(LONGEST_TEST)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `--dist loadgroup`, keep the tests of a file in one process, where they share what they compiled.

    Laws are kept together by method, since all of them in one process would take longer than all else; notebooks are
    apart. The groups that
    pytest-xdist 3.8 writes into node ids are lost on pytest 9.2.
    """
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling

    default_run = config.getoption("markexpr") == "not slow"
    if not default_run:
        config.option.loadscopereorder = False  # the files with most tests first; they are not those that take longest

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file, _, test = nodeid.partition("::")
            laws = file.endswith("laws/test_laws.py")
            if file.endswith("test_notebooks.py"):  # each runs in a process of its own
                return nodeid
            by_method = re.match(r"test_(?:method|settings)_\w+\[([^-\]]*)", test) if laws else None
            return f"{file}::{by_method[1]}" if by_method else file

    return ByFile(config, log)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of small real logs beside the checkout; they may not be republished, so they are not in it."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no real logs at {folder}")
    return folder
