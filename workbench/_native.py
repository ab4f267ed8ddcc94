"""The only door to the native library: finds it, checks what it was built for, loads it once.

Behind it are ops, through `library`, and plain C functions, through `calls`.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import pathlib
import threading
from collections.abc import Iterable, Mapping
from typing import Any

from workbench._native_stamp import (
    DISTRIBUTION,
    PACKAGE,
    Stamp,
    build_gpu_kernels,
    check,
    read_stamp,
    rebuild,
)
from workbench.errors import NativeError, UnsupportedError

_LIBRARY = "_workbench.so"
_GPU_LIBRARY = "_workbench_cuda.so"
_LOCK = threading.Lock()
_LOADED: list[Any] = []
_CALLS: list[Any] = []
_GPU_KERNELS: list[Any] = []

_TEXT, _NUMBER = ctypes.c_char_p, ctypes.c_int64
_NUMBERS, _INTS = ctypes.POINTER(ctypes.c_int64), ctypes.POINTER(ctypes.c_int32)
# Text that the caller must free, so that ctypes may not turn it into bytes: see `taken_text`.
_OWN_TEXT = ctypes.c_void_p
_POOL = ctypes.c_void_p
# What native/capi exports: result, then arguments. The first are there with the executors alone.
_OF_EXECUTORS: Mapping[str, tuple[Any, ...]] = {
    "workbench_cost_model_type": (_TEXT, _NUMBER, _NUMBER, _NUMBER, _NUMBER),
    "workbench_learned_costs": (_OWN_TEXT,),
    "workbench_preload_costs": (None, _TEXT),
    "workbench_relearn": (None,),
    "workbench_new_intra_op_pool": (_POOL, _TEXT, ctypes.c_int),
    "workbench_delete_intra_op_pool": (None, _POOL),
    "workbench_use_intra_op_pool": (None, _POOL),
    "workbench_turns_asked": (_NUMBER,),
    "workbench_turns_kept": (_NUMBER,),
}
_SIGNATURES: Mapping[str, tuple[Any, ...]] = {
    "workbench_free": (None, _OWN_TEXT),
    "workbench_trace_ops": (None, ctypes.c_int),
    "workbench_traced_ops": (_NUMBER,),
    "workbench_take_ops": (_NUMBER, _NUMBER, *[_NUMBERS] * 6, *[_INTS] * 2),
    "workbench_take_steps": (_NUMBER, _NUMBER, *[_NUMBERS] * 3, _INTS, _NUMBERS, _INTS),
    "workbench_traced_steps": (_NUMBER,),
    "workbench_lost_ops": (_NUMBER,),
    "workbench_traced_nodes": (_OWN_TEXT,),
    "workbench_traced_edges": (_OWN_TEXT,),
    "workbench_traced_threads": (_OWN_TEXT,),
}
_OF_DENSE: Mapping[str, tuple[Any, ...]] = {
    "workbench_matmul_fits": (ctypes.c_int, ctypes.c_int),
}


def library() -> Any:
    """The module of Workbench's ops, e.g. `library().workbench_buffer_put`.

    Loads TensorFlow and the native library on first use; any thread may call it.

    Raises:
      NativeError: the library is missing, or was built for another TensorFlow.
    """
    with _LOCK:
        if not _LOADED:
            _LOADED.append(_load())
        return _LOADED[0]


def load_library() -> None:
    """Loads the native library into this process, with TensorFlow, where that is not done yet.

    All else of Workbench that needs it does so by itself. The process of a `tf.train.Server` needs
    this call: a session elsewhere that has a stage there finds neither its ops nor its plan's pass
    without.

    Raises:
      NativeError: the library is missing, or was built for another TensorFlow.
    """
    library()


def load_gpu_kernels() -> None:
    """Loads the kernels of fused lookups for NVIDIA GPUs, which `make cuda` builds.

    From then on TensorFlow may put lookups, their gradients and updates of rows on a GPU. It does
    so where nothing names another device. Hence Workbench does not call this by itself. It works on
    a machine without a GPU too, and changes nothing there.

    Raises:
      NativeError: the kernels were not built; or as `library`.
    """
    library()
    with _LOCK:
        if not _GPU_KERNELS:
            _GPU_KERNELS.append(_load_gpu_kernels(library_path().with_name(_GPU_LIBRARY)))


def has_gpu_kernels() -> bool:
    """Whether this process loaded the kernels for NVIDIA GPUs; loads nothing."""
    return bool(_GPU_KERNELS)


def calls() -> Any:
    """The native library's C functions as ctypes sees them, e.g. `calls().workbench_relearn()`.

    They let other threads run meanwhile. Loads as `library` does.

    Raises:
      NativeError: as `library`, or the library lacks one of the functions.
    """
    library()
    with _LOCK:
        if not _CALLS:
            path = library_path()
            _CALLS.append(_declared(ctypes.CDLL(str(path)), read_stamp(path)))
        return _CALLS[0]


def has_executors() -> bool:
    """Whether the native library has Workbench's executors; loads neither it nor TensorFlow.

    Raises:
      NativeError: as `library_path` and `read_stamp`.
    """
    return read_stamp(library_path()).executors


def has_dense_kernels() -> bool:
    """Whether the native library has the kernels for norms, interactions, products, text and Adam.

    Loads neither it nor TensorFlow.

    Raises:
      NativeError: as `library_path` and `read_stamp`.
    """
    return read_stamp(library_path()).dense


def require_executors(wanted: str) -> None:
    """Refuses what only Workbench's executors can do, where the library has none.

    Args:
      wanted: what that is, the subject of a sentence.

    Raises:
      UnsupportedError: says since which TensorFlow they are there. NativeError: as
        `has_executors`.
    """
    stamp = read_stamp(library_path())
    if not stamp.executors:
        raise UnsupportedError(
            f"{wanted} needs Workbench's executors, which this build for TensorFlow "
            f"{stamp.tensorflow} lacks: TensorFlow's package has had the headers for them only "
            "since 2.20; install Workbench for TensorFlow 2.20 or newer"
        )


def taken_text(call: str) -> str:
    """The text that a C function without arguments returns for its caller to free, and frees it."""
    functions = calls()
    pointer = getattr(functions, call)()
    try:
        return ctypes.string_at(pointer).decode(errors="replace") if pointer else ""
    finally:
        functions.workbench_free(pointer)


def library_path(folders: Iterable[pathlib.Path] | None = None) -> pathlib.Path:
    """Where the native library lies, among `folders` (by default, where this package lies).

    Raises:
      NativeError: it is in none of them.
    """
    looked_in = list(_folders() if folders is None else folders)
    for folder in looked_in:
        if (folder / _LIBRARY).is_file():
            return folder / _LIBRARY
    places = ", ".join(repr(str(folder)) for folder in looked_in)
    raise NativeError(f"the native library {_LIBRARY} is not in {places}; build it: {rebuild()}")


def _folders() -> list[pathlib.Path]:
    """The package's own folder, and where pip put the library of an editable install."""
    folders = [PACKAGE]
    try:
        installed = importlib.metadata.distribution(DISTRIBUTION).locate_file("workbench")
    except importlib.metadata.PackageNotFoundError:
        return folders
    folder = pathlib.Path(str(installed))
    return folders if folder == PACKAGE else [*folders, folder]


def _load() -> Any:
    path = library_path()
    stamp = read_stamp(path)
    import tensorflow as tf

    check(stamp, tensorflow=tf.version.VERSION, cxx11_abi=int(tf.sysconfig.CXX11_ABI_FLAG))
    try:
        return tf.load_op_library(str(path))
    except (tf.errors.OpError, RuntimeError, OSError) as error:
        raise NativeError(
            f"{path} cannot be loaded into TensorFlow {tf.version.VERSION}: {error}; "
            f"rebuild it: {rebuild()}"
        ) from error


def _load_gpu_kernels(path: pathlib.Path) -> Any:
    if not path.is_file():
        raise NativeError(
            f"{path} is not there: kernels for GPUs are built where they are asked for, by CUDA's "
            f"nvcc; install that, then: {build_gpu_kernels()}"
        )
    import tensorflow as tf

    try:
        return tf.load_op_library(str(path))
    except (tf.errors.OpError, RuntimeError, OSError) as error:
        raise NativeError(
            f"{path} cannot be loaded into TensorFlow {tf.version.VERSION}: {error}; "
            f"rebuild it: {build_gpu_kernels()}"
        ) from error


def _declared(loaded: Any, stamp: Stamp) -> Any:
    """The loaded library, each of its C functions with result and arguments declared."""
    signatures = {**_SIGNATURES, **(_OF_EXECUTORS if stamp.executors else {})}
    signatures |= _OF_DENSE if stamp.dense else {}
    for name, (result, *arguments) in signatures.items():
        try:
            function = getattr(loaded, name)
        except AttributeError as error:
            raise NativeError(
                f"the native library has no function {name!r}: it was built from other sources "
                f"than this Workbench; rebuild it: {rebuild()}"
            ) from error
        function.restype, function.argtypes = result, arguments
    return loaded
