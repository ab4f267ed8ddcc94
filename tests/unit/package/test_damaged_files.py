"""Files that come from somebody else, with faults: read, or refused in one sentence, never more.

Every reader gets as many as `WORKBENCH_FUZZ_EXAMPLES` says.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.builders.damaged_files import damaged, damaged_bytes, in_one_sentence, size
from tests.builders.examples import few
from tests.builders.plans import towers
from tests.builders.sessions import OFF, PROGRAM, SMART, STAGE, learned, measured, with_trace
from tests.builders.traces import staged_trace
from tests.conftest import EXAMPLES
from workbench.core.boundary.boundary_file import boundary_from_bytes, boundary_to_bytes
from workbench.core.executor.learned_costs import LearnedCosts, load_learned_costs
from workbench.core.planning.planner import plan_stages
from workbench.core.planning.stage_plan import StagePlan
from workbench.core.trace.trace import load_trace
from workbench.experiments.comparison.results import load_comparison
from workbench.experiments.measurement.bounds import Bound
from workbench.experiments.measurement.equivalence import Equivalence
from workbench.experiments.program.configuration import configuration_of
from workbench.experiments.regression.earlier import earlier_results
from workbench.experiments.session.load_session import load_session
from workbench.experiments.session.session import Session
from workbench.viz.panel.report import session_report_html
from workbench.viz.report import write_report

ONE_FOLDER: Any = {"suppress_health_check": [HealthCheck.function_scoped_fixture]}
FUZZED = settings(**ONE_FOLDER)
COSTLY = few(8, many=EXAMPLES, **ONE_FOLDER)
CHANCES = given(seed=st.integers(0, 2**32))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """One file of each kind, without a fault."""
    home: Path = tmp_path_factory.mktemp("whole")
    plan = plan_stages(towers())
    (home / "plan.json").write_text(plan.to_json())
    (home / "boundary.json.gz").write_bytes(boundary_to_bytes(towers()))
    staged_trace().save(home / "trace.parquet")
    compared = comparison()
    compared.save(home / "comparison")
    write_report(compared, home / "report.html")
    session = Session(PROGRAM, budget_s=7.5, trace_steps=4)
    session.add(compared, [OFF, STAGE, SMART])
    session._foreseen.known = learned()
    session.save(home / "session")
    costs().save(home / "costs.parquet")
    return home


def comparison():
    """With a trace, a plan, its boundary, checks, bounds and what measures it again."""
    found = with_trace(measured([OFF, STAGE, SMART]))
    *others, last = found.variants
    asked = configuration_of(
        PROGRAM,
        [OFF, STAGE, SMART],
        budget_s=7.5,
        trace_steps=4,
        step_stats=False,
        equivalence_steps=10,
        seed=0,
    )
    check = Equivalence(
        label=last.label,
        kind="equal losses",
        passed=True,
        steps=2,
        detail="from the same seed",
        losses=(0.5, 0.25),
        baseline_losses=(0.5, 0.25),
    )
    steps = {variant.label: 10 for variant in found.variants}
    return dataclasses.replace(
        found,
        variants=(*others, dataclasses.replace(last, plan=plan_stages(towers()))),
        equivalence=(check,),
        bounds=(Bound(name="limit", steps_per_s=80.0, detail="measured"),),
        settings={**found.settings, "steps_per_block": steps, "configuration": asked.to_json()},
    )


def costs():
    count = 20
    return LearnedCosts(
        pd.DataFrame(
            {
                "executor": np.repeat([0, 1], count // 2),
                "learned": True,
                "steps": 100,
                "node": [f"n{i}" for i in range(count)],
                "op": "MatMul",
                "device": "cpu",
                "count": 100,
                "average_ns": range(count),
                "critical_path_ns": range(count),
                "slack_ns": 0,
                "batch": -1,
                "order": "by cost",
            }
        )
    )


def show(value):
    """As a terminal and a notebook do."""
    str(value)
    value._repr_mimebundle_()


def show_comparison(home, out):
    comparison = load_comparison(home)
    show(comparison)
    comparison.to_pandas()
    comparison.plot()
    comparison.plot("blocks")
    write_report(comparison, out)


def test_the_files_are_whole(whole, tmp_path):
    show(StagePlan.from_json((whole / "plan.json").read_text()))
    show(boundary_from_bytes((whole / "boundary.json.gz").read_bytes()))
    show(load_trace(whole / "trace.parquet"))
    show_comparison(whole / "comparison", tmp_path / "report.html")
    show(load_learned_costs(whole / "costs.parquet"))
    session_report_html(load_session(whole / "session"))
    assert earlier_results(whole / "report.html")


@FUZZED
@CHANCES
def test_a_plan(whole, seed):
    text = (whole / "plan.json").read_text()
    changed = json.dumps(damaged(json.loads(text), random.Random(seed)))
    with in_one_sentence(len(changed)):
        plan = StagePlan.from_json(changed)
        plan.describe()
        show(plan)


@FUZZED
@CHANCES
def test_a_boundary(whole, seed):
    chance = random.Random(seed)
    document = json.loads(gzip.decompress((whole / "boundary.json.gz").read_bytes()))
    content = gzip.compress(json.dumps(damaged(document, chance)).encode())
    if chance.random() < 0.2:
        content = damaged_bytes(content, chance)
    with in_one_sentence(len(content)):
        boundary = boundary_from_bytes(content)
        show(boundary)
        plan_stages(boundary).describe()


@FUZZED
@CHANCES
def test_a_traces_bytes(whole, tmp_path, seed):
    path = tmp_path / "trace.parquet"
    path.write_bytes(damaged_bytes((whole / "trace.parquet").read_bytes(), random.Random(seed)))
    with in_one_sentence(size(path)):
        show(load_trace(path))


def with_notes(path, notes):
    """A trace's file with other notes."""
    file = pq.ParquetFile(path)
    table, version = file.read(), file.metadata.metadata[b"format_version"]
    with pq.ParquetWriter(path, table.schema) as out:
        out.write_table(table)
        held = json.dumps(notes).encode("utf-8", "surrogatepass")
        out.add_key_value_metadata({"format_version": version, "workbench_trace": held})


@COSTLY
@CHANCES
def test_a_traces_notes(whole, tmp_path, seed):
    path = tmp_path / "trace.parquet"
    shutil.copy(whole / "trace.parquet", path)
    notes = json.loads(pq.read_metadata(path).metadata[b"workbench_trace"])
    with_notes(path, damaged(notes, random.Random(seed)))
    with in_one_sentence(size(path)):
        show(load_trace(path))


@COSTLY
@CHANCES
def test_a_comparison(whole, tmp_path, seed):
    home = tmp_path / "comparison"
    shutil.copytree(whole / "comparison", home, dirs_exist_ok=True)
    index = json.loads((home / "comparison.json").read_text())
    (home / "comparison.json").write_text(json.dumps(damaged(index, random.Random(seed))))
    with in_one_sentence(size(home)):
        show_comparison(home, tmp_path / "report.html")


@FUZZED
@CHANCES
def test_learned_costs(whole, tmp_path, seed):
    path = tmp_path / "costs.parquet"
    path.write_bytes(damaged_bytes((whole / "costs.parquet").read_bytes(), random.Random(seed)))
    with in_one_sentence(size(path)):
        read = load_learned_costs(path)
        show(read)
        read.per_step_ns()


@COSTLY
@CHANCES
def test_a_session(whole, tmp_path, seed):
    home, chance = tmp_path / "session", random.Random(seed)
    shutil.rmtree(home, ignore_errors=True)
    shutil.copytree(whole / "session", home)
    if chance.random() < 0.8:
        index = json.loads((home / "session.json").read_text())
        (home / "session.json").write_text(json.dumps(damaged(index, chance)))
    else:
        file = chance.choice(sorted(path for path in home.rglob("*") if path.is_file()))
        file.write_bytes(damaged_bytes(file.read_bytes(), chance))
    with in_one_sentence(size(home)):
        session_report_html(load_session(home))


@FUZZED
@CHANCES
def test_a_report(whole, tmp_path, seed):
    path, chance = tmp_path / "report.html", random.Random(seed)
    text = (whole / "report.html").read_text()
    opening = '<script type="application/json" id="wb-configuration">'
    start = text.index(opening) + len(opening)
    end = text.index("</script>", start)
    changed = json.dumps(damaged(json.loads(text[start:end]), chance))
    path.write_text(text[:start] + changed.replace("<", "\\u003c") + text[end:], "utf-8")
    with in_one_sentence(size(path)):
        earlier_results(path)
