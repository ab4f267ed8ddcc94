"""Which op types have kernels for a kind of device, as TensorFlow's registry says."""

from __future__ import annotations

from collections.abc import Iterable

from tensorflow.python.framework import kernels, op_def_registry


def without_kernel(ops: Iterable[str], kind: str) -> frozenset[str]:
    """Those of some op types that have kernels, but none for a kind of device.

    Args:
      ops: op types; what is none, such as the name of a function, is left out.
      kind: "CPU" or "GPU", as TensorFlow's kernels name it.
    """
    return frozenset(op for op in set(ops) if op_def_registry.get(op) and not _has_kernel(op, kind))


def _has_kernel(op: str, kind: str) -> bool:
    registered = kernels.get_registered_kernels_for_op(op).kernel
    # Kernels for "DEFAULT" are there for every kind of accelerator.
    kinds = {kernel.device_type for kernel in registered}
    return not kinds or kind in kinds or (kind != "CPU" and "DEFAULT" in kinds)
