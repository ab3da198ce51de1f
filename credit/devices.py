"""Several devices for one batch: each holds whole groups, and one compiled call uses all of them.

Traces of a group are compared with each other and with no others. A method whose scope is a trace or a group therefore
needs nothing from another device, and its compiled form has no communication. Methods of scope "batch" or "sequence"
run on arrays that are spread over the devices, and XLA adds the sums that they need.

With several hosts, every process calls `jax.distributed.initialize`, reads the same logs and passes
`devices=jax.devices()`, those of all hosts. Each computes its share, and all of them get the whole result.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from credit.methods.chunked import DIVISIBLE
from credit.methods.method_row import Method, Scope
from credit.methods.published import find_method
from credit.methods.running import EVIDENCE, Request, expect_outcomes, with_key
from credit.tables.batch_rows import Rows, as_traces
from estimators.base import Credit, Reason, batch_fingerprint
from graphs.errors import CreditError, expect
from graphs.event_graph import Array, EventGraph
from graphs.keys import Key
from graphs.padding import Sizes, pad, pad_array
from graphs.structure.whole_groups import WholeGroups, cut_groups
from graphs.traces.batch import Traces
from graphs.traces.schema import EVENT_EVIDENCE

__all__ = ["Placed", "compute", "over_groups", "place", "run"]

AXIS = "groups"  # the name that `jax.lax.psum(x, "groups")` of a compiled function uses


@dataclasses.dataclass(frozen=True)
class Placed:
    """A batch on several devices, a part of whole groups on each.

    Attributes:
      graph: an `EventGraph` whose arrays have a leading axis D, one entry for each device, where it lies.
      cut: which events and traces of the batch each part holds.
      mesh: the devices, along one axis "groups".
    """

    graph: EventGraph
    cut: WholeGroups
    mesh: Mesh

    def events(self, values: Array, *, ids: bool = False) -> jax.Array:
        """An array over the events of the batch, [E, ...], laid on the devices: [D, E', ...].

        Args:
          values: [E, ...].
          ids: whether the values are ids (`context`, `node`, `anchor`), which are renumbered from 0 on each device.

        Raises:
          CreditError: `values` has not one row for each event.
        """
        placed: jax.Array = _on_devices(self.cut.split_events(values, ids=ids), self.mesh)
        return placed

    def traces(self, values: Array, *, ids: bool = False) -> jax.Array:
        """An array over the traces of the batch, [T, ...], laid on the devices: [D, T', ...]; see `events`."""
        placed: jax.Array = _on_devices(self.cut.split_traces(values, ids=ids), self.mesh)
        return placed


def place(graph: EventGraph, devices: Sequence[jax.Device] | None = None) -> Placed:
    """Cut a batch into whole groups and lay a part on each device; on the host, once for a batch.

    Args:
      graph: the batch.
      devices: by default all devices of this process.

    Returns:
      `Placed`. Its parts have one shape, that of the largest, so balanced groups waste least.

    Examples:
      >>> import credit, credit.devices
      >>> graph, reward, rows = credit.from_columns(group=["q", "q", "r"], trace=[0, 1, 2], reward=[1.0, 0.0, 0.5])
      >>> placed = credit.devices.place(graph)
      >>> placed.traces(reward).shape[0] == placed.cut.num_parts
      True
    """
    mesh = _mesh(devices)
    cut = cut_groups(graph, mesh.size)
    return Placed(_on_devices(cut.graph, mesh), cut, mesh)


def over_groups(fn: Callable[..., Any], placed: Placed | Mesh) -> Callable[..., Any]:
    """Compile a function of one part, such as a method or a whole training signal, for all devices at once.

        over_groups(fn, placed)(placed.graph, placed.traces(reward), …)  =  fn on each part, on its device

    No device communicates. The function may call `jax.lax.psum(x, "groups")` itself.

    Args:
      fn: `fn(graph, *arrays)` of one part, which returns arrays or a tree of them, such as `Credit`.
      placed: what `place` returned, or its mesh.

    Returns:
      A jitted function of arrays with a leading axis D that returns the tree with a leading axis D.

    Examples:
      >>> import credit, credit.devices
      >>> graph, reward, rows = credit.from_columns(group=[0, 0, 1, 1], trace=[0, 1, 2, 3], reward=[1.0, 0, 1, 0])
      >>> placed = credit.devices.place(graph)
      >>> step = credit.devices.over_groups(credit.rloo, placed)
      >>> result = step(placed.graph, placed.traces(reward))
      >>> rows.gather(placed.cut.join_events(result.advantage)).tolist()
      [1.0, -1.0, 1.0, -1.0]
    """
    mesh = placed.mesh if isinstance(placed, Placed) else placed
    expect("placed", mesh, Mesh, "what credit.devices.place returns, or its mesh")

    def on_one(*parts: Any) -> Any:
        result = fn(*jax.tree.map(lambda leaf: leaf[0], parts))
        return jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], result)

    part = PartitionSpec(AXIS)  # type: ignore[no-untyped-call]
    return jax.jit(jax.shard_map(on_one, mesh=mesh, in_specs=part, out_specs=part, check_vma=False))


def run(
    traces: Traces | Rows,
    method: str | Method | Callable[..., Credit],
    *,
    devices: Sequence[jax.Device] | None = None,
    evidence: Iterable[str] = (),
    **arguments: Any,
) -> Credit:
    """Compute a method's credit as `credit.run` does, on several devices.

    A method of scope "trace" or "group" gives the numbers of one device bit for bit, since each group is summed in the
    same order. Last digits may differ, by a relative 1e-5 at most in the tests, in three cases: methods whose additions
    depend on the place of a trace in the batch (`gae`, `puppeteer`, `maporl`, `magrpo`); errors that are pooled over
    the batch (`turn_baseline`); and methods whose scope, by an option or always, is "batch" or "sequence". Your own
    function is taken to need the whole batch; pass a `credit.Method` to state another scope.

    Args:
      traces: what `credit.read` returns, or the `Rows` of `credit.from_columns`.
      method: a name, an entry of `credit.METHODS`, or your own function; see `credit.run`.
      devices: by default all devices of this process; `jax.devices()` are those of all processes.
      evidence: names of further evidence to take from the log, which the method can do without.
      **arguments: options of the method, and arrays that replace evidence of the log.

    Returns:
      The method's `Credit`, arrays over the events of `traces.graph`, [E].

    Raises:
      CreditError: as `credit.run`; an option is an array.

    Examples:
      >>> import credit, credit.devices
      >>> graph, reward, rows = credit.from_columns(group=["q", "q"], trace=[0, 1], reward=[1.0, 0.0])
      >>> rows.gather(credit.devices.run(rows, "rloo").advantage).tolist()
      [1.0, -1.0]
    """
    traces = as_traces(traces)
    expect("traces", traces, Traces, "what credit.read returns")
    expect_outcomes(traces)
    request = Request.of(method)
    request.check_names(arguments)
    arrays = request.arrays(traces, evidence, {name: arguments[name] for name in arguments if name in EVIDENCE})
    options = {name: value for name, value in arguments.items() if name not in arrays}
    for name, value in options.items():
        if hasattr(value, "__array__") and np.ndim(value) > 0:
            raise CreditError(
                f"{name} is an array of shape {np.shape(value)}; devices take arrays of log evidence only"
            )
    keyed = with_key(request.fn, traces, options, arrays)
    if isinstance(keyed.get("by"), Key) and any(ids is not None for ids in keyed["by"].arrays):
        raise CreditError(f"by names ids of the log, {options['by']!r}; devices take keys of the graph only")
    fn = functools.partial(request.fn, **keyed)
    known = find_method(method) if isinstance(method, str) else method
    scope = known.scope_of(options)[0] if isinstance(known, Method) else "batch"
    result = compute(traces.graph, traces.reward, fn, arrays, scope=scope, devices=devices)
    if isinstance(known, Method) and known.pools_errors and scope in DIVISIBLE:
        of_all = compute(traces.graph, traces.reward, fn, arrays, scope="batch", devices=devices)
        result = dataclasses.replace(result, recursion=of_all.recursion)
    return result


def compute(
    graph: EventGraph,
    reward: Array,
    fn: Callable[..., Credit],
    arrays: Mapping[str, Array],
    *,
    scope: Scope,
    devices: Sequence[jax.Device] | None = None,
) -> Credit:
    """Compute a method's credit for arrays on several devices; `run` takes the arrays from a log.

    Args:
      graph: the batch.
      reward: float [T], the outcome of each trace.
      fn: `fn(graph, reward, **arrays) -> Credit`.
      arrays: evidence by name, [E] or [T] each, as in `graphs.traces.schema`.
      scope: what the credit of an event depends on beside its own trace: "trace" (nothing), "group", "batch", or
        "sequence" (the batch in its order); see `credit.Method`.
      devices: by default all devices of this process.

    Returns:
      The method's `Credit`, arrays over the events of `graph`, [E].
    """
    spread, mesh = _of_groups if scope in DIVISIBLE else _of_batch, _mesh(devices)
    _expect_one_batch(graph, reward, mesh)
    return spread(graph, reward, fn, arrays, mesh)


def _of_groups(
    graph: EventGraph, reward: Array, fn: Callable[..., Credit], arrays: Mapping[str, Array], mesh: Mesh
) -> Credit:
    cut = cut_groups(graph, mesh.size)
    placed = Placed(_on_devices(cut.graph, mesh), cut, mesh)
    parts = {}
    for name, values in arrays.items():
        key = EVIDENCE[name]
        place = placed.events if name in EVENT_EVIDENCE else placed.traces
        if key.ids_of in arrays:  # renumbered together
            both = np.stack([np.asarray(arrays[key.ids_of]), np.asarray(values)], axis=1)
            parts[key.ids_of], parts[name] = (placed.events(both, ids=True)[..., i] for i in range(2))
        else:
            parts.setdefault(name, place(values, ids=key.kind == "id"))
    result = _compiled(fn, mesh)(placed.graph, placed.traces(reward), parts)
    return _joined(graph, placed.cut, jax.tree.map(_on_host, result))


def _compiled(fn: Callable[..., Credit], mesh: Mesh | None) -> Callable[..., Any]:
    """A method on whole groups, each part on a device of the mesh, or without one on the whole batch."""
    options = fn.keywords if isinstance(fn, functools.partial) and not fn.args else {}
    method = fn.func if isinstance(fn, functools.partial) and not fn.args else fn
    stated = tuple((name, type(value), value) for name, value in sorted(options.items()))
    try:
        hash((method, stated))
    except TypeError:  # an option is an array
        return _program.__wrapped__(method, stated, mesh)
    return _program(method, stated, mesh)


@functools.lru_cache(maxsize=64)
def _program(
    method: Callable[..., Credit], options: tuple[tuple[str, type, Any], ...], mesh: Mesh | None
) -> Callable[..., Any]:
    """What runs on a batch, jitted: shared by the batches of a training run."""
    stated = {name: value for name, _, value in options}

    def program(graph: EventGraph, reward: Any, evidence: Any) -> Credit:
        return method(graph, reward, **stated, **evidence)

    return jax.jit(program) if mesh is None else over_groups(program, mesh)


def _joined(graph: EventGraph, cut: WholeGroups, result: Credit) -> Credit:
    """The credit of the parts in the order of the batch."""
    recursion = result.recursion
    if recursion is not None:
        values = recursion.values
        recursion = dataclasses.replace(
            recursion,
            discount=np.asarray(recursion.discount)[0],
            lambda_=np.asarray(recursion.lambda_)[0],
            values=None if values is None else type(values)(*(cut.join_events(v, np.nan) for v in values)),
        )
    return dataclasses.replace(
        result,
        credit=cut.join_events(result.credit),
        baseline=cut.join_events(result.baseline),
        scale=cut.join_events(result.scale, 1),
        stderr=cut.join_events(result.stderr),
        reason=cut.join_events(result.reason, Reason.PADDING),
        recursion=recursion,
        batch=batch_fingerprint(graph),
        repeats=None if result.repeats is None else cut.join_events(result.repeats),
        outcome_mask=None if result.outcome_mask is None else cut.join_events(result.outcome_mask),
    )


def _of_batch(
    graph: EventGraph, reward: Array, fn: Callable[..., Credit], arrays: Mapping[str, Array], mesh: Mesh
) -> Credit:
    """The method on flat arrays that are spread over the devices; XLA adds the communication."""
    room = Sizes(*(-(-n // mesh.size) * mesh.size for n in _lengths(graph)))
    host = pad(jax.tree.map(np.asarray, graph), room)
    spread = {}
    for name, values in arrays.items():
        array = np.asarray(values)
        fill = np.nan if np.issubdtype(array.dtype, np.inexact) else -1
        spread[name] = pad_array(array, room.events if name in EVENT_EVIDENCE else room.traces, fill)
    outcome = pad_array(np.asarray(reward), room.traces, np.nan)
    host, outcome, spread = _on_devices((host, outcome, spread), mesh)
    result: Credit = _compiled(fn, None)(host, outcome, spread)

    def cut(values: Array) -> np.ndarray:
        array = _on_host(values)
        return array[: graph.num_events] if array.shape[:1] == (room.events,) else array

    whole: Credit = jax.tree.map(cut, result)
    return dataclasses.replace(whole, batch=batch_fingerprint(graph))


def _lengths(graph: EventGraph) -> Sizes:
    return Sizes(graph.num_events, graph.num_edges, graph.num_agents, graph.num_traces)


def _mesh(devices: Sequence[jax.Device] | None) -> Mesh:
    chosen = jax.local_devices() if devices is None else list(devices)
    if not chosen:
        raise CreditError("devices is empty; expected one or more of jax.local_devices()")
    return Mesh(np.array(chosen), (AXIS,))


def _on_devices(arrays: Any, mesh: Mesh) -> Any:
    """Arrays cut along their first axis, one part on each device. Each process places the parts of its own devices."""
    sharding = _parts(mesh)
    if sharding.is_fully_addressable:
        return jax.device_put(arrays, sharding)

    def spread(array: np.ndarray) -> jax.Array:  # each process holds the whole array and is asked for its own slices
        return jax.make_array_from_callback(array.shape, sharding, lambda place: array[place])

    return jax.tree.map(spread, arrays)


def _expect_one_batch(graph: EventGraph, reward: Array, mesh: Mesh) -> None:
    """Raise if the processes of several hosts did not read the same batch: their parts would not belong together."""
    if _parts(mesh).is_fully_addressable:
        return
    from jax.experimental import multihost_utils

    digest = hashlib.blake2b(digest_size=16)
    for array in (*jax.tree.leaves(graph), reward):
        digest.update(np.ascontiguousarray(array).tobytes())
    all_digests = multihost_utils.process_allgather(np.frombuffer(digest.digest(), np.uint8))
    if len(np.unique(all_digests, axis=0)) > 1:
        raise CreditError("the processes read different batches; expected the same logs, read alike, in all of them")


def _on_host(values: Array) -> np.ndarray:
    """The whole array. Where other processes hold parts of it, all of them must call this, since they send theirs."""
    if isinstance(values, jax.Array) and not values.is_fully_addressable:
        from jax.experimental import multihost_utils

        values = multihost_utils.process_allgather(values, tiled=True)
    return np.asarray(values)


def _parts(mesh: Mesh) -> NamedSharding:
    return NamedSharding(mesh, PartitionSpec(AXIS))  # type: ignore[no-untyped-call]
