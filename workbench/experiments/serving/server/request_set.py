"""The requests of a served model, from wherever its program says."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable
from typing import Any

from workbench.errors import DataError, OptionError
from workbench.experiments.serving.served_model import ServedModel
from workbench.experiments.serving.server.fit import fed_arrays, rows_of
from workbench.experiments.serving.server.made_requests import id_limits, made_request
from workbench.experiments.serving.server.messages import Request, RequestSet
from workbench.experiments.serving.server.request_files import file_rows, requests_of_rows
from workbench.experiments.serving.server.signature import Signature
from workbench.number_words import counted

# Rows that are read of a file.
_MOST_ROWS = 100_000


def request_set(
    program: ServedModel, meta_graph: Any, signature: Signature, rows: tuple[int, ...], count: int
) -> RequestSet:
    """Requests of each number of rows.

    Args:
      program: says where they come from.
      meta_graph, signature: what they are for.
      rows: how many rows they have; empty where a function of the user's decides.
      count: how many different ones of each.

    Raises:
      DataError: a request does not fit the signature, a file cannot be read, or none is there.
      OptionError: rows are asked of a function, which makes requests as it likes.
    """
    given = program.requests
    if callable(given):
        return _of_function(given, signature, rows, count)
    if given is not None:
        return _of_file(os.fspath(given), signature, rows, count)
    limits = id_limits(meta_graph, signature)
    return RequestSet(
        by_rows={
            size: tuple(
                fed_arrays(signature, made_request(signature, limits, size, at), "a made request")
                for at in range(count)
            )
            for size in rows
        },
        made_from=(
            "The requests were made from the signature: every id is as likely as any other, "
            "which real requests are not."
        ),
    )


def _of_function(
    function: Any, signature: Signature, rows: tuple[int, ...], count: int
) -> RequestSet:
    name = getattr(function, "__name__", "a function")
    if rows:
        raise OptionError(
            f"requests is the function {name!r}, whose requests have the rows that it gives them; "
            "leave out rows"
        )
    made = function()
    if not isinstance(made, Iterable):
        raise DataError(
            f"{name!r} returned a {type(made).__name__}; expected a generator of dicts of arrays"
        )
    requests: list[Request] = []
    for number, request in enumerate(itertools.islice(made, count)):
        requests.append(fed_arrays(signature, request, f"request {number + 1} of {name!r}"))
    if not requests:
        raise DataError(f"{name!r} yielded no request")
    sizes = {rows_of(signature, request) for request in requests}
    # Where all have as many rows, results say so.
    size = sizes.pop() if len(sizes) == 1 else 0
    return RequestSet(
        by_rows={size: tuple(requests)},
        made_from=f"{counted(len(requests), 'request')} of {name!r}, sent in turn.",
    )


def _of_file(path: str, signature: Signature, rows: tuple[int, ...], count: int) -> RequestSet:
    read = file_rows(signature, path, min(_MOST_ROWS, count * max(rows, default=1)))
    by_rows = {}
    for size in rows:
        requests = requests_of_rows(signature, read, size, count)
        by_rows[size] = tuple(
            fed_arrays(signature, request, f"{path}, request {number + 1}")
            for number, request in enumerate(requests)
        )
    return RequestSet(
        by_rows=by_rows,
        made_from=f"The requests are {counted(len(read), 'row')} of {path}, in turn.",
    )
