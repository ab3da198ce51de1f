"""Agent Lightning 0.3: the rollouts of a store as traces, and advantages in its verl trainer.

    traces = credit.read_store(store)
    Trainer(algorithm=VERL(config, trainer_cls=CreditAgentLightningTrainer), ...)     # and adv_estimator: credit_rloo

The trainer is in `credit.integrations.agent_lightning_verl`, since it needs verl.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphs.errors import CreditError
from graphs.text import excerpt

if TYPE_CHECKING:
    from graphs.traces.batch import Traces

__all__ = ["read_store", "read_store_async"]


def read_store(store: Any, *, path: str | Path | None = None, mode: str | None = None, **options: Any) -> Traces:
    """The rollouts of a `LightningStore` as traces, each by its latest attempt.

    A rollout is a trace. Its task is the `data_id` that the trainer gave it, or else its input. Its outcome is the last
    reward (`docs/formats/agent-lightning.md`).

    Args:
      store: a `LightningStore` of Agent Lightning 0.3: in memory, a server's, or a client of one.
      path: a file to keep the log in, JSON lines, which `credit.read` reads again. Default: none is kept.
      mode: only rollouts of this mode: "train", "val" or "test".
      **options: keyword arguments of `credit.read`, such as `reward=` and `group_by=`.

    Returns:
      `Traces`. Its `problems` list the input that could not be read.

    Raises:
      CreditError: the store has no such rollout; or the call comes from a running event loop: await `read_store_async`.

    Examples:
      >>> import credit
      >>> class EmptyStore:
      ...     async def query_rollouts(self):
      ...         return []
      ...     async def get_latest_attempt(self, rollout_id):
      ...         return None
      ...     async def query_spans(self, rollout_id, attempt_id):
      ...         return []
      >>> credit.read_store(EmptyStore())
      Traceback (most recent call last):
          ...
      graphs.errors.CreditError: the store has no rollouts
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(read_store_async(store, path=path, mode=mode, **options))
    raise CreditError(
        "read_store was called in a running event loop; "
        "expected `await credit.integrations.agent_lightning.read_store_async(store)` there"
    )


async def read_store_async(
    store: Any, *, path: str | Path | None = None, mode: str | None = None, **options: Any
) -> Traces:
    """As `read_store`, for use in a running event loop.

    Args:
      store, path, mode, options: as there.

    Raises:
      CreditError: as there; or it is no store.
    """
    from graphs.atomic import atomic_write
    from graphs.logs import read

    if not all(hasattr(store, name) for name in ("query_rollouts", "get_latest_attempt", "query_spans")):
        kind = type(store).__name__
        raise CreditError(
            f"store is {excerpt(store)}, of type {kind}; expected a LightningStore of Agent Lightning 0.3"
        )
    lines: list[str] = []
    for rollout in await store.query_rollouts():
        if mode is not None and rollout.mode != mode:
            continue
        lines.append(rollout.model_dump_json())
        latest = await store.get_latest_attempt(rollout.rollout_id)
        if latest is None:
            continue
        lines.append(latest.model_dump_json())
        spans = await store.query_spans(rollout.rollout_id, attempt_id=latest.attempt_id)
        lines += [span.model_dump_json() for span in spans]
    if not lines:
        raise CreditError(f"the store has no rollouts{'' if mode is None else f' of mode {mode!r}'}")
    content = ("\n".join(lines) + "\n").encode()
    if path is not None:
        with atomic_write(path) as file:
            file.write(content)
        return read(path, format="agent-lightning", **options)
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "store.jsonl"
        kept.write_bytes(content)
        return read(kept, format="agent-lightning", **options)
