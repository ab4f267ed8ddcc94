"""CSession: a session that was loaded from a SavedModel; CSender: sends requests to it."""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.errors import DataError, RunError
from workbench.experiments.serving.server.c_api import POINTER, Output, Status, c_api
from workbench.experiments.serving.server.tensors import array_of, pointers, tensor_of

# Calls that do nothing, to know what a call takes of Python.
_CALIBRATIONS = 500


class CSession:
    """One session of a saved model, with the feeds and fetches of a signature.

    It lives as long as its process.
    """

    def __init__(
        self,
        path: str,
        tags: Sequence[str],
        config: bytes,
        feeds: Sequence[str],
        fetches: Sequence[str],
    ) -> None:
        """Loads it, with its variables and tables, as TensorFlow Serving does.

        Args:
          path: folder of the SavedModel.
          tags: of its MetaGraph.
          config: a ConfigProto.
          feeds, fetches: names of tensors.

        Raises:
          DataError: it cannot be loaded; says what TensorFlow says.
        """
        self.api, status = c_api(), Status()
        options = self.api.TF_NewSessionOptions()
        self._graph = self.api.TF_NewGraph()
        self.api.TF_SetConfig(options, config, len(config), status.number)
        names = (ctypes.c_char_p * len(tags))(*(tag.encode() for tag in tags))
        self.pointer = self.api.TF_LoadSessionFromSavedModel(
            options, None, path.encode(), names, len(tags), self._graph, None, status.number
        )
        self.api.TF_DeleteSessionOptions(options)
        if not self.pointer:
            raise DataError(f"{path}: cannot be loaded: {status.message}")
        status.close()
        self.inputs, self.outputs = self._ends(feeds), self._ends(fetches)

    def _ends(self, tensors: Sequence[str]) -> Any:
        ends = (Output * max(1, len(tensors)))()
        for at, tensor in enumerate(tensors):
            name, _, index = tensor.partition(":")
            operation = self.api.TF_GraphOperationByName(self._graph, name.encode())
            if not operation:
                raise DataError(f"the signature names the tensor {tensor!r}, which is not there")
            ends[at] = Output(operation=operation, index=int(index or 0))
        return ends


class TensorPool:
    """Requests as tensors that lie ready, in the order of a signature's feeds.

    They live as long as their process.
    """

    def __init__(self, requests: Sequence[Sequence[np.ndarray]], kinds: Sequence[int]) -> None:
        """Makes the tensors.

        Args:
          requests: the arrays of each request.
          kinds: numbers of the TensorFlow types of the feeds.
        """
        api = c_api()
        self.feeds = len(kinds)
        self._arrays = [
            pointers(
                [tensor_of(api, values, kind) for values, kind in zip(request, kinds, strict=True)]
            )
            for request in requests
        ]
        self.arguments = [ctypes.addressof(array) for array in self._arrays]


class CSender:
    """Sends requests of a pool to a session; each client has its own.

    Attributes:
      first_error: what the first failed request said; "" where none failed.
    """

    def __init__(self, session: CSession, pool: TensorPool, fetches: int) -> None:
        """Of so many fetches."""
        self.first_error = ""
        self._status = Status()
        self._values = (POINTER * max(1, fetches))()
        self._arguments = pool.arguments
        self._run, self._delete = session.api.TF_SessionRun, session.api.TF_DeleteTensor
        self._code = session.api.TF_GetCode
        inputs, outputs, values = map(
            ctypes.addressof, (session.inputs, session.outputs, self._values)
        )
        self._before = (session.pointer, None, inputs)
        self._after = (pool.feeds, outputs, values, fetches, None, 0, None, self._status.number)
        self._api = session.api

    def send(self, number: int) -> bool:
        """Sends a request, by its number in the pool, counted round; whether it was answered."""
        arguments = self._arguments
        self._run(*self._before, arguments[number % len(arguments)], *self._after)
        if self._code(self._status.number):
            self.first_error = self.first_error or self._status.message
            return False
        for value in self._values:
            self._delete(value)
        return True

    def call_cost_ns(self) -> float:
        """CPU that Python takes for a call of so many arguments, as of one that does nothing."""
        nothing = ctypes.CFUNCTYPE(None, *self._run.argtypes)(
            ctypes.cast(self._api.TF_Version, POINTER).value or 0
        )
        costs = []
        for _ in range(_CALIBRATIONS):
            before = time.thread_time_ns()
            nothing(*self._before, 0, *self._after)
            costs.append(time.thread_time_ns() - before)
        return float(statistics.median(costs))

    def answer(self, number: int) -> list[np.ndarray]:
        """The outputs of a request.

        Raises:
          RunError: it failed.
        """
        arguments = self._arguments[number % len(self._arguments)]
        self._run(*self._before, arguments, *self._after)
        if self._status.message:
            raise RunError(self._status.message)
        outputs = [array_of(self._api, value or 0) for value in self._values]
        for value in self._values:
            self._delete(value)
        return outputs

    def close(self) -> None:
        """Frees what it holds."""
        self._status.close()
