"""Runs TensorFlow's and Keras's own tests with the product underneath: `make test-peer`.

A file at a time, in a process of its own: on stock TensorFlow first, then in each mode. What fails
in a mode and not in stock runs once more alone, so that a test that fails at times is told apart.
Ends with 1 where a test that stock passes fails, or a plan could not be made.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.peer import keras_files
from tests.peer.comparison import compare, listed_texts
from tests.peer.modes import MODEL_MODES, SESSION_MODES, STOCK, mode_named
from tests.peer.records import PASSED, FileRun, load_run, read_record
from tests.peer.report import line, run_path, save, table, totals
from tests.peer.source_folder import runfiles

_HERE = Path(__file__).parent
_ROOT = _HERE.parent.parent
TIERS = {path.stem: path for path in sorted((_HERE / "tiers").glob("*.txt"))}
_NO_FOLDER = (
    "TF_TESTS names no folder with TensorFlow's tests (tensorflow/python/kernel_tests below it), "
    "so TensorFlow's own tests were not run. The sources of TensorFlow {} have them."
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Suite:
    """One collection of test files.

    Attributes:
      files: paths below `folder`.
      folder: where they lie.
      modes: in which they run.
      module: the module that runs one of them.
      more: its other arguments.
    """

    files: Sequence[str]
    folder: Path
    modes: Sequence[str]
    module: str
    more: Sequence[str] = ()


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = _parsed(arguments)
    failed = False
    for suite in _suites(chosen):
        for mode in suite.modes:
            for file in suite.files:
                failed |= _run_both(chosen, suite, mode, file)
    if not chosen.out.is_dir():
        return 0
    print("\n".join(table(totals(chosen.out))))
    print(f"All results: {save(chosen.out)}")
    return int(failed)


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tests", default="", help="a folder with TensorFlow's own tests")
    parser.add_argument("--modes", default="", help=f"of {' '.join(SESSION_MODES)} by default")
    parser.add_argument("--tiers", default="", help=f"of {' '.join(TIERS)}, or their first letters")
    parser.add_argument("--file", action="append", help="only these files of the tiers")
    parser.add_argument("--keras", action="store_true", help="also Keras's own tests")
    parser.add_argument("--packages", type=Path, help="where jax is installed for Keras's tests")
    parser.add_argument("--out", type=Path, default=_ROOT / "build/peer/results")
    parser.add_argument("--limit", type=int, default=600, help="seconds that one file may take")
    parser.add_argument("--fresh", action="store_true", help="run stock again, too")
    return parser.parse_args(arguments)


def _suites(chosen: argparse.Namespace) -> Iterator[Suite]:
    asked = chosen.modes.split() or [*SESSION_MODES, *MODEL_MODES]
    for mode in asked:
        mode_named(mode)
    folder = Path(chosen.tests or "/nowhere").expanduser()
    if (folder / "tensorflow/python/kernel_tests").is_dir():
        for tier in _tiers(chosen.tiers.split()):
            yield Suite(
                files=_listed(tier, chosen.file),
                folder=folder.resolve(),
                modes=[mode for mode in asked if mode not in MODEL_MODES],
                module="tests.peer.run_file",
            )
    else:
        print(_NO_FOLDER.format(_tensorflow_version()))
    if chosen.keras:
        packages = chosen.packages.resolve() if chosen.packages else None
        yield Suite(
            files=_listed(_HERE / "keras_files.txt", chosen.file),
            folder=keras_files.folder(),
            modes=[mode for mode in asked if mode in (STOCK, *MODEL_MODES)],
            module="tests.peer.keras_files",
            more=["--packages", str(packages)] if packages else [],
        )


def _tiers(asked: Sequence[str]) -> list[Path]:
    if not asked:
        return [path for name, path in TIERS.items() if name != "quick"]
    found = []
    for name in asked:
        fits = [path for tier, path in TIERS.items() if name in (tier, tier[0].upper())]
        if not fits:
            raise SystemExit(f"no tier is named {name!r}; there are {', '.join(TIERS)}")
        found.append(fits[0])
    return found


def _listed(path: Path, only: Sequence[str] | None) -> list[str]:
    files = path.read_text().split()
    return [file for file in files if not only or any(file.endswith(each) for each in only)]


def _run_both(chosen: argparse.Namespace, suite: Suite, mode: str, file: str) -> bool:
    """Runs a file in a mode, and in stock where that was not done; whether it fails here alone."""
    if not (suite.folder / file).is_file():
        print(f"{mode:13} {file}: not there, so it was not run", flush=True)
        return False
    kept = run_path(chosen.out, STOCK, file)
    stock = None if chosen.fresh and mode == suite.modes[0] else load_run(kept)
    if stock is None:
        stock = _run(chosen, suite, STOCK, file)
        print(line(stock), flush=True)
    if mode == STOCK:
        return False
    run = _run(chosen, suite, mode, file)
    difference = compare(stock, run, listed_texts())
    if difference.new:
        run = _without_unsteady(chosen, suite, run, list(difference.new))
        difference = compare(stock, run, listed_texts())
    print(line(run, difference), flush=True)
    return bool(difference.new) or bool(run.counts.get("plan_errors"))


def _run(chosen: argparse.Namespace, suite: Suite, mode: str, file: str) -> FileRun:
    """Runs a file in a mode, and keeps the run."""
    path = run_path(chosen.out, mode, file)
    path.parent.mkdir(parents=True, exist_ok=True)
    run = _in_process(chosen, suite, mode, file, path.with_suffix(".log"), ())
    run.save(path)
    return run


def _without_unsteady(
    chosen: argparse.Namespace, suite: Suite, run: FileRun, tests: Sequence[str]
) -> FileRun:
    """The run with the tests as passed that pass when they run again alone."""
    path = run_path(chosen.out, run.mode, run.file)
    again = _in_process(chosen, suite, run.mode, run.file, path.with_suffix(".again.log"), tests)
    steady = [test for test in tests if again.outcomes.get(test) != PASSED]
    unsteady = sorted(set(tests) - set(steady))
    for test in unsteady:
        print(f"    {test} failed and passed when run again alone: {run.errors[test]}", flush=True)
    counts = {**run.counts, "passed_again": {test: run.errors[test] for test in unsteady}}
    outcomes = {**run.outcomes, **dict.fromkeys(unsteady, PASSED)}
    kept = dataclasses.replace(run, outcomes=outcomes, counts=counts)
    kept.save(path)
    return kept


def _in_process(
    chosen: argparse.Namespace,
    suite: Suite,
    mode: str,
    file: str,
    log: Path,
    tests: Sequence[str],
) -> FileRun:
    with tempfile.TemporaryDirectory(prefix="workbench-peer-") as scratch:
        place = Path(scratch)
        (place / "tmp").mkdir()
        record = place / "record.jsonl"
        command = [sys.executable, "-m", suite.module, "--mode", mode]
        command += ["--tests", str(suite.folder), "--record", str(record), *suite.more]
        command += [file, *(test for test in tests if "." in test)]
        environment = {
            **os.environ,
            **runfiles(suite.folder, place),
            "PYTHONPATH": str(_ROOT),
            "CUDA_VISIBLE_DEVICES": "",
            "TF_CPP_MIN_LOG_LEVEL": "2",
            "HOME": scratch,
            "KERAS_BACKEND": "tensorflow",
        }
        begin = time.monotonic()
        with log.open("w") as output:
            ended = _wait(command, environment, place / "tmp", output, chosen.limit)
        return read_record(
            record, file=file, mode=mode, ended=ended, seconds=time.monotonic() - begin
        )


def _wait(
    command: Sequence[str], environment: dict[str, str], place: Path, output: object, limit: int
) -> str:
    """Runs a process; says how it ended, "" where it ended by itself."""
    try:
        done = subprocess.run(
            command,
            env=environment,
            cwd=place,
            stdout=output,  # type: ignore[arg-type]
            stderr=subprocess.STDOUT,
            timeout=limit,
        )
    except subprocess.TimeoutExpired:
        return f"stopped after {limit} s"
    if done.returncode < 0:
        return f"ended by signal {-done.returncode}"
    return "" if done.returncode in (0, 1) else f"ended with {done.returncode}"


def _tensorflow_version() -> str:
    import importlib.metadata

    return importlib.metadata.version("tensorflow")


if __name__ == "__main__":
    sys.exit(main())
