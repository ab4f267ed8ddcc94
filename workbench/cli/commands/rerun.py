"""`workbench rerun`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.cli.answers import say, show
from workbench.cli.arguments import seconds
from workbench.cli.results import require_writable_results, saved_comparisons, write_results
from workbench.cli.signals import loaded
from workbench.errors import OptionError, one_line
from workbench.experiments.program.own.program_place import is_place
from workbench.models import MODELS, program_again

if TYPE_CHECKING:
    from workbench.experiments.comparison.results import Comparison
    from workbench.experiments.program.configuration import Configuration
    from workbench.experiments.program.function_program import AnyProgram
    from workbench.experiments.regression.earlier import Earlier

_EXAMPLES = """examples:
  workbench rerun report.html
  workbench rerun results --budget 2min
  workbench rerun report.html --program my_model.py:build

A variant holds where the verdict is the same as then, and the two ratios do not differ clearly, or
differ by more of the same. Exit codes: 0 it holds or is not clear, 1 a variant no longer holds, 2 a
mistake or a failed run.

A report may come from anybody: of what it names, only the six models run by themselves. A program
of your own runs where you name it with --program.
"""


def add_rerun(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    rerun = commands.add_parser(
        "rerun",
        help="measure what a report shows again, and say whether it still holds",
        description="Measure what a report shows again, and say whether it still holds.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    rerun.add_argument(
        "report", type=Path, metavar="REPORT", help="a report, or a directory of saved results"
    )
    rerun.add_argument(
        "--program",
        metavar="PLACE",
        help="the program to run, as in my_model.py:build (default: the model that the report "
        "names)",
    )
    rerun.add_argument("--data", type=Path, metavar="FILE", help="where the model's data lies now")
    rerun.add_argument(
        "--budget", type=seconds, metavar="TIME", help="time for each comparison (default: as then)"
    )
    rerun.add_argument(
        "--out",
        type=Path,
        default=Path("rerun"),
        metavar="DIR",
        help="where the new results go (default rerun)",
    )
    rerun.add_argument(
        "--traceback", action="store_true", help="when a run fails, show its traceback"
    )
    rerun.set_defaults(run=_rerun)


def _rerun(chosen: argparse.Namespace) -> int:
    from workbench.experiments.regression.rerun import measured_again
    from workbench.viz.comparison.rerun_text import rerun_text
    from workbench.viz.documents import document

    loaded()
    earlier = _earlier(chosen.report)
    names = [f"comparison-{number}" for number in range(1, len(earlier) + 1)]
    require_writable_results(chosen.out, names)
    # All of them before the first is measured.
    programs = [_program(each.configuration, chosen) for each in earlier]
    comparisons, standings = [], set()
    for then, program, name in zip(earlier, programs, names, strict=True):
        now = _measured(then.configuration, program, chosen)
        comparisons.append(now)
        again = measured_again(then.ratios, now.ratios)
        standings |= {each.standing for each in again}
        show(now)
        words = rerun_text(again, then.environment, now.environment)
        show({"kind": "rerun", "variants": list(map(document, again))}, f"\n{words}\n")
        now.save(chosen.out / name)
    write_results(comparisons, chosen.out)
    return 1 if "no longer" in standings else 0


def _earlier(path: Path) -> list[Earlier]:
    from workbench.experiments.regression.earlier import earlier_of, earlier_results

    if path.is_dir():
        return [earlier_of(comparison) for comparison in saved_comparisons(path)]
    return earlier_results(path)


def _program(configuration: Configuration, chosen: argparse.Namespace) -> AnyProgram:
    """The program of a configuration: one of the six models, or what the user names.

    Raises:
      OptionError: the program is the user's own, and they do not name it.
      DataError, OutputError, RunError: as `chosen_program`.
    """
    from workbench.experiments.worker.found_program import found_program

    if chosen.program is not None:
        if not is_place(chosen.program):
            raise OptionError(
                f"--program is {one_line(chosen.program)!r}; expected a place, as in "
                "my_model.py:build"
            )
        return found_program(chosen.program)
    origin = configuration.origin
    if origin is not None and origin.model in MODELS:
        return program_again(origin.model, origin.options, chosen.data)
    name = one_line((origin.place or origin.model) if origin else configuration.program)
    raise OptionError(
        f"the report is of {name!r}, which is none of the models {', '.join(MODELS)}. A report may "
        "come from anybody, so what it names does not run by itself: name the program that is to "
        "run, as in --program my_model.py:build"
    )


def _measured(
    configuration: Configuration, program: AnyProgram, chosen: argparse.Namespace
) -> Comparison:
    from workbench.experiments.comparison.compare import compare

    baseline, *others = configuration.settings
    labels = ", ".join(each.label() for each in configuration.settings)
    say(f"Measuring {one_line(program.name)} again: {labels}")
    return compare(
        program,
        others,
        baseline=baseline,
        budget_s=chosen.budget or configuration.budget_s,
        trace_steps=configuration.trace_steps,
        step_stats=configuration.step_stats,
        equivalence_steps=configuration.equivalence_steps,
        verify=configuration.verify,
        stop_when_clear=configuration.stop_when_clear,
        progress=not chosen.quiet,
        seed=configuration.seed,
        command=chosen.command_line,
    )
