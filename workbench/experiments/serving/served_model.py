"""ServedModel: a saved model, one of its signatures and its requests, as a program to measure."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench.errors import DataError, OptionError
from workbench.named_fields import named_fields

# A function that yields requests, or the name of a file of rows.
Requests = Callable[[], Iterable[Mapping[str, Any]]] | str | os.PathLike[str] | None
DEFAULT_SIGNATURE = "serving_default"
_ROWS = (1,)


@named_fields
@dataclasses.dataclass(frozen=True, kw_only=True)
class ServedModel:
    """A saved model as a program: `wb.served` makes one.

    Attributes:
      path: folder of the SavedModel.
      signature: that requests call.
      requests: a function that yields dicts of arrays, a TFRecord or Parquet file, or None, which
        makes requests from the signature.
      rows: how many rows requests have, one load for each; empty where a function decides.
      name: in tables and reports.
      folder: keeps a temporary SavedModel as long as this value lives.
    """

    path: str
    signature: str = DEFAULT_SIGNATURE
    requests: Requests = None
    rows: tuple[int, ...] = _ROWS
    name: str = "served model"
    folder: Any = dataclasses.field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.signature, str) or not self.signature:
            raise OptionError(f"signature is {self.signature!r}; expected a name")
        given = self.requests
        if not (given is None or callable(given) or isinstance(given, str | os.PathLike)):
            raise OptionError(
                f"requests is a {type(given).__name__}; expected a function that yields dicts of "
                "arrays, the name of a TFRecord or Parquet file, or None"
            )
        if not self.rows and not callable(given):
            raise OptionError("rows is empty; expected how many rows requests have, such as 1")
        for rows in self.rows:
            if not isinstance(rows, int) or isinstance(rows, bool) or rows < 1:
                raise OptionError(f"rows has {rows!r}; expected whole numbers from 1 on")
        if len(set(self.rows)) < len(self.rows):
            raise OptionError(f"rows is {list(self.rows)}; expected no number twice")

    def __getstate__(self) -> dict[str, Any]:
        # A child reads the folder, and must not remove it.
        return {**self.__dict__, "folder": None}


def served(
    model: Any,
    *,
    signature: str = DEFAULT_SIGNATURE,
    requests: Requests = None,
    rows: int | Sequence[int] | None = None,
    feeds: Mapping[str, Any] | None = None,
    fetches: Mapping[str, Any] | None = None,
    session: Any = None,
    name: str = "",
) -> ServedModel:
    """A model that answers requests, as a program for `wb.serve_bench`.

    Args:
      model: the folder of a SavedModel; or a concrete function; or a `tf.Graph`, with feeds and
        fetches. A function and a graph are written to a temporary SavedModel, as they are now.
      signature: which one of a SavedModel is called.
      requests: where requests come from.
        - A function without arguments that yields dicts of arrays by the names of the inputs. It
          runs in a child process.
        - A TFRecord file of tf.train.Example records, or a Parquet file: a feature or a column
          for each input.
        - None makes requests from the signature, and the result says so.
      rows: how many rows requests have; of several numbers each is a load of its own. None is 1.
        A function makes requests as large as it likes, and takes no rows.
      feeds, fetches: of a graph, tensors by the names that requests and answers have.
      session: of a graph, the v1 session that holds its variables. None initializes them.
      name: in tables; "" takes that of the folder or the function.

    Raises:
      OptionError: another kind of model, or an argument that does not fit it.
      DataError: the folder is not there.
    """
    has_ends = feeds is not None or fetches is not None
    folder: Any = None
    if isinstance(model, str | os.PathLike):
        if has_ends or session is not None:
            raise OptionError("feeds, fetches and session are for a graph; a SavedModel has them")
        path = os.path.abspath(os.fspath(model))
        if not os.path.isdir(path):
            raise DataError(f"{path}: is no SavedModel: there is no such folder")
    else:
        from workbench.experiments.serving import temporary_model

        if hasattr(model, "as_graph_def") and not hasattr(model, "structured_input_signature"):
            folder = temporary_model.of_graph(model, feeds, fetches, session)
        elif has_ends or session is not None:
            raise OptionError("feeds, fetches and session are for a graph; a function has them")
        else:
            folder = temporary_model.of_function(model)
        path, name = temporary_model.path_in(folder), name or temporary_model.name_of(model)
        signature = DEFAULT_SIGNATURE
    return ServedModel(
        path=path,
        signature=signature,
        requests=requests,
        rows=_rows(rows, is_function=callable(requests)),
        name=name or Path(path).name,
        folder=folder,
    )


def _rows(rows: int | Sequence[int] | None, *, is_function: bool) -> tuple[int, ...]:
    if is_function:
        if rows is not None:
            raise OptionError(
                f"rows is {rows!r}, and requests is a function, whose requests have the rows that "
                "it gives them; leave out rows"
            )
        return ()
    if rows is None:
        return _ROWS
    return (rows,) if isinstance(rows, int) else tuple(rows)
