"""The models of the bench of limits in torch: compiled, with FBGEMM's tables where they are."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from tests.bench.limit_file import DIMENSION, RATES, TABLES, WIDTHS, Start

_NARROWEST = 4


def torch_step(start: Start) -> Callable[[bool], float | None]:
    """A step that trains on the next batch, from the same weights."""
    dense = _Dense(start)
    compiled = torch.compile(dense)
    rate, table_rate = RATES[start.model]
    if start.model == "dlrm":
        optimizer: Any = torch.optim.Adagrad(
            dense.parameters(), lr=rate, initial_accumulator_value=0.1, eps=0.0
        )
    else:
        optimizer = torch.optim.Adam(dense.parameters(), lr=rate)
    tables = [_Tables(start.tables[:TABLES], table_rate)]
    tables += [_Tables(start.tables[TABLES:], table_rate)] if start.linear else []
    given = [
        (torch.from_numpy(numbers), torch.from_numpy(ids).long(), torch.from_numpy(labels))
        for numbers, ids, labels in zip(start.numbers, start.ids, start.labels, strict=True)
    ]
    batches = itertools.cycle(given)

    def step(wanted: bool) -> float | None:
        numbers, ids, labels = next(batches)
        looked = [each(ids) for each in tables]
        loss = compiled(numbers, labels, *looked)
        optimizer.zero_grad()
        for each in tables:
            each.zero()
        loss.backward()
        optimizer.step()
        for each in tables:
            each.update()
        return float(loss.detach()) if wanted else None

    return step


class _Dense(nn.Module):
    """All but the tables: numbers, labels and looked up vectors → the loss."""

    def __init__(self, start: Start) -> None:
        super().__init__()
        first = len(WIDTHS[start.model][0]) - 1
        layers = [_layer(*weights) for weights in start.layers]
        self.first, self.second = nn.Sequential(*layers[:first]), nn.Sequential(*layers[first:])
        self.logit = _linear(*start.logit)
        self.is_dlrm = start.model == "dlrm"
        if not self.is_dlrm:
            self.linear = _linear(*start.linear)
        rows, columns = torch.tril_indices(TABLES + 1, TABLES + 1, -1)
        self.register_buffer("rows", rows)
        self.register_buffer("columns", columns)

    def forward(self, numbers: Any, labels: Any, vectors: Any, weights: Any = None) -> Any:
        numbers = torch.log1p(torch.clamp(numbers, min=0.0))
        if self.is_dlrm:
            bottom = self.first(numbers)
            every = torch.cat([bottom.unsqueeze(1), vectors.view(-1, TABLES, DIMENSION)], 1)
            dots = torch.bmm(every, every.transpose(1, 2))[:, self.rows, self.columns]
            hidden = torch.cat([bottom, dots], 1)
        else:
            every = vectors.view(-1, TABLES, DIMENSION)
            pair = 0.5 * (every.sum(1) ** 2 - (every**2).sum(1))
            linear = self.linear(numbers) + weights.sum(1, keepdim=True)
            hidden = torch.cat([linear, pair, self.first(torch.cat([numbers, vectors], 1))], 1)
        logits = self.logit(self.second(hidden))
        return nn.functional.binary_cross_entropy_with_logits(logits[:, 0], labels)


def _linear(kernel: Any, bias: Any) -> nn.Linear:
    layer = nn.Linear(*kernel.shape)
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(kernel).T)
        layer.bias.copy_(torch.from_numpy(bias))
    return layer


def _layer(kernel: Any, bias: Any, gamma: Any, beta: Any) -> nn.Sequential:
    norm = nn.BatchNorm1d(len(gamma), eps=1e-3, track_running_stats=False)
    with torch.no_grad():
        norm.weight.copy_(torch.from_numpy(gamma))
        norm.bias.copy_(torch.from_numpy(beta))
    return nn.Sequential(_linear(kernel, bias), nn.ReLU(), norm)


class _Tables:
    """Vectors of all tables beside each other, [batch, tables × dim]; Adagrad trains them."""

    def __init__(self, tables: Any, rate: float) -> None:
        self._bags: list[Any] = []
        # FBGEMM's rows are at least four wide.
        self._every = max(1, _NARROWEST // tables[0].shape[1])
        try:
            self._fused = _fbgemm(tables, rate)
            return
        except ImportError:
            self._fused = None
        for values in tables:
            bag = nn.Embedding(*values.shape, sparse=True)
            with torch.no_grad():
                bag.weight.copy_(torch.from_numpy(values))
            self._bags.append(bag)
        self._optimizer = torch.optim.Adagrad(
            [bag.weight for bag in self._bags], lr=rate, initial_accumulator_value=0.1, eps=0.0
        )

    def __call__(self, ids: Any) -> Any:
        if self._fused is not None:
            offsets = torch.arange(ids.numel() + 1)
            return self._fused(ids.T.reshape(-1), offsets)[:, :: self._every]
        return torch.cat([bag(ids[:, i]) for i, bag in enumerate(self._bags)], 1)

    def zero(self) -> None:
        """Before a backward pass."""
        if self._fused is None:
            self._optimizer.zero_grad()

    def update(self) -> None:
        """After it; FBGEMM's tables were updated in it."""
        if self._fused is None:
            self._optimizer.step()


def _fbgemm(tables: Any, rate: float) -> Any:
    from fbgemm_gpu.split_embedding_configs import EmbOptimType
    from fbgemm_gpu.split_table_batched_embeddings_ops_common import EmbeddingLocation, PoolingMode
    from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
        ComputeDevice,
        SplitTableBatchedEmbeddingBagsCodegen,
    )

    widths = [max(_NARROWEST, values.shape[1]) for values in tables]
    made = SplitTableBatchedEmbeddingBagsCodegen(
        embedding_specs=[
            (len(values), width, EmbeddingLocation.HOST, ComputeDevice.CPU)
            for values, width in zip(tables, widths, strict=True)
        ],
        optimizer=EmbOptimType.EXACT_ADAGRAD,
        learning_rate=rate,
        eps=0.0,
        pooling_mode=PoolingMode.SUM,
    )
    for weights, values in zip(made.split_embedding_weights(), tables, strict=True):
        with torch.no_grad():
            weights.zero_()
            weights[:, : values.shape[1]].copy_(torch.from_numpy(values))
    for states in made.split_optimizer_states():
        states[0].fill_(0.1)
    return made
