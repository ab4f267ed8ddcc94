"""`%%workbench`: a notebook's cell that builds a step, measured, traced or shown in the panel."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from typing import Any, NoReturn

from IPython.core.error import UsageError

import workbench
from workbench.cli.arguments import (
    add_own,
    count,
    joined,
    require_toggles,
    seconds,
    toggle_or_own,
)
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.core.toggles.toggle import Toggle
from workbench.errors import OptionError
from workbench.experiments.program.function_program import AnyProgram
from workbench.experiments.program.own.cell_program import (
    program_of_cell,
    require_reads,
    toggles_of_cell,
)
from workbench.experiments.program.toggles import JOINED, TOGGLES, optimizations_of

_DESCRIPTION = """Measure the cell without and with optimizations, each in a child process of its
own. The cell is the body of the program: it defines train_op, and loss if it has one, in the graph
of a session; or step, a tf.function, and dataset; or model, a compiled Keras model, and dataset. A
graph sees what is switched on as `optimizations`, as in
`if optimizations.stage: batch = wb.staged(batch, optimizations.stage)`. Any cell reads the choice
of a toggle of its own, such as `--own dim=16,32`, as `optimizations["dim"]`. The notebook's own
functions and variables are there as far as the cell uses them."""


def register(shell: Any) -> None:
    """Adds the magic to an IPython shell."""

    def magic(line: str, cell: str) -> Any:
        return run_cell(shell, line, cell)

    magic.__doc__ = _parser().format_help()
    shell.register_magic_function(magic, "cell", "workbench")


def run_cell(shell: Any, line: str, body: str) -> Any:
    """Runs the magic; returns what it shows.

    Args:
      shell: IPython's.
      line: what stands behind `%%workbench`.
      body: the cell without its first line.

    Raises:
      UsageError: a mistake in the line.
      WorkbenchError: as `compare`, `trace` and `predict`.
    """
    chosen = options_of(line)
    # The line of the magic itself: what stands below it keeps its number.
    source = "\n" + shell.transform_cell(body)
    number = len(shell.user_ns.get("In", ())) - 1
    filename = shell.compile.cache(source, number)
    program = program_of_cell(source, filename, shell.user_ns, chosen.name)
    require_reads(program, chosen.own)
    result = _result_of(program, chosen)
    if chosen.out:
        shell.user_ns[chosen.out] = result
    return result


def _result_of(program: AnyProgram, chosen: argparse.Namespace) -> Any:
    if chosen.panel:
        return _panel(program, chosen.own)
    if chosen.trace or chosen.predict:
        return _traced(program, chosen)
    from workbench.experiments.comparison.compare import compare

    named = [*(chosen.toggle or ()), *chosen.own]
    toggles = None if chosen.all else named or toggles_of_cell(program)
    stage, smart_stage = _stages(chosen)
    baseline = None
    if chosen.baseline:
        baseline = optimizations_of(chosen.baseline, stage, smart_stage, chosen.own)
    return compare(
        program,
        toggles,
        all=chosen.all,
        baseline=baseline,
        stage=stage,
        smart_stage=smart_stage,
        budget_s=chosen.budget,
        trace_steps=chosen.steps,
        step_stats=chosen.step_stats,
        equivalence_steps=chosen.equivalence_steps,
        verify=chosen.verify,
        seed=chosen.seed,
        command=chosen.command,
        progress=not chosen.quiet,
    )


def _traced(program: AnyProgram, chosen: argparse.Namespace) -> Any:
    from workbench.experiments.comparison.trace import trace
    from workbench.experiments.what_if.predict import predict

    shown = not chosen.quiet
    stage, smart_stage = _stages(chosen)
    if chosen.predict:
        taken = trace(program, steps=max(1, chosen.steps), progress=shown)
        return predict(
            taken, program, chosen.toggle, stage=stage, smart_stage=smart_stage, progress=shown
        )
    optimizations = joined(chosen.toggle, stage, smart_stage, chosen.own)
    return trace(
        program, optimizations, steps=chosen.steps, step_stats=chosen.step_stats, progress=shown
    )


def _panel(program: AnyProgram, own: Sequence[Toggle]) -> Any:
    panel = getattr(workbench, "Workbench", None)
    if panel is None:
        raise OptionError("this version of Workbench has no panel; leave out --panel")
    return panel(program, toggles=own)


def _stages(chosen: argparse.Namespace) -> tuple[StageOptions, SmartStageOptions]:
    threads, capacity = chosen.threads, chosen.capacity
    return (
        StageOptions(num_threads=threads or 1, capacity=capacity or 1),
        SmartStageOptions(num_threads=threads, capacity=capacity, reorder=(threads or 1) > 1),
    )


def options_of(line: str) -> argparse.Namespace:
    """The options of a line behind `%%workbench`.

    Raises:
      UsageError: a mistake in it.
    """
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise UsageError(f"%%workbench: {error}") from None
    chosen = _parser().parse_args(words)
    if chosen.out and not chosen.out.isidentifier():
        raise UsageError(f"%%workbench: -o {chosen.out!r} is no name of a variable")
    others = [name for name in ("all", "predict") if getattr(chosen, name)]
    if chosen.own and others:
        raise UsageError(
            "%%workbench: --own is measured, traced with --trace, or shown with --panel; leave out "
            f"--{others[0]}"
        )
    try:
        names = [*(chosen.toggle or ()), *filter(None, [chosen.baseline])]
        require_toggles(names, chosen.own)
    except OptionError as error:
        raise UsageError(f"%%workbench: {error}") from None
    chosen.command = f"%%workbench {line}".rstrip()
    return chosen


class _Parser(argparse.ArgumentParser):
    """Says what is wrong as IPython does, and ends nothing."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"%%workbench: {message}; %%workbench? shows all options")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="%%workbench", description=_DESCRIPTION, add_help=False)
    toggles = parser.add_mutually_exclusive_group()
    toggles.add_argument(
        "--toggle",
        action="append",
        type=toggle_or_own,
        metavar="NAME",
        help=f"an optimization to switch on: {', '.join(TOGGLES)}, {JOINED}; may "
        "stand several times (default: smart_stage, and stage where a graph uses optimizations)",
    )
    toggles.add_argument("--all", action="store_true", help="measure every optimization")
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--trace", action="store_true", help="trace a few steps with all toggles together instead"
    )
    what.add_argument(
        "--predict", action="store_true", help="predict what each toggle would give instead"
    )
    what.add_argument("--panel", action="store_true", help="open the panel instead")
    parser.add_argument(
        "--baseline",
        type=toggle_or_own,
        metavar="NAME",
        help="compare with this (default: all off)",
    )
    add_own(parser)
    parser.add_argument("--threads", type=count, metavar="N", help="prefetch threads of a stage")
    parser.add_argument("--capacity", type=count, metavar="N", help="items a stage's buffer holds")
    parser.add_argument(
        "--budget", type=seconds, default=60.0, metavar="TIME", help="60s, 2min (default 60s)"
    )
    parser.add_argument(
        "--steps", type=_number, default=30, metavar="N", help="steps to trace (default 30)"
    )
    parser.add_argument(
        "--step-stats", action="store_true", help="trace with TensorFlow's own step stats"
    )
    parser.add_argument(
        "--equivalence-steps",
        type=_number,
        default=200,
        metavar="N",
        help="steps whose losses are compared (default 200; 0: none)",
    )
    parser.add_argument(
        "--verify", action="store_true", help="compare fused parts with the graph's own nodes"
    )
    parser.add_argument("--seed", type=_number, default=0, metavar="N", help="of the bootstrap")
    parser.add_argument("--name", default="cell", help="what results call the program")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    parser.add_argument("-o", "--out", metavar="VARIABLE", help="keep the result in a variable")
    return parser


def _number(text: str) -> int:
    return 0 if text == "0" else count(text)
