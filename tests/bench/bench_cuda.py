"""Lookups on a GPU, forward, backward and with Adagrad: right first, then how fast.

Results are compared with torch's embedding_bag on the same GPU, and times with those of a call of
it for each feature. Of the bytes that a lookup cannot but move, rows, ids and vectors once, it says
how long a copy on the device takes that moves as many, and the share of a large copy's bandwidth
that the lookup reaches.

    python -m tests.bench.bench_cuda
"""

from __future__ import annotations

import argparse
import ctypes
import dataclasses
import importlib.util
import itertools
from collections.abc import Callable
from typing import Any

from tests.bench import cuda_calls as calls

FEATURES = 26
RATE, EPSILON = 0.1, 1e-8
_LOOKUPS = 30
_LARGE = 1 << 31


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cell:
    """What is looked up: rows and columns of each table, rows of a batch, and ids of each."""

    rows: int
    batch: int
    dim: int
    ids: int


def main() -> None:
    """Prints a line for each cell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_Plain)
    parser.add_argument("--dims", type=int, nargs="+", default=[16, 32, 64, 128])
    parser.add_argument("--ids", type=int, nargs="+", default=[1, 10, 50], help="of each row")
    parser.add_argument("--batch", type=int, nargs="+", default=[2048, 16384])
    parser.add_argument("--rows", type=int, default=1_000_000, help="of each of the 26 tables")
    given = parser.parse_args()
    if importlib.util.find_spec("torch") is None:
        print("torch is not installed, whose memory and results this needs: nothing is measured")
        return
    import torch

    if not torch.cuda.is_available():
        print("no GPU here: nothing is measured")
        return
    copied = _LARGE / _copy_seconds(torch, _LARGE)
    print(f"{torch.cuda.get_device_name()}: a large copy moves {copied / 1e9:.0f} GB/s")
    for batch, dim, ids in itertools.product(given.batch, given.dims, given.ids):
        cell = Cell(rows=given.rows, batch=batch, dim=dim, ids=ids)
        print(_measured(torch, cell, copied), flush=True)


class _Plain(argparse.RawDescriptionHelpFormatter):
    """Descriptions as they are written."""


class Lookups:
    """All features of a batch on the device, each with a table of its own."""

    def __init__(self, torch: Any, cell: Cell) -> None:
        self.torch, self.cell = torch, cell
        self.library = calls.build()
        on = {"device": "cuda"}
        counts = torch.full([cell.batch], cell.ids, **on)
        if cell.ids > 1:
            counts = torch.randint(1, 2 * cell.ids, [cell.batch], **on)
        self.splits = torch.cat([torch.zeros(1, dtype=torch.int64, **on), counts.cumsum(0)])
        count = int(self.splits[-1])
        self.ids = [torch.randint(cell.rows, [count], **on) for _ in range(FEATURES)]
        self.tables = [torch.randn([cell.rows, cell.dim], **on) for _ in range(FEATURES)]
        self.accumulators = [torch.full([cell.rows, cell.dim], 0.1, **on) for _ in range(FEATURES)]
        self.vectors = torch.empty([cell.batch, FEATURES * cell.dim], **on)
        self.gradient = torch.randn([cell.batch, FEATURES * cell.dim], **on)
        # A row of a batch, and its vector's gradient, lie beside those of the other features.
        self.forward = self._call(self.vectors)
        self.backward = self._call(self.gradient)
        bytes_of = self.library.workbench_cuda_workspace(
            ctypes.byref(self.backward), calls.ASKED_ROWS
        )
        self.workspace = torch.empty([bytes_of], dtype=torch.int8, **on)
        self.asked = calls.Asked()

    def _call(self, vectors: Any) -> calls.Group:
        features = [
            calls.Feature(
                ids=ids.data_ptr(),
                rows=self.splits.data_ptr(),
                kind=calls.SPLITS64,
                combiner=calls.MEAN,
                count=len(ids),
                examples=self.cell.batch,
                table=f,
                vectors=vectors.data_ptr() + 4 * f * self.cell.dim,
                stride=FEATURES * self.cell.dim,
            )
            for f, ids in enumerate(self.ids)
        ]
        tables = [
            calls.Table(
                values=table.data_ptr(),
                rows=self.cell.rows,
                dim=self.cell.dim,
                slots=(accumulator.data_ptr(), None),
            )
            for table, accumulator in zip(self.tables, self.accumulators, strict=True)
        ]
        return calls.group(features, tables, wide_ids=True)

    @property
    def moved(self) -> int:
        """Bytes that a lookup cannot but move."""
        ids = sum(map(len, self.ids))
        return ids * (4 * self.cell.dim + 8) + self.vectors.numel() * 4 + self.splits.numel() * 8

    def look_up(self) -> None:
        """All features forward."""
        stream = self.torch.cuda.current_stream().cuda_stream
        self._check(self.library.workbench_cuda_look_up(stream, ctypes.byref(self.forward)))

    def look_up_by_torch(self) -> None:
        """The same, a call for each feature; what they find is dropped."""
        for f in range(FEATURES):
            self.bag(f, self.tables[f])

    def bag(self, feature: int, table: Any) -> Any:
        """What torch finds for a feature."""
        return self.torch.nn.functional.embedding_bag(
            self.ids[feature], table, self.splits, mode="mean", include_last_offset=True
        )

    def update(self) -> None:
        """Gradients of all tables, and Adagrad."""
        stream = self.torch.cuda.current_stream().cuda_stream
        call, asked = ctypes.byref(self.backward), ctypes.byref(self.asked)
        self._check(
            self.library.workbench_cuda_ask(
                stream, call, calls.NO_NUMBERS, self.workspace.data_ptr(), asked
            )
        )
        rule = calls.Rule(rule=calls.ADAGRAD, numbers=(RATE, EPSILON))
        self._check(self.library.workbench_cuda_apply(stream, call, asked, ctypes.byref(rule)))

    def gradients(self, feature: int) -> tuple[Any, Any]:
        """Rows of a feature's table, and their gradients."""
        torch = self.torch
        stream = torch.cuda.current_stream().cuda_stream
        call, asked = ctypes.byref(self.backward), ctypes.byref(self.asked)
        self._check(
            self.library.workbench_cuda_ask(
                stream, call, calls.ASKED_ROWS, self.workspace.data_ptr(), asked
            )
        )
        at = self.asked.table_firsts - self.workspace.data_ptr()
        firsts = self.workspace[at : at + 4 * (FEATURES + 1)].view(torch.int32).tolist()
        begin, count = firsts[feature], firsts[feature + 1] - firsts[feature]
        rows = torch.empty([count], dtype=torch.int64, device="cuda")
        sums = torch.empty([count, self.cell.dim], device="cuda")
        self._check(
            self.library.workbench_cuda_sum(
                stream, call, asked, feature, begin, count, rows.data_ptr(), sums.data_ptr()
            )
        )
        return rows, sums

    def _check(self, error: int) -> None:
        calls.check(self.library, error)


def check_results(lookups: Lookups) -> None:
    """Raises where a result is not that of torch, or differs from run to run."""
    torch, dim = lookups.torch, lookups.cell.dim
    lookups.look_up()
    first = lookups.vectors.clone()
    lookups.look_up()
    assert torch.equal(first, lookups.vectors), "a lookup differs from run to run"
    for f in (0, FEATURES - 1):
        lookups.look_up()
        table = lookups.tables[f].clone().requires_grad_()
        out = lookups.bag(f, table)
        mine = slice(f * dim, (f + 1) * dim)
        torch.testing.assert_close(lookups.vectors[:, mine], out)
        out.backward(lookups.gradient[:, mine])
        rows, sums = lookups.gradients(f)
        again = lookups.gradients(f)
        assert torch.equal(sums, again[1]), "a gradient differs from run to run"
        assert torch.equal(rows, torch.unique(lookups.ids[f]))
        torch.testing.assert_close(sums, table.grad[rows])
        _check_update(lookups, f, rows, table.grad)


def check_lacking_ids(lookups: Lookups) -> None:
    """Raises where a lookup is wrong of which ids are pruned, or are in no table.

    Several groups of a warp work together on a GPU alone, and take these apart.
    """
    torch, dim, rows = lookups.torch, lookups.cell.dim, lookups.cell.rows
    kept = [ids.clone() for ids in lookups.ids]
    for f, ids in enumerate(lookups.ids):
        share = (f % 4) / 3
        ids[torch.rand(ids.shape, device="cuda") < share] = -1
        if f % 5 == 0:
            ids[torch.rand(ids.shape, device="cuda") < 0.1] = rows
        lookups.forward.features[f].prune = 1
    lookups.vectors.fill_(float("nan"))
    lookups.look_up()
    counts = lookups.splits[1:] - lookups.splits[:-1]
    examples = torch.repeat_interleave(counts)
    for f, ids in enumerate(lookups.ids):
        asks = (ids >= 0) & (ids < rows)
        sums = torch.zeros([lookups.cell.batch, dim], device="cuda")
        sums.index_add_(0, examples[asks], lookups.tables[f][ids[asks]])
        divisors = torch.bincount(examples[asks], minlength=lookups.cell.batch).clamp(min=1)
        mine = slice(f * dim, (f + 1) * dim)
        torch.testing.assert_close(lookups.vectors[:, mine], sums / divisors[:, None])
        ids.copy_(kept[f])
        lookups.forward.features[f].prune = 0


def _check_update(lookups: Lookups, feature: int, rows: Any, gradient: Any) -> None:
    table, accumulator = lookups.tables[feature], lookups.accumulators[feature]
    before, sums = table.clone(), accumulator.clone()
    lookups.update()
    sums[rows] += gradient[rows] ** 2
    before[rows] -= RATE * gradient[rows] / (sums[rows] + EPSILON).sqrt()
    lookups.torch.testing.assert_close(accumulator, sums)
    lookups.torch.testing.assert_close(table, before)


def _measured(torch: Any, cell: Cell, copied: float) -> str:
    lookups = Lookups(torch, cell)
    check_results(lookups)
    check_lacking_ids(lookups)
    forward = _seconds(torch, lookups.look_up)
    by_torch = _seconds(torch, lookups.look_up_by_torch)
    update = _seconds(torch, lookups.update)
    copy = _copy_seconds(torch, lookups.moved)
    reached = lookups.moved / forward / copied
    return (
        f"batch {cell.batch:,}, {cell.rows:,} × {cell.dim}, {cell.ids} ids a row: forward "
        f"{forward * 1e6:.1f} µs, a copy of as many bytes {copy * 1e6:.1f} µs "
        f"({copy / forward:.0%}), {reached:.0%} of a large copy's bandwidth; torch "
        f"{by_torch * 1e6:.0f} µs; gradient with Adagrad {update * 1e6:.0f} µs"
    )


def _copy_seconds(torch: Any, moved: int) -> float:
    """Of a copy that reads and writes so many bytes in all."""
    from_ = torch.empty([moved // 2], dtype=torch.int8, device="cuda")
    to = torch.empty_like(from_)
    return _seconds(torch, lambda: to.copy_(from_))


def _seconds(torch: Any, work: Callable[[], object]) -> float:
    """The median time on the device; between two runs the cache is filled with other things.

    These were read: written ones would have to leave the cache while the work runs.
    """
    other = torch.zeros([64 << 20], dtype=torch.int32, device="cuda")
    times = []
    for _ in range(_LOOKUPS + 3):
        other.sum()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / 1e3)
    return sorted(times[3:])[_LOOKUPS // 2]


if __name__ == "__main__":
    main()
