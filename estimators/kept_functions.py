"""Jitted functions that commands keep compiled, so that the next command need not trace them again.

JAX keeps what XLA compiled under a hash of the lowered function. Tracing and lowering come before it in every process,
and take three quarters of what a warm command spends in JAX. Here the compiled function itself is kept, under a hash of
everything that decides what it computes.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import os
import pickle
import platform
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import jax
import numpy as np
from jax.experimental import serialize_executable
from jax.experimental.compilation_cache import compilation_cache

from graphs.atomic import atomic_write

__all__ = ["keep_in", "kept_compiled"]

P = ParamSpec("P")
R = TypeVar("R")

PACKAGES = ("estimators", "credit", "graphs")
"""Packages whose source decides what a kept function computes. A function of any other module is never kept."""
PLAIN = (str, bool, int, float)
MOST_SORTS = 3

_folder: Path | None = None


def keep_in(folder: Path | None) -> None:
    """Keep compiled functions in a folder that only the user can write to; None keeps none, as from the start."""
    global _folder
    _folder = folder


def kept_compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a jitted function, above `jax.jit`: in commands it is compiled once for all processes.

    Calls give the same bits with and without. Traced by another function, on several devices, on an accelerator, or
    with arguments that are neither arrays nor plain values, or where JAX compiles nothing, it is the jitted function.

    Examples:
      >>> import jax.numpy as jnp
      >>> kept_compiled(jax.jit(lambda x: 2 * x))(jnp.ones(2)).tolist()
      [2.0, 2.0]
    """
    loaded: dict[str, jax.stages.Compiled] = {}

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        name = None if _folder is None else _name(function, args, kwargs)
        if name is None or _folder is None:
            return function(*args, **kwargs)
        if name not in loaded:
            path = _folder / f"{name}-function"
            compiled = _read(path)
            if compiled is None:
                with _past_the_cache():
                    compiled = _compiled(cast(Any, function).lower(*args, **kwargs))
                _write(path, compiled)
            loaded[name] = compiled
        traced = loaded[name].args_info[1]  # static options are no arguments of it; they are given by name
        return cast(R, loaded[name](*args, **{key: value for key, value in kwargs.items() if key in traced}))

    return called


def _compiled(lowered: jax.stages.Lowered) -> jax.stages.Compiled:
    """Have XLA compile a function, by its older emitters if it sorts little: bits are the same.

    These take 0.6 to 0.8 times as long for methods of up to three sorts, 1.1 to 2 times for those of six or more, whose
    chains of sums they repeat. A command spends more on compiling a function than on running it.
    """
    if lowered.as_text().count("stablehlo.sort") <= MOST_SORTS:
        with contextlib.suppress(jax.errors.JaxRuntimeError):  # a version of XLA that has no such option
            return lowered.compile(compiler_options={"xla_cpu_use_fusion_emitters": False})
    return lowered.compile()


def _name(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """A hash of all that a compiled function depends on; None where it cannot be kept."""
    if cast(Any, jax.config).jax_disable_jit:
        return None
    original = inspect.unwrap(function)
    if original.__module__.partition(".")[0] not in PACKAGES or "<" in original.__qualname__:
        return None  # a function within a function depends on more than its name
    leaves, tree = jax.tree.flatten((args, kwargs))
    parts = [original.__module__, original.__qualname__, str(tree), str(jax.dtypes.canonicalize_dtype(np.float64))]
    for leaf in leaves:
        if isinstance(leaf, jax.core.Tracer):
            return None
        if isinstance(leaf, jax.Array | np.ndarray | np.generic):
            parts.append(f"{leaf.dtype} {leaf.shape} {getattr(leaf, 'weak_type', False)}")
        elif type(leaf) in PLAIN:
            parts.append(f"{type(leaf).__name__} {leaf!r}")  # static or not: another value may be another function
        else:
            return None
    everywhere = _everywhere()
    return everywhere and hashlib.sha256("\0".join((everywhere, *parts)).encode()).hexdigest()


@functools.cache
def _everywhere() -> str | None:
    """A hash of the source of this library, of versions and settings; None where functions are not kept."""
    if len(jax.devices()) != 1 or jax.default_backend() != "cpu":
        return None
    decides = {name for name in os.environ if name.startswith(("JAX_", "XLA_")) and "CACHE" not in name}
    settings = [f"{name}={os.environ[name]}" for name in sorted(decides)]
    versions = [platform.python_version(), *map(version, ("jax", "jaxlib", "numpy"))]
    told = hashlib.sha256("\0".join(versions + settings).encode())
    root = Path(__file__).resolve().parent.parent
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            told.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return told.hexdigest()


@contextlib.contextmanager
def _past_the_cache() -> Iterator[None]:
    """Have JAX compile even what its own cache holds: functions from there lose parts when they are written again."""
    config: Any = jax.config  # untyped in JAX
    enabled = config.jax_enable_compilation_cache
    config.update("jax_enable_compilation_cache", False)
    compilation_cache.reset_cache()  # which asks for the setting once
    try:
        yield
    finally:
        config.update("jax_enable_compilation_cache", enabled)
        compilation_cache.reset_cache()


def _read(path: Path) -> jax.stages.Compiled | None:
    """The function in a file; None where there is none, where its writer was killed, or where XLA cannot load it.

    A file of another user is none: a pickle does whatever its writer says.
    """
    try:
        with path.open("rb") as file:
            if hasattr(os, "getuid") and os.fstat(file.fileno()).st_uid != os.getuid():
                return None
            content = file.read()
    except OSError:
        return None
    check, body = content[:32], content[32:]
    if hashlib.sha256(body).digest() != check:
        return None
    try:
        function: jax.stages.Compiled = serialize_executable.deserialize_and_load(*pickle.loads(body))
    except jax.errors.JaxRuntimeError:
        return None
    return function


def _write(path: Path, compiled: jax.stages.Compiled) -> None:
    """Write a function, unless it holds what cannot be written or the disk is full: then it is compiled each time.

    XLA does not write a sort that it compiled before in this process, and says so by its own error.
    """
    try:
        body = pickle.dumps(serialize_executable.serialize(compiled))
        with atomic_write(path) as file:
            file.write(hashlib.sha256(body).digest() + body)
    except (OSError, ValueError, NotImplementedError, jax.errors.JaxRuntimeError):
        return
