"""MODELS: the six models by name, and what makes a program of one.

Importing this loads neither TensorFlow nor NumPy; calling an entry of MODELS loads NumPy.
"""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.core.options import require_at_least
from workbench.errors import DataError, OptionError

if TYPE_CHECKING:
    from workbench.experiments.program.program import Program
    from workbench.models.data.table_format import CheckedTable

    Data = str | os.PathLike[str] | CheckedTable | None

_GENERATED_ROWS = 20_000
_MOST_ROWS = 1_000_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class Model:
    """A model of the zoo, as a command line or a notebook needs it.

    Attributes:
      options: the class of its options, a `ModelOptions` with defaults of its own.
      program: its options → its Program.
      generate: (path, rows=…, seed=…) → a file to read.
      check: (path, rows=…) → the checked file.
      log: what a file to read is called, such as "click log".
      file_name: of a generated file, to which its rows and seed are added.
    """

    options: type[Any]
    program: Callable[[Any], Program]
    generate: Callable[..., Path]
    check: Callable[..., CheckedTable]
    log: str
    file_name: str

    def generated(self, home: Path, *, rows: int, seed: int) -> CheckedTable:
        """A generated file in a directory; what is there already is not made again.

        Raises:
          DataError: rows or seed is out of range, or another file is in the way.
          OutputError: it cannot be written.
        """
        name = Path(self.file_name)
        path = home / f"{name.stem}-{rows}-{seed}{name.suffix}"
        checked = self.check(self.generate(path, rows=rows, seed=seed))
        return dataclasses.replace(checked, generated=True)


def _criteo(options: type[Any], program: Callable[[Any], Program]) -> Model:
    from workbench.models.data.criteo import check_criteo, generate_criteo

    return Model(
        options=options,
        program=program,
        generate=generate_criteo,
        check=check_criteo,
        log="click log",
        file_name="clicks.tsv",
    )


def _sequences(options: type[Any], program: Callable[[Any], Program], *, negatives: bool) -> Model:
    from workbench.models.data import taobao

    return Model(
        options=options,
        program=program,
        generate=functools.partial(taobao.generate_sequences, negatives=negatives),
        check=functools.partial(taobao.check_sequences, negatives=negatives),
        log="log of sequences",
        file_name="sequences-passed-over.tsv" if negatives else "sequences.tsv",
    )


def _dlrm() -> Model:
    from workbench.models.zoo.options import DlrmOptions
    from workbench.models.zoo.programs import dlrm_program

    return _criteo(DlrmOptions, dlrm_program)


def _deepfm() -> Model:
    from workbench.models.zoo.options import DeepFmOptions
    from workbench.models.zoo.programs import deepfm_program

    return _criteo(DeepFmOptions, deepfm_program)


def _wdl() -> Model:
    from workbench.models.zoo.options import WdlOptions
    from workbench.models.zoo.programs import wdl_program

    return _criteo(WdlOptions, wdl_program)


def _dssm() -> Model:
    from workbench.models.data.taobao import check_dssm, generate_dssm
    from workbench.models.zoo.options import DssmOptions
    from workbench.models.zoo.programs import dssm_program

    return Model(
        options=DssmOptions,
        program=dssm_program,
        generate=generate_dssm,
        check=check_dssm,
        log="log of advertisements",
        file_name="advertisements.csv",
    )


def _din() -> Model:
    from workbench.models.zoo.options import DinOptions
    from workbench.models.zoo.programs import din_program

    return _sequences(DinOptions, din_program, negatives=False)


def _dien() -> Model:
    from workbench.models.zoo.options import DienOptions
    from workbench.models.zoo.programs import dien_program

    return _sequences(DienOptions, dien_program, negatives=True)


# Each is a function, so that a name costs nothing until the model is asked for.
MODELS: dict[str, Callable[[], Model]] = {
    "dlrm": _dlrm,
    "deepfm": _deepfm,
    "wdl": _wdl,
    "dssm": _dssm,
    "din": _din,
    "dien": _dien,
}


def program_of(name: str, data: Data, rows: int | None, options: Mapping[str, Any]) -> Program:
    """The program of a model.

    Args:
      name: one of MODELS.
      data, rows: as of `dlrm`.
      options: the other options of the model, by name.

    Raises:
      OptionError: as `dlrm`, and no such option, or one of another type.
      DataError, OutputError: as `dlrm`.
    """
    model = MODELS[name]()
    _require_options(name, model, options)
    checked = _checked(model, data, rows, options["seed"])
    return model.program(model.options(data=checked, **options))


_MOST_GENERATED_ROWS = 10_000_000


def program_again(name: str, options: Mapping[str, Any], data: Path | None = None) -> Program:
    """The program of a model, as an `Origin` tells it; the file may come from anybody.

    Args:
      name: one of MODELS.
      options: of the origin.
      data: where the model's data lies now; None looks where it lay.

    Raises:
      DataError: there is no such option, or one out of range; the data cannot be read.
      OutputError: generated data cannot be written.
    """
    others = {key: value for key, value in options.items() if key not in ("data", "rows")}
    path, rows = data or options.get("data"), options.get("rows")
    if not isinstance(rows, int) or (path is None and rows > _MOST_GENERATED_ROWS):
        raise DataError(f"its configuration says {rows!r} rows; expected at most 10 million")
    try:
        return program_of(name, path, rows, {"seed": 1, **others})
    except OptionError as error:
        raise DataError(f"its configuration is damaged: {error}") from None


def _require_options(name: str, model: Model, options: Mapping[str, Any]) -> None:
    defaults = {field.name: field.default for field in dataclasses.fields(model.options)}
    for option, value in options.items():
        default = defaults.get(option)
        if not isinstance(default, int | float):
            raise OptionError(f"{name} has no option {option!r}")
        kind = int if isinstance(default, int) else int | float
        if isinstance(value, bool) or not isinstance(value, kind):
            expected = "a whole number" if kind is int else "a number"
            raise OptionError(f"{option} is {value!r}; expected {expected}")


def _checked(model: Model, data: Data, rows: int | None, seed: int) -> CheckedTable:
    from workbench.files.user_cache import user_cache
    from workbench.models.data.table_format import CheckedTable

    if isinstance(data, CheckedTable):
        if rows is not None:
            raise OptionError(
                f"rows is {rows!r}, and data is a table of which {data.rows} rows are checked; "
                "leave rows out, or give the path of the file"
            )
        return data
    if rows is not None:
        require_at_least("rows", rows, 1)
    if data is None:
        home = user_cache() / "data"
        return model.generated(home, rows=rows or _GENERATED_ROWS, seed=seed)
    if not isinstance(data, str | os.PathLike):
        raise OptionError(f"data is {data!r}; expected a path, a checked table or None")
    return model.check(Path(data), rows=rows or _MOST_ROWS)
