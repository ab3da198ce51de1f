"""JAX beside a trainer of PyTorch: the GPU stays the trainer's."""

from __future__ import annotations

import logging
import os
from typing import Any

from graphs.errors import CreditError

__all__ = ["keep_jax_on_cpu"]

CHOICES = ("JAX_PLATFORMS", "XLA_PYTHON_CLIENT_PREALLOCATE", "XLA_PYTHON_CLIENT_MEM_FRACTION")
"""Variables by which a user says where JAX runs, or how much of a GPU it takes."""


def keep_jax_on_cpu() -> None:
    """Keep JAX on the CPU, in this process and those that it starts, unless the user chose; a line of the log says so.

    By default JAX takes most of a GPU's memory when it first computes, beside a trainer that needs it.

    Raises:
      CreditError: JAX already runs elsewhere, by nobody's choice.
    """
    import jax

    config: Any = jax.config

    if config.jax_platforms or any(name in os.environ for name in CHOICES):
        return
    config.update("jax_platforms", "cpu")
    if (platform := jax.default_backend()) != "cpu":
        raise CreditError(
            f"JAX was started on the {platform} before this trainer, where it reserves most of the memory; set "
            "JAX_PLATFORMS=cpu, or XLA_PYTHON_CLIENT_PREALLOCATE=false to share it, before anything imports jax"
        )
    os.environ["JAX_PLATFORMS"] = "cpu"
    logging.getLogger("credit").warning("JAX runs on the CPU beside the trainer; set JAX_PLATFORMS to choose otherwise")
