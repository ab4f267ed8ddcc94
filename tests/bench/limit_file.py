"""What the programs of the bench of limits start from: weights and batches, in one file.

native/bench/step_limit.cc reads it, and so does a Python without TensorFlow.
"""

from __future__ import annotations

import dataclasses
import itertools
import os

import numpy as np

MODELS = ("dlrm", "deepfm")
NUMBERS, TABLES, DIMENSION, BUCKETS = 13, 26, 16, 10_000
BATCHES = 16
PAIRS = (TABLES + 1) * TABLES // 2
# Widths of both stacks of dense layers, their input first.
WIDTHS = {
    "dlrm": ((NUMBERS, 512, 256, 64, DIMENSION), (DIMENSION + PAIRS, 512, 256)),
    "deepfm": ((NUMBERS + TABLES * DIMENSION, 1024, 256, 32), (1 + DIMENSION + 32, 128, 64)),
}
# Of the dense layers, by Adagrad in DLRM and Adam in DeepFM; of the tables, by Adagrad. They are
# small: at the rates of `wb.models` a difference in the last bit of a weight is one of 1e-3 of the
# loss within five steps, and sums in another order would give other losses.
RATES = {"dlrm": (5e-5, 5e-5), "deepfm": (1e-5, 1e-4)}
_HEADER = np.dtype([("sizes", np.int32, 4), ("rates", np.float32, 2)])


@dataclasses.dataclass(frozen=True, kw_only=True)
class Start:
    """Weights and batches of one model; all floats are float32.

    Attributes:
      model: one of MODELS.
      layers: kernel [inputs, units], bias, gamma and beta of each dense layer, in order.
      logit: kernel and bias of the last layer.
      linear: likewise of the numbers' part of DeepFM; empty of DLRM.
      tables: [BUCKETS, DIMENSION] each, then of DeepFM the ids' weights [BUCKETS, 1].
      numbers: [BATCHES, batch, NUMBERS].
      labels: [BATCHES, batch].
      ids: int32 [BATCHES, batch, TABLES].
    """

    model: str
    layers: list[list[np.ndarray]]
    logit: list[np.ndarray]
    linear: list[np.ndarray]
    tables: list[np.ndarray]
    numbers: np.ndarray
    labels: np.ndarray
    ids: np.ndarray

    @property
    def batch(self) -> int:
        """Rows of a batch."""
        return self.labels.shape[1]


def layer_sizes(model: str) -> list[tuple[int, int]]:
    """Inputs and units of each dense layer with a batch normalization, in order."""
    return [pair for widths in WIDTHS[model] for pair in itertools.pairwise(widths)]


def write(start: Start, path: str | os.PathLike[str]) -> None:
    """Writes the file."""
    header = np.zeros((), _HEADER)
    header["sizes"] = MODELS.index(start.model), start.batch, len(start.labels), BUCKETS
    header["rates"] = RATES[start.model]
    dense = [*(part for layer in start.layers for part in layer), *start.logit, *start.linear]
    with open(path, "wb") as file:
        file.write(header.tobytes())
        for values in [*dense, *start.tables]:
            file.write(np.ascontiguousarray(values, np.float32).tobytes())
        for numbers, labels, ids in zip(start.numbers, start.labels, start.ids, strict=True):
            file.write(np.ascontiguousarray(numbers, np.float32).tobytes())
            file.write(np.ascontiguousarray(labels, np.float32).tobytes())
            file.write(np.ascontiguousarray(ids.T, np.int32).tobytes())


def read(path: str | os.PathLike[str]) -> Start:
    """Reads what `write` wrote."""
    with open(path, "rb") as file:
        header = np.frombuffer(file.read(_HEADER.itemsize), _HEADER)[0]
        number, batch, batches, buckets = header["sizes"].tolist()
        model = MODELS[number]

        def floats(*shape: int) -> np.ndarray:
            count = int(np.prod(shape))
            return np.frombuffer(file.read(4 * count), np.float32).reshape(shape).copy()

        layers = [
            [floats(inputs, units), *(floats(units) for _ in range(3))]
            for inputs, units in layer_sizes(model)
        ]
        logit = [floats(WIDTHS[model][1][-1], 1), floats(1)]
        linear = [floats(NUMBERS, 1), floats(1)] if model == "deepfm" else []
        tables = [floats(buckets, DIMENSION) for _ in range(TABLES)]
        tables += [floats(buckets, 1) for _ in range(TABLES if linear else 0)]
        parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        for _ in range(batches):
            numbers, labels = floats(batch, NUMBERS), floats(batch)
            ids = np.frombuffer(file.read(4 * TABLES * batch), np.int32)
            parts.append((numbers, labels, ids.reshape(TABLES, batch).T.copy()))
    all_numbers, all_labels, all_ids = (np.stack(part) for part in zip(*parts, strict=True))
    return Start(
        model=model,
        layers=layers,
        logit=logit,
        linear=linear,
        tables=tables,
        numbers=all_numbers,
        labels=all_labels,
        ids=all_ids,
    )
