"""Arguments that several commands take, and the options that they stand for."""

from __future__ import annotations

import argparse
import dataclasses
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.cli.answers import say
from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.core.toggles.stock import STOCK
from workbench.core.toggles.toggle import Toggle
from workbench.errors import OptionError, one_line
from workbench.experiments.measurement.amounts import bytes_of, seconds_of
from workbench.experiments.program.own.program_place import is_place
from workbench.experiments.program.toggles import (
    JOINED,
    THREADS,
    TOGGLES,
    optimizations_of,
    require_free_names,
    with_usual,
)
from workbench.models import MODELS

if TYPE_CHECKING:
    from workbench.experiments.program.function_program import AnyProgram
    from workbench.models import Model
    from workbench.models.building.model_options import ModelOptions
    from workbench.models.data.table_format import CheckedTable

_MOST_ROWS = 1_000_000
GENERATED_ROWS = 200_000


_SWITCHED_ON = "an optimization to switch on (compare: stage and smart_stage, if none is given)"


def add_model(
    parser: argparse.ArgumentParser,
    switches: argparse._ActionsContainer,
    words: str = _SWITCHED_ON,
    named: Callable[[str], str] | None = None,
) -> None:
    """The arguments that say what is run; `switches` gets the toggles, described by `words`.

    Args:
      parser, switches, words: as described.
      named: what checks the name of a toggle; None is `toggle`.
    """
    parser.add_argument(
        "model",
        type=_model,
        metavar="PROGRAM",
        help=f"a model, {', '.join(MODELS)}, or a program of your own, as in my_model.py:build",
    )
    add_toggle(switches, words, named)
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--data", type=Path, metavar="FILE", help="a log in the model's format")
    source.add_argument(
        "--generate",
        type=count,
        metavar="N",
        help=f"without --data: generate a log of N rows (default {GENERATED_ROWS})",
    )
    parser.add_argument(
        "--rows",
        type=count,
        metavar="N",
        help=f"read at most the first N rows of --data (default {_MOST_ROWS})",
    )
    parser.add_argument(
        "--batch-size", type=count, metavar="N", help="(default: the model's own, 512 for dlrm)"
    )
    parser.add_argument(
        "--input-latency",
        type=latency,
        metavar="MS",
        help="let each batch wait this many ms, using no CPU; auto: as long as a step computes",
    )
    parser.add_argument(
        "--threads",
        type=count,
        default=2,
        metavar="N",
        help="prefetch threads of the stage (default 2; 1 keeps the order of batches, also in a "
        "smart stage, which chooses its own number else)",
    )
    parser.add_argument(
        "--capacity",
        type=count,
        default=2,
        metavar="N",
        help="items the stage's buffer holds (default 2; a smart stage chooses)",
    )
    add_stale_lookups(parser)
    parser.add_argument(
        "--seed", type=int, default=1, metavar="N", help="of weights and generated data (default 1)"
    )
    parser.add_argument(
        "--traceback", action="store_true", help="when a run fails, show its traceback"
    )


def add_toggle(
    parser: argparse._ActionsContainer, words: str, named: Callable[[str], str] | None = None
) -> None:
    words += f": {', '.join(TOGGLES)}, {JOINED}"
    parser.add_argument(
        "--toggle", action="append", type=named or toggle, metavar="NAME", help=words
    )


def add_own(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--own",
        action="append",
        type=own_toggle,
        default=[],
        metavar="NAME=A,B",
        help="a toggle of your own program, which reads it as optimizations['NAME']: its choices, "
        "the usual one first; each other one is measured, such as --own embedding_dim=16,32",
    )


def own_toggle(text: str) -> Toggle:
    """A toggle and its choices; numbers, true and false are no texts."""
    name, equals, choices = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} has no choices; expected NAME=A,B")
    try:
        return Toggle(name, tuple(map(_plain, choices.split(","))))
    except OptionError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _plain(text: str) -> str | int | float | bool:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def add_stale_lookups(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--stale-lookups",
        type=steps,
        default=0,
        metavar="K",
        help="with smart_stage: let lookups run ahead on rows that lack the updates of at most K "
        "steps, which is another training (default 0: exact)",
    )


def add_step_stats(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--step-stats",
        action="store_true",
        help="trace with TensorFlow's own step stats, which lengthen every step and op; without it "
        "the executor that runs the traced steps records their ops",
    )


def toggle(text: str) -> str:
    try:
        optimizations_of(text, StageOptions(), SmartStageOptions())
    except OptionError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text


def toggle_or_own(text: str) -> str:
    """A toggle, also one joined with a choice of `--own`, which may stand behind it."""
    try:
        return toggle(text)
    except argparse.ArgumentTypeError:
        known = {*TOGGLES, *THREADS, *(each.name for each in STOCK)}
        parts = [part.partition("=") for part in text.split("+")]
        if not any(name.isidentifier() and name not in known and eq for name, eq, _ in parts):
            raise
    return text


def require_toggles(toggles: Sequence[str] | None, with_choices: Sequence[Toggle]) -> None:
    """Requires that toggles can be had, with those of `--own`.

    Raises:
      OptionError: an unknown one, or a name of `--own` that another toggle has.
    """
    require_free_names(with_choices)
    for text in toggles or ():
        optimizations_of(text, StageOptions(), SmartStageOptions(), with_choices)


def joined(
    toggles: Sequence[str] | None,
    stage: StageOptions,
    smart_stage: SmartStageOptions,
    with_choices: Sequence[Toggle] = (),
) -> Optimizations:
    """All toggles together; they may name one optimization each, or the same one again."""
    names = "+".join(dict.fromkeys("+".join(toggles or ()).split("+")))
    chosen = Optimizations()
    if names:
        chosen = optimizations_of(names, stage, smart_stage, with_choices)
    return with_usual(chosen, with_choices)


def stage_options(chosen: argparse.Namespace) -> StageOptions:
    return StageOptions(num_threads=chosen.threads, capacity=chosen.capacity)


def smart_stage_options(threads: int, stale_lookups: int = 0) -> SmartStageOptions:
    """Several threads for the stage say that the order of batches does not matter."""
    return SmartStageOptions(reorder=threads > 1, stale_lookups=stale_lookups)


# Options of the models that come with this library, and what stands for them in a file.
_OF_MODELS = {
    "data": "it reads its data itself",
    "generate": "it reads its data itself",
    "rows": "it reads its data itself",
    "batch_size": "write the size of its batches in the file",
    "input_latency": "write in the file what its input waits for",
}


def _model(text: str) -> str:
    if text in MODELS:
        return text
    if not is_place(text):
        raise argparse.ArgumentTypeError(
            f"invalid choice: {text!r} (choose from {', '.join(MODELS)}, or give a program of your "
            "own, as in my_model.py:build)"
        )
    return text


def chosen_program(
    chosen: argparse.Namespace, home: Path, shard: tuple[int, int] = (0, 1)
) -> AnyProgram:
    """The program that the arguments name; a model's generated data is written to `home`.

    Args:
      chosen: the arguments.
      home: a directory.
      shard: of a model, which rows it reads, as of `CheckedTable`.

    Raises:
      OptionError: there is no such program, or an option that it has no use for.
      DataError, OutputError: a model's data cannot be read, or written.
      RunError: the user's file failed.
    """
    if chosen.model in MODELS:
        model = MODELS[chosen.model]()
        program: AnyProgram = model.program(model_options(chosen, model, home, shard))
        return program
    from workbench.experiments.worker.found_program import found_program

    _require_fitting(chosen)
    say(f"Reading {one_line(chosen.model)}")
    return found_program(chosen.model)


def _require_fitting(chosen: argparse.Namespace) -> None:
    """Refuses options of models for a program of the user's own.

    Raises:
      OptionError: names the option and says what to do.
    """
    for name, instead in _OF_MODELS.items():
        if getattr(chosen, name) is not None:
            option = f"--{name.replace('_', '-')}"
            raise OptionError(
                f"{option} is for the models {', '.join(MODELS)}, and {one_line(chosen.model)!r} "
                f"is a program of your own: {instead}"
            )


def model_options(
    chosen: argparse.Namespace, model: Model, home: Path, shard: tuple[int, int] = (0, 1)
) -> ModelOptions:
    from workbench.experiments.measurement.blocks import step_time_ms

    data = dataclasses.replace(_data(chosen, model, home), shard=shard)
    options: ModelOptions = model.options(data=data, seed=chosen.seed)
    if chosen.batch_size is not None:
        options = dataclasses.replace(options, batch_size=chosen.batch_size)
    latency_ms = chosen.input_latency or 0.0
    if latency_ms == AUTO:
        latency_ms = round(step_time_ms(model.program(options), "build_compute"), 1)
        say(f"A step computes {latency_ms} ms; each batch waits as long")
    return dataclasses.replace(options, input_latency_ms=latency_ms)


def _data(chosen: argparse.Namespace, model: Model, home: Path) -> CheckedTable:
    if chosen.data is None:
        rows = chosen.generate or GENERATED_ROWS
        data = model.generated(home, rows=rows, seed=chosen.seed)
    else:
        data = model.check(chosen.data, rows=chosen.rows or _MOST_ROWS)
    more = "; it has more, which --rows would add" if data.more else ""
    say(f"{model.log.capitalize()}: {one_line(str(data.path))}, {data.rows} rows{more}")
    return data


def count(text: str) -> int:
    digits = text.replace("_", "").replace(",", "")
    if not digits.isdecimal() or int(digits) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(digits)


def steps(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 0")
    return int(text)


def seconds(text: str) -> float:
    try:
        return seconds_of(text)
    except OptionError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 60s or 2min") from None


def size(text: str) -> int:
    """Bytes."""
    try:
        return bytes_of(text)
    except OptionError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 8GB") from None


AUTO = -1.0


def latency(text: str) -> float:
    """Milliseconds, or AUTO."""
    if text == "auto":
        return AUTO
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(?:ms)?", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is neither auto nor milliseconds such as 12.5")
    return float(found[1])
