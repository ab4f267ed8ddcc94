"""`workbench gate`, and the options of a gate that `workbench compare` takes too."""

from __future__ import annotations

import argparse
import contextlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from workbench.cli.answers import say_wrote, show
from workbench.cli.results import require_all_measured, saved_comparisons
from workbench.cli.signals import loaded
from workbench.errors import OptionError, one_line
from workbench.files.atomic_file import is_stdout, make_directory, replacing, require_writable_file

if TYPE_CHECKING:
    from workbench.experiments.comparison.results import Comparison

_STDOUT = Path("-")
_EXAMPLES = """examples:
  workbench gate results --fail-if-slower 3%
  workbench gate results --fail-if-slower 3% --against last_week/comparison --markdown summary.md

Exit codes: 0 the limit holds, 1 a variant is slower, 2 a mistake or a failed run. A variant is
slower only where its whole 95 % interval lies below the limit. Where the interval includes the
limit nothing is shown: that is said, and passes, unless --strict.
"""


def add_gate(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    gate = commands.add_parser(
        "gate",
        help="hold saved results against a limit, for pull requests",
        description="Hold saved results against a limit: fail if a variant is slower.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    gate.add_argument("results", type=Path, metavar="DIR", help="what compare wrote to")
    add_gate_options(gate)
    gate.set_defaults(run=_gate, traceback=False)


def add_gate_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--fail-if-slower",
        type=_limit,
        metavar="PERCENT",
        help="exit with 1 if a variant is slower than the baseline by more than this, as in 3%%",
    )
    parser.add_argument(
        "--against",
        type=Path,
        metavar="DIR",
        help="hold the variants against a saved comparison of the same program with the same "
        "settings, and not against the baseline",
    )
    parser.add_argument(
        "--any-machine",
        action="store_true",
        help="the saved comparison may be of another machine",
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="fail also where the interval is too wide to tell",
    )
    parser.add_argument(
        "--markdown",
        type=Path,
        metavar="FILE",
        help="write a summary for a pull request, as GitHub shows it; - writes it to stdout, and "
        "everything else to stderr",
    )


def _limit(text: str) -> float:
    found = re.fullmatch(r"(\d{1,2}(?:\.\d+)?)\s*%?", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is not a limit below 100 %, such as 3%")
    return float(found[1]) / 100


def require_gate(chosen: argparse.Namespace) -> Comparison | None:
    """Reads and checks what the gate needs before anything runs; returns the earlier comparison.

    Raises:
      OptionError: options of a gate without one.
      DataError: there is no earlier comparison.
      OutputError: the summary cannot be written.
    """
    if chosen.fail_if_slower is None:
        for name in ("against", "any_machine", "strict", "markdown"):
            if getattr(chosen, name):
                raise OptionError(
                    f"--{name.replace('_', '-')} is of a gate; say which, as in --fail-if-slower 3%"
                )
        return None
    if chosen.any_machine and not chosen.against:
        raise OptionError("--any-machine is of an earlier comparison; give it with --against DIR")
    if chosen.markdown and chosen.markdown != _STDOUT:
        require_writable_file(chosen.markdown)
    return _only(chosen.against) if chosen.against else None


def gate_code(
    chosen: argparse.Namespace, comparison: Comparison, before: Comparison | None, out: TextIO
) -> int:
    """Says whether the limit holds, writes the summary, and returns the exit code.

    Args:
      chosen: the arguments.
      comparison, before: what is held against the limit.
      out: what `--markdown -` writes to.
    """
    from workbench.experiments.regression.gate import gate, gate_against
    from workbench.experiments.regression.regressions import regressions
    from workbench.viz.comparison.gate_markdown import gate_markdown
    from workbench.viz.comparison.gate_text import gate_text

    limit, strict = chosen.fail_if_slower, chosen.strict
    if before is None:
        verdict = gate(comparison, limit, strict=strict)
    else:
        any_machine = chosen.any_machine
        verdict = gate_against(comparison, before, limit, strict=strict, any_machine=any_machine)
    show(verdict, gate_text(verdict))
    if chosen.markdown:
        longer = regressions(verdict, comparison, before)
        _write(chosen.markdown, gate_markdown(verdict, comparison, longer), out)
    return 0 if verdict.passed else 1


@contextlib.contextmanager
def words_aside(chosen: argparse.Namespace) -> Iterator[TextIO]:
    """Sends what is printed to stderr where the summary alone is for stdout, which it hands out."""
    stdout = sys.stdout
    alone = chosen.markdown and (chosen.markdown == _STDOUT or is_stdout(chosen.markdown))
    with contextlib.redirect_stdout(sys.stderr if alone else stdout):
        yield stdout


def _gate(chosen: argparse.Namespace) -> int:
    loaded()
    if chosen.fail_if_slower is None:
        raise OptionError("a gate needs a limit, as in --fail-if-slower 3%")
    with words_aside(chosen) as out:
        before = require_gate(chosen)
        comparison = _only(chosen.results)
        code = gate_code(chosen, comparison, before, out)
        require_all_measured(comparison)
        return code


def _only(directory: Path) -> Comparison:
    found = saved_comparisons(directory)
    if len(found) > 1:
        raise OptionError(
            f"{one_line(str(directory))} holds {len(found)} comparisons; give the directory of one"
        )
    return found[0]


def _write(path: Path, text: str, out: TextIO) -> None:
    if path == _STDOUT:
        out.write(text)
        out.flush()
        return
    make_directory(path.parent)
    with replacing(path) as part:
        part.write_text(text, "utf-8")
    say_wrote(path)
