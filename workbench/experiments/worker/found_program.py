"""found_program(): the program that stands at a place such as "my_model.py:build"."""

from __future__ import annotations

from workbench.experiments.program.function_program import AnyProgram
from workbench.experiments.program.own.program_file import BuildAt, program_at
from workbench.experiments.program.own.program_place import program_place
from workbench.experiments.program.program import Program
from workbench.experiments.worker.process import started_workers
from workbench.experiments.worker.wire.messages import FindProgram


def found_program(text: str) -> AnyProgram:
    """The program at a place; a child process runs the file and says what stands there.

    Args:
      text: a file or module and what is taken from it, as `program_place` reads it.

    Raises:
      OptionError: nothing is there, or nothing that can be run.
      RunError: the file failed; the message begins with the user's own line.
      KeyboardInterrupt: after Ctrl-C, with the words to show; no process is left.
    """
    place = program_place(text)
    carrier = Program(name=place.short_name, build=BuildAt(place, "build"))
    with started_workers([(place.text, carrier)]) as workers:
        return program_at(place, workers[0].call(FindProgram(place=place)))
