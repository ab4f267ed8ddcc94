"""Recommender models to measure, and the data they read.

`dlrm()` and its like make programs that are ready to run; MODELS names all models. Importing this
loads neither TensorFlow nor NumPy; making a program, or calling an entry of MODELS, loads NumPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.models.registry import MODELS as MODELS
from workbench.models.registry import Model as Model
from workbench.models.registry import program_again as program_again
from workbench.models.registry import program_of

if TYPE_CHECKING:
    from workbench.experiments.program.program import Program
    from workbench.models.registry import Data


def dlrm(
    data: Data = None,
    *,
    rows: int | None = None,
    batch_size: int = 512,
    input_latency_ms: float = 0.0,
    learning_rate: float = 0.01,
    seed: int = 1,
) -> Program:
    """DLRM, ready to run; its learning rate is Adagrad's.

    Args:
      data: a file in the model's format, or a table checked before; None generates one, which is
        kept in the user's cache directory.
      rows: how many to generate (None: 20 000), or to read of a file at most (None: a million).
      batch_size: rows of a batch.
      input_latency_ms: how long each batch waits, using no CPU, before it is delivered.
      learning_rate: of the optimizer.
      seed: of the weights, and of generated data.

    Raises:
      OptionError: an option out of range, or rows of a table whose rows are known.
      DataError: the file cannot be read, or is in another format.
      OutputError: the generated file cannot be written; give data of your own.
    """
    return program_of(
        "dlrm",
        data,
        rows,
        {
            "batch_size": batch_size,
            "input_latency_ms": input_latency_ms,
            "learning_rate": learning_rate,
            "seed": seed,
        },
    )


def deepfm(
    data: Data = None,
    *,
    rows: int | None = None,
    batch_size: int = 512,
    input_latency_ms: float = 0.0,
    learning_rate: float = 0.001,
    table_learning_rate: float = 0.05,
    seed: int = 1,
) -> Program:
    """DeepFM, ready to run; see `dlrm`.

    Args:
      data, rows, batch_size, input_latency_ms, seed: as of `dlrm`, the file too.
      learning_rate: of Adam.
      table_learning_rate: of the Adagrad that trains the tables.
    """
    return program_of(
        "deepfm",
        data,
        rows,
        {
            "batch_size": batch_size,
            "input_latency_ms": input_latency_ms,
            "learning_rate": learning_rate,
            "table_learning_rate": table_learning_rate,
            "seed": seed,
        },
    )


def wdl(
    data: Data = None,
    *,
    rows: int | None = None,
    batch_size: int = 512,
    input_latency_ms: float = 0.0,
    learning_rate: float = 0.01,
    wide_learning_rate: float = 0.2,
    table_learning_rate: float = 0.05,
    seed: int = 1,
) -> Program:
    """Wide & Deep, ready to run; see `dlrm`.

    Args:
      data, rows, batch_size, input_latency_ms, seed: as of `dlrm`, the file too.
      learning_rate: of the deep part's Adam.
      wide_learning_rate: of the wide part's FTRL.
      table_learning_rate: of the Adagrad that trains the tables.
    """
    return program_of(
        "wdl",
        data,
        rows,
        {
            "batch_size": batch_size,
            "input_latency_ms": input_latency_ms,
            "learning_rate": learning_rate,
            "wide_learning_rate": wide_learning_rate,
            "table_learning_rate": table_learning_rate,
            "seed": seed,
        },
    )


def dssm(
    data: Data = None,
    *,
    rows: int | None = None,
    batch_size: int = 4096,
    input_latency_ms: float = 0.0,
    learning_rate: float = 0.001,
    table_learning_rate: float = 0.1,
    seed: int = 1,
) -> Program:
    """DSSM, ready to run; see `dlrm`.

    Args:
      data, rows, batch_size, input_latency_ms, seed: as of `dlrm`; the file is
        a log of advertisements.
      learning_rate: of Adam.
      table_learning_rate: of the Adagrad that trains the tables.
    """
    return program_of(
        "dssm",
        data,
        rows,
        {
            "batch_size": batch_size,
            "input_latency_ms": input_latency_ms,
            "learning_rate": learning_rate,
            "table_learning_rate": table_learning_rate,
            "seed": seed,
        },
    )


def din(
    data: Data = None,
    *,
    rows: int | None = None,
    batch_size: int = 512,
    input_latency_ms: float = 0.0,
    learning_rate: float = 0.001,
    table_learning_rate: float = 0.1,
    seed: int = 1,
) -> Program:
    """DIN, ready to run; see `dlrm`.

    Args:
      data, rows, batch_size, input_latency_ms, seed: as of `dlrm`; the file is
        one of sequences.
      learning_rate: of Adam.
      table_learning_rate: of the Adagrad that trains the tables.
    """
    return program_of(
        "din",
        data,
        rows,
        {
            "batch_size": batch_size,
            "input_latency_ms": input_latency_ms,
            "learning_rate": learning_rate,
            "table_learning_rate": table_learning_rate,
            "seed": seed,
        },
    )


def dien(
    data: Data = None,
    *,
    rows: int | None = None,
    batch_size: int = 512,
    input_latency_ms: float = 0.0,
    learning_rate: float = 0.001,
    table_learning_rate: float = 0.1,
    seed: int = 1,
) -> Program:
    """DIEN, ready to run; see `dlrm`.

    Args:
      data, rows, batch_size, input_latency_ms, seed: as of `dlrm`; the file is
        one of sequences, with items passed over.
      learning_rate: of Adam.
      table_learning_rate: of the Adagrad that trains the tables.
    """
    return program_of(
        "dien",
        data,
        rows,
        {
            "batch_size": batch_size,
            "input_latency_ms": input_latency_ms,
            "learning_rate": learning_rate,
            "table_learning_rate": table_learning_rate,
            "seed": seed,
        },
    )
