"""Every example of the README and of docs/ runs, and every command in them exists."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys

import pytest

from tests.builders.doc_examples import CONTEXTS, HOME, PAGES, examples, script_of
from tests.builders.scripts import run_script
from workbench import magics
from workbench.cli.main import main
from workbench.experiments.program.own.cell_program import program_of_cell

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
# Pages with an example that names an executor policy, or reads a trace that only executors record.
EXECUTORS = {
    *("README", "README.zh-CN", "critical-path", "deeprec", "deeprec.zh-CN"),
    *("executors", "findings", "sessions", "tracing"),
}
TARGETS = set(re.findall(r"^([a-z-]+):", (HOME / "Makefile").read_text(), re.M)) | {
    file.stem.replace("_", "-") for file in (HOME / "tests/bench").glob("bench_*.py")
}


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(p, marks=pytest.mark.executors if p.stem in EXECUTORS else (), id=p.stem)
        for p in PAGES
    ],
)
def test_its_python_runs(page, tmp_path):
    found = [example for example in examples(page) if example.kind == "python"]
    assert all(example.context in CONTEXTS for example in found), "an example without its comment"
    if found:
        done = run_script(script_of(found), tmp_path)
        assert done.returncode == 0, done.stderr[-3000:]
        ran = re.findall(r"^line (\d+)$", done.stdout, re.M)
        assert ran == [str(example.line) for example in found]


@each_page
def test_its_commands_exist(page, capsys):
    kinds = {example.kind for example in examples(page)}
    assert kinds <= {"python", "bash", "ipython"}
    lines = [line for e in examples(page) if e.kind == "bash" for line in e.code.splitlines()]
    lines += re.findall(r"`((?:make|workbench) [^`]+)`", page.read_text())
    for line in lines:
        program, *arguments = shlex.split(line, comments=True)
        if program == "python3" and arguments[:2] == ["-m", "venv"]:
            continue
        if program.rpartition("/")[2] == "pip":
            shown = subprocess.run(
                [sys.executable, "-m", "pip", arguments[0], "--help"],
                capture_output=True,
                text=True,
                check=True,
            )
            known = re.findall(r"--[a-z-]+", shown.stdout)
            assert {word for word in arguments if word.startswith("--")} <= set(known), line
        elif program == "make":
            assert {word for word in arguments if "=" not in word} <= TARGETS, line
        else:
            assert program.endswith("workbench"), line
            # Parsed like any other, and stopped before it runs.
            with pytest.raises(SystemExit) as ended:
                main([*arguments, "--help"])
            assert ended.value.code == 0, line
            known = re.findall(r"--[a-z-]+", capsys.readouterr().out)
            assert {word for word in arguments if word.startswith("--")} <= set(known), line


@each_page
def test_its_cells_are_programs(page):
    cells = [example.code for example in examples(page) if example.kind == "ipython"]
    for cell in cells:
        line, _, body = cell.partition("\n")
        if line == "%load_ext workbench":
            assert body == ""
            continue
        magic, _, arguments = line.partition(" ")
        assert magic == "%%workbench"
        magics.options_of(arguments)
        program_of_cell(f"\n{body}", "<cell>", {})


@each_page
def test_its_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target
