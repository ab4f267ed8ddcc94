"""What the product did while a test file ran."""

from __future__ import annotations

import collections
import dataclasses
from typing import Any

_FEW = 20


@dataclasses.dataclass(kw_only=True)
class ProductCounts:
    """Counts of one process.

    Attributes:
      sessions: sessions that the tests opened.
      on_executor: sessions whose config names Workbench's executor.
      planned: sessions for whose graph a fusion plan was made.
      fused: sessions that ran with a plan of at least one part, or whose graph has ops of
        Workbench's.
      parts: parts of those plans; safe lookups that were built as ops of Workbench's.
      stayed_stock: safe lookups that were built as TensorFlow's.
      models, changed_models: Keras models that were compiled; those that ran fused or staged.
      refusals: by reason, what stayed stock.
      not_replaced: by reason, plans that no session ran.
      plan_errors: by error, plans that could not be made. There must be none.
    """

    sessions: int = 0
    on_executor: int = 0
    planned: int = 0
    fused: int = 0
    parts: int = 0
    stayed_stock: int = 0
    models: int = 0
    changed_models: int = 0
    refusals: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    not_replaced: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    plan_errors: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)

    def as_json(self) -> dict[str, Any]:
        """The counts, of reasons the most frequent ones."""
        found = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            is_counter = isinstance(value, collections.Counter)
            found[field.name] = dict(value.most_common(_FEW)) if is_counter else value
        return found
