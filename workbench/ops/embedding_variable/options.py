"""What an EmbeddingVariable does with new, rare and old keys; DeepRec's options by name."""

from __future__ import annotations

import dataclasses
import logging
from typing import Any, NoReturn

from workbench.errors import OptionError, UnsupportedError
from workbench.ops.embedding_variable.filters import CBFFilter, CounterFilter, require_int

_LOG = logging.getLogger("workbench")
_DEFAULT_VALUE_DIM = 4096


@dataclasses.dataclass(frozen=True)
class InitializerOption:
    """The rows that new keys start with.

    A matrix of `default_value_dim` rows is initialized once; key k starts as a copy of row
    `k mod default_value_dim`. So the same seed gives the same rows, in whatever order keys come.

    Attributes:
      initializer: of that matrix, e.g. `tf.ones_initializer()`; it goes before the initializer
        given to `get_embedding_variable`. None leaves it to that one.
      default_value_dim: rows of the matrix; 4096 where it is not above 0, which is logged.
      default_value_no_permission: all values of a key that a filter keeps out.
    """

    initializer: Any = None
    default_value_dim: int = _DEFAULT_VALUE_DIM
    default_value_no_permission: float = 0.0

    def __post_init__(self) -> None:
        require_int(self, "default_value_dim")
        if self.default_value_dim <= 0:
            _LOG.warning(
                "InitializerOption: default_value_dim is %d; taking %d, as it must be above 0",
                self.default_value_dim,
                _DEFAULT_VALUE_DIM,
            )
            object.__setattr__(self, "default_value_dim", _DEFAULT_VALUE_DIM)


@dataclasses.dataclass(frozen=True)
class GlobalStepEvict:
    """Takes out rows that were not looked up in training for a while, when a checkpoint is saved.

    Attributes:
      steps_to_live: a row stays while its last lookup was at most this many global steps ago.
    """

    steps_to_live: int

    def __post_init__(self) -> None:
        require_int(self, "steps_to_live")
        if self.steps_to_live <= 0:
            raise OptionError(
                f"GlobalStepEvict: steps_to_live is {self.steps_to_live}; expected 1 or more, or "
                "no evict_option"
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class EmbeddingVariableOption:
    """Options of an EmbeddingVariable.

    Attributes:
      filter_option: a CounterFilter or CBFFilter; None lets every key in.
      evict_option: a GlobalStepEvict; None keeps every row.
      init_option: the rows of new keys; None means `InitializerOption()`.
      storage_option, ckpt: of DeepRec; only None.
    """

    filter_option: CounterFilter | CBFFilter | None = None
    evict_option: GlobalStepEvict | None = None
    init_option: InitializerOption | None = None
    storage_option: Any = None
    ckpt: Any = None

    def __post_init__(self) -> None:
        self._require("filter_option", CounterFilter, CBFFilter)
        self._require("evict_option", GlobalStepEvict)
        self._require("init_option", InitializerOption)
        if self.storage_option is not None:
            _refuse_storage(f"storage_option = {self.storage_option!r}")
        if self.ckpt is not None:
            raise UnsupportedError(
                f"EmbeddingVariableOption: ckpt = {self.ckpt!r} is not implemented; restore with "
                "tf.compat.v1.train.Saver"
            )

    @property
    def init(self) -> InitializerOption:
        """The rows of new keys, never None."""
        return self.init_option or InitializerOption()

    @property
    def filter_freq(self) -> int:
        """How often a key must come before it has a row; 0 without a filter."""
        return self.filter_option.filter_freq if self.filter_option else 0

    @property
    def steps_to_live(self) -> int:
        """Steps that an unused row stays; 0 means for ever."""
        return self.evict_option.steps_to_live if self.evict_option else 0

    def filter_arguments(self, partitions: int) -> dict[str, int]:
        """Arguments for the filter of the native table of one of `partitions` partitions."""
        return self.filter_option.native_arguments(partitions) if self.filter_option else {}

    def _require(self, field: str, *kinds: type) -> None:
        value = getattr(self, field)
        if value is not None and not isinstance(value, kinds):
            names = ", a ".join(kind.__name__ for kind in kinds)
            raise OptionError(
                f"EmbeddingVariableOption: {field} is {value!r}; expected a {names} or None"
            )


class L2WeightEvict:
    """DeepRec's eviction of rows with a small norm: refused; see `GlobalStepEvict`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise UnsupportedError(
            f"L2WeightEvict({_listed(args, kwargs)}) is not implemented; use "
            "GlobalStepEvict(steps_to_live)"
        )


class StorageOption:
    """DeepRec's storage tiers: refused; rows are kept in memory."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse_storage(f"StorageOption({_listed(args, kwargs)})")


def _refuse_storage(asked: str) -> NoReturn:
    raise UnsupportedError(
        f"EmbeddingVariable: {asked} is not implemented: rows are kept in the host's memory; leave "
        "it out, and spread a table that is too large by partitioner=tf.fixed_size_partitioner(n)"
    )


def _listed(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    return ", ".join([*map(repr, args), *(f"{name}={value!r}" for name, value in kwargs.items())])
