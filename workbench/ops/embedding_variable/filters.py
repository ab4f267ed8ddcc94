"""Filters of an EmbeddingVariable: how often a key must come before it has a row."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import tensorflow as tf

from workbench.errors import OptionError

# As the native table has them.
_MOST_FREQ = 2**32 - 1
_MOST_COUNTERS = 2**37
_LEAST_WAITING = 1024
_COUNTER_TYPES = (
    *(tf.uint8, tf.uint16, tf.uint32, tf.uint64),
    *(tf.int8, tf.int16, tf.int32, tf.int64),
)


@dataclasses.dataclass(frozen=True)
class CounterFilter:
    """Gives a key its row when it has come often enough.

    Until then it reads as `default_value_no_permission` and is not trained. Every occurrence
    counts, several in one batch too; a key that gets there in a batch has its row for all of it.

    The keys that wait take 20 to 30 bytes each, 30 to 45 with an `evict_option`, and are saved in
    checkpoints. They leave as rows do by `GlobalStepEvict`. One more than `max_waiting_keys`, and
    the half of them that came least often is forgotten: those begin to count anew.

    Attributes:
      filter_freq: how often a key must come; 0 means that every key has its row at once.
      max_waiting_keys: of all partitions together. 2**24, the default, takes up to half a GB.
    """

    filter_freq: int = 0
    max_waiting_keys: int = 2**24

    def __post_init__(self) -> None:
        _require_freq(self)
        require_int(self, "max_waiting_keys")
        if not _LEAST_WAITING <= self.max_waiting_keys <= _MOST_COUNTERS:
            raise OptionError(
                f"CounterFilter: max_waiting_keys is {self.max_waiting_keys}; expected "
                f"{_LEAST_WAITING} to {_MOST_COUNTERS}"
            )

    def native_arguments(self, partitions: int) -> dict[str, int]:
        """Arguments of the native table of one of `partitions` partitions."""
        return {
            "filter_freq": self.filter_freq,
            "most_waiting": -(-self.max_waiting_keys // partitions),
        }


@dataclasses.dataclass(frozen=True)
class CBFFilter:
    """Gives a key its row when it has come often enough, as a counting Bloom filter counts.

    As `CounterFilter`, in memory that does not grow with the keys that come once. A key never gets
    its row later than there, but may get it earlier, where others share its counters; nor does a
    key begin anew when its row was evicted. The memory, -ln(p) / ln(2)² counters for each element,
    is taken when the variable is initialized; 10 million elements at 1% take 96 MB with uint8.

    A checkpoint has the counters. They are restored into a variable of the same filter and number
    of partitions; any other begins to count anew. Keys that waited in a CounterFilter are counted.

    Attributes:
      filter_freq: how often a key must come; 0 means that every key has its row at once.
      max_element_size: how many different keys are expected; with more, more come too early.
      false_positive_probability: of a new key to be taken for one that came, above 0 and below 1.
      counter_type: an integer type of TensorFlow that can count to `filter_freq`; None takes the
        smallest that does.
    """

    filter_freq: int = 0
    max_element_size: int = 0
    false_positive_probability: float = -1.0
    counter_type: Any = None

    def __post_init__(self) -> None:
        _require_freq(self)
        require_int(self, "max_element_size")
        chance = self.false_positive_probability
        if not isinstance(chance, (int, float)) or not 0 < chance < 1:
            raise OptionError(
                f"CBFFilter: false_positive_probability is {chance!r}; expected a number above 0 "
                "and below 1, such as 0.01"
            )
        if self.max_element_size < 1 or self._counters(1) > _MOST_COUNTERS:
            raise OptionError(
                f"CBFFilter: max_element_size is {self.max_element_size}; expected the number of "
                f"different keys, 1 or more, for at most {_MOST_COUNTERS} counters"
            )
        self._counter_bytes()

    def native_arguments(self, partitions: int) -> dict[str, int]:
        """Arguments of the native table of one of `partitions` partitions."""
        if not self.filter_freq:
            return {"filter_freq": 0}
        hashes = round(-math.log2(self.false_positive_probability))
        return {
            "filter_freq": self.filter_freq,
            "bloom_counters": self._counters(partitions),
            "bloom_hashes": min(64, max(1, hashes)),
            "bloom_bytes": self._counter_bytes(),
        }

    def _counters(self, partitions: int) -> int:
        elements = -(-self.max_element_size // partitions)
        return math.ceil(-elements * math.log(self.false_positive_probability) / math.log(2) ** 2)

    def _counter_bytes(self) -> int:
        enough = [kind for kind in _COUNTER_TYPES if kind.max >= self.filter_freq]
        if self.counter_type is None:
            return int(enough[0].size)
        if self.counter_type not in enough:
            raise OptionError(
                f"CBFFilter: counter_type is {self.counter_type!r}; expected one that counts to "
                f"filter_freq = {self.filter_freq}: {', '.join(kind.name for kind in enough)} of "
                "tf, or None"
            )
        return int(tf.as_dtype(self.counter_type).size)


def require_int(option: Any, field: str) -> None:
    """Raises OptionError where a field of an option is no int."""
    value = getattr(option, field)
    if not isinstance(value, int) or isinstance(value, bool):
        raise OptionError(f"{type(option).__name__}: {field} is {value!r}; expected an int")


def _require_freq(option: CounterFilter | CBFFilter) -> None:
    require_int(option, "filter_freq")
    if not 0 <= option.filter_freq <= _MOST_FREQ:
        raise OptionError(
            f"{type(option).__name__}: filter_freq is {option.filter_freq}; expected 0 (no "
            f"filter) to {_MOST_FREQ}"
        )
