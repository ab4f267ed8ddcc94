"""What stock TensorFlow itself offers, a toggle each."""

from __future__ import annotations

from workbench.core.toggles.stock.caller_thread import CALLER_THREAD
from workbench.core.toggles.stock.freed_memory import FREED_MEMORY
from workbench.core.toggles.stock.gpu_threads import GPU_THREADS
from workbench.core.toggles.stock.grappler import GRAPPLER
from workbench.core.toggles.stock.onednn import ONEDNN
from workbench.core.toggles.stock.precision import PRECISION
from workbench.core.toggles.stock.tf_data import TF_DATA
from workbench.core.toggles.stock.xla import XLA
from workbench.core.toggles.stock.zentf import ZENTF

STOCK = (
    TF_DATA,
    XLA,
    PRECISION,
    ONEDNN,
    GRAPPLER,
    CALLER_THREAD,
    FREED_MEMORY,
    GPU_THREADS,
    ZENTF,
)
