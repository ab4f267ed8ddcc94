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
from workbench.models.zoo.options import (
    DeepFmOptions,
    DienOptions,
    DinOptions,
    DlrmOptions,
    DssmOptions,
    WdlOptions,
)

if TYPE_CHECKING:
    from workbench.experiments.program.program import Program
    from workbench.models.registry import Data


def dlrm(
    data: Data = None,
    *,
    rows: int | None = None,
    batch_size: int = DlrmOptions.batch_size,
    input_latency_ms: float = DlrmOptions.input_latency_ms,
    learning_rate: float = DlrmOptions.learning_rate,
    seed: int = DlrmOptions.seed,
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
    batch_size: int = DeepFmOptions.batch_size,
    input_latency_ms: float = DeepFmOptions.input_latency_ms,
    learning_rate: float = DeepFmOptions.learning_rate,
    table_learning_rate: float = DeepFmOptions.table_learning_rate,
    seed: int = DeepFmOptions.seed,
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
    batch_size: int = WdlOptions.batch_size,
    input_latency_ms: float = WdlOptions.input_latency_ms,
    learning_rate: float = WdlOptions.learning_rate,
    wide_learning_rate: float = WdlOptions.wide_learning_rate,
    table_learning_rate: float = WdlOptions.table_learning_rate,
    seed: int = WdlOptions.seed,
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
    batch_size: int = DssmOptions.batch_size,
    input_latency_ms: float = DssmOptions.input_latency_ms,
    learning_rate: float = DssmOptions.learning_rate,
    table_learning_rate: float = DssmOptions.table_learning_rate,
    seed: int = DssmOptions.seed,
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
    batch_size: int = DinOptions.batch_size,
    input_latency_ms: float = DinOptions.input_latency_ms,
    learning_rate: float = DinOptions.learning_rate,
    table_learning_rate: float = DinOptions.table_learning_rate,
    seed: int = DinOptions.seed,
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
    batch_size: int = DienOptions.batch_size,
    input_latency_ms: float = DienOptions.input_latency_ms,
    learning_rate: float = DienOptions.learning_rate,
    table_learning_rate: float = DienOptions.table_learning_rate,
    seed: int = DienOptions.seed,
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
