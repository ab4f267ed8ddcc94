"""TensorFlow in a child process: imported without its words about processors and missing GPUs."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator


def import_tensorflow() -> None:
    """Imports it; neither a device is looked for nor a thread of it begun."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with _held_back_stderr():
        import tensorflow as tf
    # Deprecations of graph-mode names are no news to who runs them.
    tf.get_logger().setLevel("ERROR")


def look_for_devices() -> None:
    """Has TensorFlow find its devices: on a machine without a GPU, the first look complains."""
    import tensorflow as tf

    with _held_back_stderr():
        tf.config.list_physical_devices()


def gpu_names() -> tuple[str, ...]:
    """Of the GPUs that TensorFlow sees, such as "NVIDIA H200"."""
    import tensorflow as tf

    found = tf.config.list_physical_devices("GPU")
    details = map(tf.config.experimental.get_device_details, found)
    return tuple(each.get("device_name", "GPU") for each in details)


@contextlib.contextmanager
def _held_back_stderr() -> Iterator[None]:
    """Keeps what is written to stderr to itself, unless the block fails."""
    kept = os.dup(2)
    with tempfile.TemporaryFile() as words:
        os.dup2(words.fileno(), 2)
        try:
            yield
        except BaseException:
            words.seek(0)
            os.write(kept, words.read())
            raise
        finally:
            os.dup2(kept, 2)
            os.close(kept)
