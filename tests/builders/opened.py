"""What a child tells of a graph whose session runs."""

from workbench.experiments.worker.wire.messages import Opened

OPENED = Opened(
    stages=1,
    fused_ops=1,
    threads=1,
    has_loss=True,
    has_fingerprint=True,
    inject_prefetch="off",
    own_prefetch=False,
    inter_op_threads=0,
    intra_op_threads=0,
)
