"""Programs as bytes; their code keeps the names of its files, which errors and traces show."""

from __future__ import annotations

import io
import types
from collections.abc import Callable
from typing import Any

import cloudpickle


def pickled(value: Any) -> bytes:
    """`value` as `cloudpickle.dumps` writes it, for `cloudpickle.loads`; files of code are kept.

    cloudpickle 3.1.3 and newer call every file "<dynamic-code>".

    Raises:
      pickle.PicklingError, TypeError: as of `cloudpickle.dumps`.
    """
    written = io.BytesIO()
    _Pickler(written).dump(value)
    return written.getvalue()


class _Pickler(cloudpickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, types.CodeType):
            make, arguments = self.dispatch_table[types.CodeType](value)
            return _code_of_file, (value.co_filename, make, arguments)
        return super().reducer_override(value)


def _code_of_file(
    name: str, make: Callable[..., types.CodeType], arguments: tuple[Any, ...]
) -> types.CodeType:
    return make(*arguments).replace(co_filename=name)
