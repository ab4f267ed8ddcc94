"""A Python process in which Workbench cannot be imported, to load what was exported.

One process serves all tests of a run, for TensorFlow takes seconds to import.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

_PROGRAM = """
import importlib.abc, json, sys

class Blocker(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "workbench":
            raise ImportError("workbench is not installed here")

sys.meta_path.insert(0, Blocker())
import numpy as np
import tensorflow as tf

try:
    import workbench
except ImportError as error:
    assert "not installed" in str(error)
else:
    raise SystemExit("workbench could be imported")

def computed(folder, signature, given, session):
    if not session:
        loaded = tf.saved_model.load(folder)
        given = {name: tf.constant(value) for name, value in given.items()}
        results = loaded.signatures[signature](**given)
        return {name: value.numpy() for name, value in results.items()}
    with tf.Graph().as_default(), tf.compat.v1.Session() as held:
        meta = tf.compat.v1.saved_model.load(held, ["serve"], folder)
        known = meta.signature_def[signature]
        fed = {known.inputs[name].name: value for name, value in given.items()}
        return held.run({name: info.name for name, info in known.outputs.items()}, fed)

def answered(folder, signature, feeds, out, session):
    given = dict(np.load(feeds, allow_pickle=True))
    given = {name: value.astype(object) if value.dtype.kind in "SU" else value
             for name, value in given.items()}
    results = computed(folder, signature, given, session)
    np.savez(out, **{name: value.view(np.uint16) if value.dtype.name == "bfloat16" else value
                     for name, value in results.items()})
    return {name: str(value.dtype) for name, value in results.items()}

for line in sys.stdin:
    try:
        answer = answered(*json.loads(line))
    except Exception as error:
        answer = f"{type(error).__name__}: {error}"
    print("answer", json.dumps(answer), flush=True)
"""


class StockError(Exception):
    """What stock TensorFlow said when it loaded or ran a model."""


def stock_outputs(
    folder: Path,
    feeds: Mapping[str, Any],
    scratch: Path,
    *,
    signature: str = "serving_default",
    session: bool = False,
) -> dict[str, np.ndarray]:
    """What stock TensorFlow computes by a SavedModel, without Workbench.

    Args:
      folder: the SavedModel.
      feeds: the inputs of the signature by name.
      scratch: a folder for files between the processes.
      signature: its name.
      session: whether a session of `tf.compat.v1` loads it.

    Raises:
      StockError: TensorFlow cannot load or run it.
    """
    fed, out = scratch / "feeds.npz", scratch / "results.npz"
    np.savez(fed, **{name: np.asarray(value) for name, value in feeds.items()})
    asked = json.dumps([str(folder), signature, str(fed), str(out), session])
    process = _process()
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(f"{asked}\n")
    process.stdin.flush()
    line = next((line for line in process.stdout if line.startswith("answer ")), None)
    assert line is not None, "the process without Workbench has ended"
    kinds = json.loads(line.partition(" ")[2])
    if isinstance(kinds, str):
        raise StockError(kinds)
    with np.load(out, allow_pickle=True) as arrays:
        return {
            name: arrays[name].view(ml_dtypes.bfloat16) if kind == "bfloat16" else arrays[name]
            for name, kind in kinds.items()
        }


@functools.cache
def _process() -> subprocess.Popen[str]:
    """The process, in a folder without the repository and an environment that names none."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM],
        env={**kept, "TF_CPP_MIN_LOG_LEVEL": "3"},
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    atexit.register(process.kill)
    return process
