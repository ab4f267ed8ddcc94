"""What a native library was built for, whether that fits this TensorFlow, and what rebuilds it."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import re

from workbench.errors import NativeError

DISTRIBUTION = "recsys-workbench"
# The folder of this package.
PACKAGE = pathlib.Path(__file__).parent
_STAMP = "_workbench.json"
_STAMP_FORMAT = 3
_INSTALL = (
    "pip install --force-reinstall --no-deps --no-build-isolation --no-binary "
    f"{DISTRIBUTION} {DISTRIBUTION}"
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stamp:
    """What a native library was built for, read from the file beside it.

    Attributes:
      tensorflow: version of TensorFlow that it was compiled against, e.g. "2.21.0".
      cxx11_abi: TensorFlow's _GLIBCXX_USE_CXX11_ABI, 0 or 1.
      executors: whether the library has them: not for TensorFlow 2.18 and 2.19, whose packages lack
        headers that they are built with.
      dense: whether it has the kernels of native/dense, which a build may leave out.
      workbench: version of this package.
    """

    tensorflow: str
    cxx11_abi: int
    executors: bool
    dense: bool
    workbench: str


def read_stamp(library_file: pathlib.Path) -> Stamp:
    """Reads what the library was built for, without loading it.

    Raises:
      NativeError: the stamp is missing, damaged, or of a later format.
    """
    path = library_file.with_name(_STAMP)
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        version = document["format_version"]
        if version != _STAMP_FORMAT:
            raise NativeError(
                f"{path} has format_version {version}, this Workbench reads {_STAMP_FORMAT}; "
                f"rebuild the native library: {rebuild()}"
            )
        return Stamp(
            tensorflow=document["tensorflow"],
            cxx11_abi=document["cxx11_abi"],
            executors=bool(document["executors"]),
            dense=bool(document["dense"]),
            workbench=document["workbench"],
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NativeError(
            f"{path} does not say what the native library was built for "
            f"({type(error).__name__}: {error}); rebuild it: {rebuild()}"
        ) from error


def check(stamp: Stamp, *, tensorflow: str, cxx11_abi: int) -> None:
    """Refuses a library that was built for another TensorFlow than the running one.

    Releases of one minor version are alike to the library; a release candidate is alike to itself.

    Raises:
      NativeError: names both versions, or both ABIs, and the commands that make them fit.
    """
    if _interface(stamp.tensorflow) != _interface(tensorflow):
        raise NativeError(
            f"the native library was built for TensorFlow {stamp.tensorflow}, but TensorFlow "
            f"{tensorflow} is running; rebuild it: {rebuild()}, or install the one that it fits: "
            f"pip install 'tensorflow{_fitting(stamp.tensorflow)}'"
        )
    if stamp.cxx11_abi != cxx11_abi:
        raise NativeError(
            f"the native library was built with C++11 ABI {stamp.cxx11_abi}, but TensorFlow "
            f"{tensorflow} has ABI {cxx11_abi}; rebuild it: {rebuild()}"
        )


def _interface(tensorflow: str) -> str:
    """What a library may rely on: "2.20" of a release, the whole version of a candidate."""
    # A release candidate is 2.22.0-rc1 to itself and 2.22.0rc1 to pip.
    version = tensorflow.replace("-", "")
    final = re.fullmatch(r"(\d+\.\d+)\.\d+", version)
    return final[1] if final else version


def _fitting(tensorflow: str) -> str:
    """What pip is asked for to get a TensorFlow with this interface."""
    interface = _interface(tensorflow)
    return f"=={interface}.*" if re.fullmatch(r"\d+\.\d+", interface) else f"=={interface}"


def rebuild() -> str:
    """The command that builds the native library for the TensorFlow now installed."""
    return f"make -C {_checkout()} native" if _checkout() else _INSTALL


def build_gpu_kernels() -> str:
    """The command that builds the kernels for GPUs."""
    if _checkout():
        return f"make -C {_checkout()} cuda"
    return f"{_INSTALL} --config-settings cmake.define.WORKBENCH_CUDA=ON"


def _checkout() -> pathlib.Path | None:
    """The checkout in which this file lies in an editable install."""
    folder = PACKAGE.parent
    found = (folder / "Makefile").is_file() and (folder / "native").is_dir()
    return folder if found else None
