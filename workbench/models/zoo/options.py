"""Options of the six models, with the one source of their defaults.

Importing this loads neither TensorFlow nor NumPy; the formats of data, which do, are read late.
"""

from __future__ import annotations

import dataclasses

from workbench.models.building.model_options import ModelOptions
from workbench.models.data.table_format import require_columns


@dataclasses.dataclass(frozen=True, kw_only=True)
class DlrmOptions(ModelOptions):
    """What a DLRM run reads and how it trains; the learning rate is Adagrad's."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class DeepFmOptions(ModelOptions):
    """What a DeepFM run reads and how it trains; the learning rate is Adam's.

    Attributes:
      table_learning_rate: of the tables' Adagrad.
    """

    learning_rate: float = 0.001
    table_learning_rate: float = 0.05


@dataclasses.dataclass(frozen=True, kw_only=True)
class WdlOptions(ModelOptions):
    """What a Wide & Deep run reads and how it trains.

    Attributes:
      learning_rate: of the deep part's Adam.
      wide_learning_rate: of the wide part's FTRL.
      table_learning_rate: of the Adagrad of the deep part's tables.
    """

    wide_learning_rate: float = 0.2
    table_learning_rate: float = 0.05


@dataclasses.dataclass(frozen=True, kw_only=True)
class DssmOptions(ModelOptions):
    """What a DSSM run reads and how it trains.

    Attributes:
      data: a `DSSM_TABLE`.
      learning_rate: of Adam.
      table_learning_rate: of Adagrad, which trains the tables.
    """

    batch_size: int = 4096
    learning_rate: float = 0.001
    table_learning_rate: float = 0.1

    def __post_init__(self) -> None:
        from workbench.models.data.taobao import DSSM_TABLE

        super().__post_init__()
        require_columns(self.data, DSSM_TABLE, "DSSM")


@dataclasses.dataclass(frozen=True, kw_only=True)
class DinOptions(ModelOptions):
    """What a DIN run reads and how it trains.

    Attributes:
      data: a `SEQUENCE_TABLE`; columns behind it are not read.
      learning_rate: of Adam.
      table_learning_rate: of Adagrad, which trains the tables.
    """

    learning_rate: float = 0.001
    table_learning_rate: float = 0.1

    def __post_init__(self) -> None:
        from workbench.models.data.taobao import SEQUENCE_TABLE

        super().__post_init__()
        require_columns(self.data, SEQUENCE_TABLE, "DIN")


@dataclasses.dataclass(frozen=True, kw_only=True)
class DienOptions(ModelOptions):
    """What a DIEN run reads and how it trains.

    Attributes:
      data: a `SEQUENCE_NEGATIVE_TABLE`.
      learning_rate: of Adam.
      table_learning_rate: of Adagrad, which trains the tables.
    """

    learning_rate: float = 0.001
    table_learning_rate: float = 0.1

    def __post_init__(self) -> None:
        from workbench.models.data.taobao import SEQUENCE_NEGATIVE_TABLE

        super().__post_init__()
        require_columns(self.data, SEQUENCE_NEGATIVE_TABLE, "DIEN")
