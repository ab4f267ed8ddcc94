"""Programs as bytes, with all code that a child process cannot import itself.

Their code keeps the names of its files, which errors and traces show.
"""

from __future__ import annotations

import io
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

import cloudpickle

_ONE_AT_A_TIME = threading.RLock()


def pickled(value: Any) -> bytes:
    """`value` as `cloudpickle.dumps` writes it, for `cloudpickle.loads`; files of code are kept.

    cloudpickle 3.1.3 and newer call every file "<dynamic-code>". It writes the functions and
    classes of a module as the module's name. Those of a module that no import finds are written
    whole: of the script of a process that multiprocessing spawned, of a file that was loaded by its
    path, of a module that was made in memory.

    Raises:
      pickle.PicklingError, TypeError: as of `cloudpickle.dumps`.
    """
    written = io.BytesIO()
    # The register of such modules belongs to all threads.
    with _ONE_AT_A_TIME:
        pickler = _Pickler(written)
        try:
            pickler.dump(value)
        finally:
            for module in pickler.written_whole:
                cloudpickle.unregister_pickle_by_value(module)
    return written.getvalue()


class _Pickler(cloudpickle.Pickler):
    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.written_whole: list[types.ModuleType] = []
        # cloudpickle writes what the script itself defines.
        self._seen = {"__main__"}

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, types.CodeType):
            make, arguments = self.dispatch_table[types.CodeType](value)
            return _code_of_file, (value.co_filename, make, arguments)
        if isinstance(value, (types.FunctionType, type, types.ModuleType)):
            self._see(value)
        return super().reducer_override(value)

    def _see(self, value: Any) -> None:
        """Registers the module of a value with cloudpickle, where no import finds it."""
        is_module = isinstance(value, types.ModuleType)
        name = value.__name__ if is_module else getattr(value, "__module__", None)
        if not isinstance(name, str) or name in self._seen:
            return
        self._seen.add(name)
        module = sys.modules.get(name)
        if module is None or name in cloudpickle.list_registry_pickle_by_value():
            return
        if not _is_found(module, name):
            cloudpickle.register_pickle_by_value(module)
            self.written_whole.append(module)


def _is_found(module: types.ModuleType, name: str) -> bool:
    """Whether a new process with the same paths finds this very module by its name."""
    parent, _, _ = name.rpartition(".")
    path = None
    if parent:
        package = sys.modules.get(parent)
        if package is None or not _is_found(package, parent):
            return False
        # Of what is no package, such as `os.path`, the parent makes the module itself.
        path = getattr(package, "__path__", None)
        if path is None:
            return True
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        spec = find(name, path) if find else None
        if spec is not None:
            file = getattr(module, "__file__", None)
            return not (file and spec.has_location) or spec.origin == file
    # What a package makes while it is imported is there again in another process.
    return bool(parent)


def _code_of_file(
    name: str, make: Callable[..., types.CodeType], arguments: tuple[Any, ...]
) -> types.CodeType:
    return make(*arguments).replace(co_filename=name)
