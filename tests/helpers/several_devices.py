"""Processes with several devices, which XLA makes of one CPU."""

from __future__ import annotations

import os


def with_devices(count: int) -> dict[str, str]:
    """The environment of a process with `count` devices, whose code is compiled as quickly as that of this one."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={count}"
    return os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
