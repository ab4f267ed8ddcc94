"""Peers of the bench of lookups, in a Python that has torch: the same ids and tables.

They are given cleaned ids and offsets, without those below 0, which TensorFlow sorts out itself:
less work. Those that are there are served (served_blocks.py).

    python -m tests.bench.embedding_peers 1e5x16xm1 forward 2
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.bench.embedding_batches import FEATURES, Cell, batch
from tests.bench.served_blocks import serve
from tests.bench.timed_blocks import block
from workbench.freed_memory import keep_freed_memory

RATE = 0.01


def main(name: str, way: str, threads: int) -> None:
    """Serves one cell until its input ends."""
    import torch

    # As the process does that they are measured beside.
    keep_freed_memory()
    torch.set_num_threads(threads)
    cell = Cell.named(name)
    batches = [_clean(seed, cell) for seed in range(cell.batches())]
    runs, problems = {}, {}
    for peer, make in (("torch", of_torch), ("FBGEMM", of_fbgemm), ("zentorch", of_zentorch)):
        try:
            runs[peer] = make(cell, way, batches)
            runs[peer]()
        except Exception as error:  # whatever it is, the other one is measured
            runs.pop(peer, None)
            problems[peer] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    serve({name: block(run) for name, run in runs.items()}, problems)


def _clean(seed: int, cell: Cell) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Ids and offsets [size + 1] of each feature, without ids below 0."""
    ids, offsets = [], []
    for values, indices in batch(seed, cell):
        keep = values >= 0
        lengths = np.bincount(indices[keep, 0], minlength=cell.size)
        ids.append(values[keep])
        offsets.append(np.concatenate([[0], np.cumsum(lengths)]))
    return ids, offsets


def of_torch(cell: Cell, way: str, batches: list[Any]) -> Callable[[], None]:
    """`torch.nn.EmbeddingBag`, one for each feature, with sparse gradients."""
    import torch

    bags = [
        torch.nn.EmbeddingBag(
            cell.rows, cell.dim, mode="mean", sparse=True, include_last_offset=True
        )
        for _ in range(cell.tables)
    ]
    parameters = [parameter for bag in bags for parameter in bag.parameters()]
    optimizers = {"SGD": torch.optim.SGD, "Adagrad": torch.optim.Adagrad}
    optimizer = optimizers[way](parameters, lr=RATE) if way in optimizers else None
    given = _cycle(
        [
            [(torch.from_numpy(i), torch.from_numpy(o)) for i, o in zip(*each, strict=True)]
            for each in batches
        ]
    )
    upstream = torch.full([cell.size, cell.dim], 1e-3)

    def step() -> None:
        features = next(given)
        with torch.set_grad_enabled(optimizer is not None):
            found = [
                bags[number % len(bags)](ids, offsets)
                for number, (ids, offsets) in enumerate(features)
            ]
        if optimizer is not None:
            optimizer.zero_grad()
            torch.autograd.backward(found, [upstream] * FEATURES)
            optimizer.step()

    return step


def of_fbgemm(cell: Cell, way: str, batches: list[Any]) -> Callable[[], None]:
    """FBGEMM's table-batched embeddings: all features in one op, updated in its backward."""
    import torch
    from fbgemm_gpu.split_embedding_configs import EmbOptimType
    from fbgemm_gpu.split_table_batched_embeddings_ops_common import EmbeddingLocation, PoolingMode
    from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
        ComputeDevice,
        SplitTableBatchedEmbeddingBagsCodegen,
    )

    optimizer = {"Adagrad": EmbOptimType.EXACT_ADAGRAD}.get(way, EmbOptimType.EXACT_SGD)
    tables = SplitTableBatchedEmbeddingBagsCodegen(
        embedding_specs=[
            (cell.rows, cell.dim, EmbeddingLocation.HOST, ComputeDevice.CPU)
            for _ in range(cell.tables)
        ],
        feature_table_map=[number % cell.tables for number in range(FEATURES)],
        optimizer=optimizer,
        learning_rate=RATE,
        pooling_mode=PoolingMode.MEAN,
    )
    tables.init_embedding_weights_uniform(-0.05, 0.05)
    given = _cycle([_joined(torch, *each) for each in batches])
    upstream = torch.full([cell.size, FEATURES * cell.dim], 1e-3)

    def step() -> None:
        ids, offsets = next(given)
        with torch.set_grad_enabled(way != "forward"):
            found = tables(ids, offsets)
        if way != "forward":
            found.backward(upstream)

    return step


def of_zentorch(cell: Cell, way: str, batches: list[Any]) -> Callable[[], None]:
    """AMD's zentorch: all features in one op, which has no gradient."""
    import torch
    import zentorch  # noqa: F401

    if way != "forward":
        raise NotImplementedError("zentorch's lookups have no gradient")
    weights = [torch.rand(cell.rows, cell.dim) * 0.1 - 0.05 for _ in range(cell.tables)]
    every = [weights[number % cell.tables] for number in range(FEATURES)]
    no, mean = [0] * FEATURES, [1] * FEATURES
    given = _cycle(
        [tuple([torch.from_numpy(part) for part in parts] for parts in each) for each in batches]
    )
    look_up = torch.ops.zentorch.zentorch_horizontal_embedding_bag_group

    def step() -> None:
        ids, offsets = next(given)
        # Offsets with the last one, and no id that stands for none.
        look_up(
            every, ids, offsets, no, mean, no, [None] * FEATURES, [1] * FEATURES, [-1] * FEATURES
        )

    return step


def _joined(torch: Any, ids: list[np.ndarray], offsets: list[np.ndarray]) -> tuple[Any, Any]:
    """All features' ids behind each other, and where each example of each feature begins."""
    lengths = np.concatenate([np.diff(each) for each in offsets])
    begins = np.concatenate([[0], np.cumsum(lengths)])
    return torch.from_numpy(np.concatenate(ids)), torch.from_numpy(begins)


def _cycle(values: list[Any]) -> Iterator[Any]:
    while True:
        yield from values


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
