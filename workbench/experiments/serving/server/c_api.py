"""TensorFlow's public C API by ctypes: what a served model needs of it.

Calls that may take long let other threads of Python run; the few that only read a number or free a
tensor do not, since giving up Python's lock takes longer than they do.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.errors import UnsupportedError

POINTER = ctypes.c_void_p
_TEXT, _INT, _SIZE, _LONG = ctypes.c_char_p, ctypes.c_int, ctypes.c_size_t, ctypes.c_int64


class Output(ctypes.Structure):
    """TF_Output: an operation of a graph, and the number of one of its outputs."""

    _fields_ = (("operation", POINTER), ("index", _INT))


# Result, then arguments, as of tensorflow/c/c_api.h.
_LONG_CALLS: Mapping[str, tuple[Any, ...]] = {
    "TF_LoadSessionFromSavedModel": (
        *(POINTER, POINTER, POINTER, _TEXT, ctypes.POINTER(_TEXT)),
        *(_INT, POINTER, POINTER, POINTER),
    ),
    "TF_SessionRun": (
        # Addresses of arrays go as numbers, which ctypes converts fastest.
        *(None, POINTER, POINTER, POINTER, POINTER, _INT, POINTER, POINTER, _INT),
        *(POINTER, _INT, POINTER, POINTER),
    ),
}
_SHORT_CALLS: Mapping[str, tuple[Any, ...]] = {
    "TF_Version": (_TEXT,),
    "TF_NewStatus": (POINTER,),
    "TF_DeleteStatus": (None, POINTER),
    "TF_GetCode": (_INT, POINTER),
    "TF_Message": (_TEXT, POINTER),
    "TF_NewSessionOptions": (POINTER,),
    "TF_DeleteSessionOptions": (None, POINTER),
    "TF_SetConfig": (None, POINTER, _TEXT, _SIZE, POINTER),
    "TF_NewGraph": (POINTER,),
    "TF_GraphOperationByName": (POINTER, POINTER, _TEXT),
    "TF_AllocateTensor": (POINTER, _INT, ctypes.POINTER(_LONG), _INT, _SIZE),
    "TF_DeleteTensor": (None, POINTER),
    "TF_TensorType": (_INT, POINTER),
    "TF_NumDims": (_INT, POINTER),
    "TF_Dim": (_LONG, POINTER, _INT),
    "TF_TensorByteSize": (_SIZE, POINTER),
    "TF_TensorData": (POINTER, POINTER),
    "TF_StringInit": (None, POINTER),
    "TF_StringCopy": (None, POINTER, _TEXT, _SIZE),
    "TF_StringGetDataPointer": (POINTER, POINTER),
    "TF_StringGetSize": (_SIZE, POINTER),
}


class CApi:
    """The functions, each under its name."""

    def __init__(self, path: str) -> None:
        """Of a library.

        Raises:
          UnsupportedError: it cannot be loaded, or lacks one of them.
        """
        try:
            libraries = (ctypes.CDLL(path), ctypes.PyDLL(path))
            calls = (_LONG_CALLS, _SHORT_CALLS)
            for library, signatures in zip(libraries, calls, strict=True):
                for name, (result, *arguments) in signatures.items():
                    function = getattr(library, name)
                    function.restype, function.argtypes = result, arguments
                    setattr(self, name, function)
        except (OSError, AttributeError) as error:
            raise UnsupportedError(
                f"this TensorFlow does not export the C API that requests are sent by ({error}); "
                "a served model needs TensorFlow's own wheel for Linux"
            ) from error

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the C API has no {name!r} here")


@functools.cache
def c_api() -> CApi:
    """The C API of the TensorFlow that this process has imported.

    Raises:
      UnsupportedError: it does not export it.
    """
    import tensorflow as tf

    folder = Path(tf.sysconfig.get_lib())
    libraries = sorted(folder.glob("libtensorflow_cc.so.*"))
    if not libraries:
        raise UnsupportedError(
            f"{folder} has no libtensorflow_cc.so, whose C API requests are sent by; a served "
            "model needs TensorFlow's own wheel for Linux"
        )
    return CApi(str(libraries[0]))


class Status:
    """A TF_Status, which a call fills.

    Attributes:
      number: its address.
    """

    def __init__(self) -> None:
        self._api = c_api()
        self.number: int = self._api.TF_NewStatus()

    @property
    def message(self) -> str:
        """What went wrong in the last call; "" where nothing did."""
        if not self._api.TF_GetCode(self.number):
            return ""
        text: bytes = self._api.TF_Message(self.number)
        return text.decode(errors="replace") or f"code {self._api.TF_GetCode(self.number)}"

    def close(self) -> None:
        """Frees it."""
        self._api.TF_DeleteStatus(self.number)
