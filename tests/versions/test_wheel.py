"""A wheel in an environment that has nothing else: no compiler, no checkout, no other package.

`make test-versions` builds the wheel and names it in WORKBENCH_WHEEL. What is tested here is what a
user gets from pip, so nothing of this checkout is imported by what runs.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

WHEEL = os.environ.get("WORKBENCH_WHEEL", "")
CONSTRAINTS = os.environ.get("WORKBENCH_CONSTRAINTS", "")

pytestmark = [
    pytest.mark.skipif(not WHEEL, reason="WORKBENCH_WHEEL names no wheel; run make test-versions"),
    pytest.mark.timeout(900),
    pytest.mark.xdist_group("wheel"),
]

Run = Callable[..., subprocess.CompletedProcess[str]]

_NOTEBOOK = """
import json, shutil, sys
import nbclient, nbformat

cells = [
    "import workbench as wb",
    "model = wb.models.dlrm(rows=2_000, batch_size=64)",
    "panel = wb.Workbench(model)\\npanel",
    "wb.compare(model, toggles=['stage'], budget_s=1, trace_steps=4, equivalence_steps=2)",
]
notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
nbclient.NotebookClient(notebook, timeout=600).execute()
shown = [[sorted(o.data) for o in cell.outputs if "data" in o] for cell in notebook.cells]
compilers = [name for name in ("cc", "c++", "g++", "gcc", "clang", "cmake") if shutil.which(name)]
print(json.dumps({"shown": shown, "compilers": compilers}))
"""


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """An environment with the wheel and what pip installs with it; large, so gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="workbench-empty-") as name:
        folder = Path(name)
        subprocess.run([sys.executable, "-m", "venv", str(folder / "env")], check=True)
        command = [str(folder / "env/bin/pip"), "install", "--quiet", WHEEL]
        if CONSTRAINTS:
            command += ["--constraint", CONSTRAINTS]
        subprocess.run(command, check=True, cwd=folder, timeout=840)
        yield folder


@pytest.fixture(scope="module")
def run(home: Path) -> Run:
    """Runs a program of that environment, which sees nothing but it."""

    def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(home / "env/bin" / program), *arguments],
            cwd=home,
            env={
                "PATH": str(home / "env/bin"),
                "HOME": str(home),
                "TF_CPP_MIN_LOG_LEVEL": "2",
                "LANG": "C.UTF-8",
            },
            capture_output=True,
            text=True,
            timeout=600,
        )

    return run


def metadata() -> Message:
    with zipfile.ZipFile(WHEEL) as wheel:
        (name,) = [each for each in wheel.namelist() if each.endswith(".dist-info/METADATA")]
        return Parser().parsestr(wheel.read(name).decode())


def stamp() -> dict[str, object]:
    with zipfile.ZipFile(WHEEL) as wheel:
        return json.loads(wheel.read("workbench/_workbench.json"))


def test_it_requires_the_tensorflow_that_it_was_built_for():
    version = str(stamp()["tensorflow"])
    major, minor = re.findall(r"\d+", version)[:2]
    requirements = metadata().get_all("Requires-Dist") or []
    (tensorflow,) = [each for each in requirements if each.startswith("tensorflow")]
    final = f"tensorflow<{major}.{int(minor) + 1},>={major}.{minor}"
    candidate = f"tensorflow=={version}"
    assert tensorflow.replace(" ", "") == (candidate if "rc" in version else final)
    assert metadata()["Version"].endswith(f"+tf{major}.{minor}")
    assert "Dynamic" not in metadata()


def test_its_tag_holds_for_every_python_3():
    assert re.fullmatch(r"recsys_workbench-.*-py3-none-manylinux_2_\d+_\w+\.whl", Path(WHEEL).name)


def test_the_environment_is_whole(run: Run):
    done = run("pip", "check")
    assert done.returncode == 0, done.stdout


def test_the_demo_trains_dlrm(run: Run, home: Path):
    done = run("workbench", "demo", "--rows", "4000", "--budget", "2s", "--out", "demo")
    assert done.returncode == 0, done.stderr[-3000:]
    # Which one is faster in two seconds is not asked: the other programs of a machine decide it.
    assert done.stdout.count("\ndlrm: ") == 2
    report = (home / "demo/report.html").read_text()
    assert "<title>Workbench" in report
    assert "Smart stage" in report


def test_a_notebook_opens_the_panel_and_runs_dlrm(run: Run, home: Path):
    (home / "notebook.py").write_text(_NOTEBOOK)
    done = run("python", "notebook.py")
    assert done.returncode == 0, done.stderr[-3000:]
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["compilers"] == []
    _, _, panel, comparison = said["shown"]
    assert any("application/vnd.jupyter.widget-view+json" in kinds for kinds in panel)
    assert any("text/html" in kinds for kinds in comparison)


def test_another_tensorflow_is_refused_in_one_line_with_the_remedy(run: Run):
    found = run("python", "-c", "from workbench import _native; print(_native.library_path())")
    path = Path(found.stdout.strip()).with_name("_workbench.json")
    whole = path.read_text()
    path.write_text(json.dumps({**json.loads(whole), "tensorflow": "2.9.1"}))
    try:
        done = run("workbench", "demo", "--rows", "4000", "--budget", "2s", "--out", "refused")
    finally:
        path.write_text(whole)
    assert done.returncode != 0
    (line,) = [each for each in done.stderr.splitlines() if "TensorFlow" in each]
    for part in ("built for TensorFlow 2.9.1", "is running", "pip install 'tensorflow==2.9.*'"):
        assert part in line
