"""The threads that a process's ops run on."""

from __future__ import annotations

from typing import Any

from workbench.core.optimizations import Optimizations
from workbench.errors import RunError


def set_threads(optimizations: Optimizations) -> None:
    """Sets the process's numbers of threads, before anything of the program is built.

    The first device of a process decides how many intra-op threads all its sessions have, whatever
    their configs say; and a graph has one as soon as a function is given to its tf.data pipeline.

    Raises:
      RunError: the process has a device, with another number of threads.
    """
    import tensorflow as tf

    threading = tf.config.threading
    try:
        if optimizations.inter_op_threads:
            threading.set_inter_op_parallelism_threads(optimizations.inter_op_threads)
        if optimizations.intra_op_threads:
            threading.set_intra_op_parallelism_threads(optimizations.intra_op_threads)
    except RuntimeError as error:
        raise RunError(
            f"{optimizations.label()}: this process runs ops on another number of threads, "
            "which cannot be changed any more"
        ) from error


def ask_for_threads(config: Any, optimizations: Optimizations) -> None:
    """Has a ConfigProto ask for the numbers that are given, and keep its own of the others."""
    if optimizations.inter_op_threads:
        config.inter_op_parallelism_threads = optimizations.inter_op_threads
    if optimizations.intra_op_threads:
        config.intra_op_parallelism_threads = optimizations.intra_op_threads
