"""keep_freed_memory: what a step frees stays in the process, for the next step."""

from __future__ import annotations

import ctypes
import os

# Of glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3
# Free memory at the end of a heap that is kept.
_KEPT_BYTES = 1 << 30
# The largest block that malloc takes from its heaps, which those of other threads can hold.
_LARGEST_BYTES = 32 << 20
# A heap of another thread is this large; with less in reserve an empty one is given back.
_HEAP_BYTES = 64 << 20
# Who has set one of these has settings of their own.
_OWN_SETTINGS = ("MALLOC_", "GLIBC_TUNABLES")


def has_own_settings() -> bool:
    """Whether the environment sets how the C library keeps memory."""
    return any(name.startswith(_OWN_SETTINGS) for name in os.environ)


def keep_freed_memory() -> bool:
    """Has the C library keep what this process frees, up to 1 GiB, for what it allocates next.

    TensorFlow takes the tensors of a step on a CPU from malloc, and frees them in the same step. As
    soon as 128 KiB at the end of a heap are free, glibc gives memory back to the kernel. This limit
    grows while a process runs. Blocks beyond a second limit come from the kernel one by one. A
    step then touches thousands of new pages, each of which the kernel clears first. How many
    differs from process to process. Measured on a DIN, 2 cores: 185 to 10,000 page faults a step
    and 47 to 68 ms, from one process to the next. With it there are 4 faults and 45 ms.

    Call it once, anywhere; processes that `wb.compare` starts do. Where input comes from
    `tf.data.Dataset.from_generator`, call it after the first step. The first such input of a
    process guards against a leak of Python 3.11. It has glibc take blocks from 128 KiB on from the
    kernel one by one, once its heaps are full. With 26 such tensors a step those were 850 page
    faults. A process that has `MALLOC_…` or `GLIBC_TUNABLES` in its environment is left as it is.

    Returns:
      Whether memory is kept from now on: not with a C library other than glibc, nor beside
      settings of the user's own.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None or has_own_settings():
        return False
    settings = (
        (_M_MMAP_THRESHOLD, _LARGEST_BYTES),
        (_M_TRIM_THRESHOLD, _KEPT_BYTES),
        (_M_TOP_PAD, _HEAP_BYTES),
    )
    return all(mallopt(name, value) == 1 for name, value in settings)
