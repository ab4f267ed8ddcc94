"""Results of another day: configurations that are read back, and reports that come from anybody."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.comparisons import SETTINGS, comparison
from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.errors import DataError
from workbench.experiments.comparison.measured import Ratio
from workbench.experiments.program.configuration import configuration_from, configuration_of
from workbench.experiments.program.origin import Origin, origin_from
from workbench.experiments.program.program import Program
from workbench.experiments.program.settings_json import optimizations_from, to_json
from workbench.experiments.regression.earlier import earlier_of, earlier_results
from workbench.viz.report import report_html, write_report

OFF = (Optimizations(),)
MEASURED = {
    "budget_s": 60.0,
    "trace_steps": 30,
    "step_stats": False,
    "equivalence_steps": 200,
    "seed": 7,
}
DLRM = Origin(model="dlrm", options={"data": None, "rows": 50, "batch_size": 8, "seed": 1})


def configuration(origin=DLRM, name="dlrm", settings=OFF):
    program = Program(name=name, build=lambda optimizations: None, origin=origin)
    return configuration_of(program, settings, **MEASURED)


def configured(**changes):
    return comparison(settings={**SETTINGS, "configuration": configuration(**changes).to_json()})


def travelled(document):
    return json.loads(json.dumps(document))


stages = st.builds(
    StageOptions,
    capacity=st.integers(1, 99),
    num_threads=st.integers(1, 9),
    ignored_exception_types=st.sampled_from([(), (11,), (3, 5)]),
    use_stage_subgraph_thread_pool=st.booleans(),
)
smart_stages = st.builds(
    SmartStageOptions,
    capacity=st.none() | st.integers(1, 99),
    reorder=st.booleans(),
    keep=st.sampled_from([(), ("a/b",), ("a", "b:0")]),
    include=st.sampled_from([None, (), ("a/b", "c")]),
    exclude=st.sampled_from([(), ("d",)]),
    name=st.sampled_from(["smart_stage", "mine"]),
)
every = st.builds(
    Optimizations,
    stage=st.none() | stages,
    smart_stage=st.none() | smart_stages,
    fused_embeddings=st.sampled_from([None, "v1", "v2"]),
    executor=st.sampled_from([None, "normal", "inline", "cost_model"]),
    inter_op_threads=st.none() | st.integers(1, 64),
    batch_size=st.none() | st.integers(1, 10**6),
)


@given(every)
def test_settings_are_read_back(settings):
    assert optimizations_from(travelled(to_json(settings))) == settings


def test_exception_classes_become_their_codes():
    class OutOfRangeError(Exception):
        pass

    settings = Optimizations(stage=StageOptions(closed_exception_types=(OutOfRangeError,)))
    assert to_json(settings) == {"stage": {"closed_exception_types": [11]}}


@given(st.lists(every, min_size=1, max_size=4))
def test_a_configuration_is_read_back(settings):
    made = configuration(settings=settings)
    assert configuration_from(travelled(made.to_json())) == made


@pytest.mark.parametrize("origin", [None, DLRM, Origin(place="my_model.py:build")])
def test_so_is_where_the_program_comes_from(origin):
    made = configuration(origin=origin)
    assert configuration_from(travelled(made.to_json())).origin == origin


def test_a_report_tells_what_was_found(tmp_path):
    (then,) = earlier_results(write_report(configured(), tmp_path / "report.html"))
    assert then.configuration == configuration()
    assert then.ratios == comparison().ratios
    assert then.environment["cores"] == 2
    assert then == earlier_of(configured())


def test_so_does_a_report_of_several(tmp_path):
    several = [configured(), configured(name="wdl")]
    found = earlier_results(write_report(several, tmp_path / "report.html"))
    assert [each.configuration.program for each in found] == ["dlrm", "wdl"]


def test_an_unknown_interval_travels(tmp_path):
    wide = Ratio(label="a", ratio=2.0, low=0.0, high=math.inf, verdict="no clear difference")
    made = comparison(ratios=(wide,), settings=configured().settings)
    (then,) = earlier_results(write_report(made, tmp_path / "report.html"))
    assert then.ratios == (wide,)


def test_readers_of_the_page_do_not_see_it():
    page = report_html(configured())
    assert page.count("format_version") == 2
    before, _, after = page.partition('<script type="application/json" id="wb-configuration">')
    assert "Configuration" not in before and "format_version" not in before
    assert "format_version" not in after.partition("</script>")[2]
    assert "workbench rerun</code> with this file measures it again" in before
    assert "workbench rerun" not in report_html(comparison())


def test_a_hostile_name_cannot_end_the_element(tmp_path):
    name = '</script><script>alert("x")</script><!--'
    path = write_report(configured(name=name), tmp_path / "report.html")
    assert "<script>alert" not in path.read_text("utf-8")
    (then,) = earlier_results(path)
    assert then.configuration.program == name


def test_a_file_name_that_is_no_text_travels(tmp_path):
    name = "cl\udcc3\udca9/clicks.tsv"
    origin = Origin(model="dlrm", options={"data": name, "rows": 5, "seed": 1})
    (then,) = earlier_results(write_report(configured(origin=origin), tmp_path / "report.html"))
    assert then.configuration.origin.options["data"] == name


def page(tmp_path, document, end="</script>"):
    text = document if isinstance(document, str) else json.dumps(document)
    path = tmp_path / "report.html"
    path.write_text(
        f'<p><script type="application/json" id="wb-configuration">{text}{end}', "utf-8"
    )
    return path


def good():
    return {
        "format_version": 1,
        "comparisons": [
            {"configuration": configuration().to_json(), "ratios": [], "environment": {}}
        ],
    }


def changed(*path, value):
    """The document with one value replaced."""
    document = at = good()
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return document


CONFIGURATION = ("comparisons", 0, "configuration")
BAD_RATIO = {"label": "a", "ratio": 1, "low": 2, "high": 3, "verdict": "faster"}
DAMAGED = [
    ("{", "its configuration is damaged"),
    ("[" * 100_000, "its configuration is damaged"),
    ("[]", "its configuration is damaged"),
    ({}, "has the format None, this Workbench reads 1"),
    (changed("format_version", value=2), "has the format 2, this Workbench reads 1; update it"),
    (changed("format_version", value="x" * 99), "its configuration has the format 'xxx"),
    (changed("comparisons", value=[]), "its configuration holds no comparison; measure again"),
    (changed("comparisons", value=[5]), "it holds no results"),
    (changed("comparisons", 0, "ratios", value=[BAD_RATIO]), "a ratio is none"),
    (changed("comparisons", 0, "ratios", value=[{"label": "a"}]), "a ratio is none"),
    (changed(*CONFIGURATION, value=None), "is no configuration of a comparison"),
    (changed(*CONFIGURATION, "format_version", value=9), "has the format 9, and this Workbench"),
    (changed(*CONFIGURATION, "settings", value=[]), "has no list of 1 to 64 settings"),
    (changed(*CONFIGURATION, "settings", value=[{}] * 65), "has no list of 1 to 64 settings"),
    (changed(*CONFIGURATION, "settings", value=[{"turbo": 1}]), "Optimizations has no 'turbo'"),
    (
        changed(*CONFIGURATION, "settings", value=[{"stage": {"capacity": "9"}}]),
        "StageOptions.capacity is '9'; expected int",
    ),
    (
        changed(*CONFIGURATION, "settings", value=[{"stage": {"capacity": 0}}]),
        "a setting is out of range: StageOptions.capacity is 0",
    ),
    (
        changed(*CONFIGURATION, "settings", value=[{"inter_op_threads": 10**9}]),
        "Optimizations.inter_op_threads is 1000000000; expected int | None",
    ),
    (
        changed(*CONFIGURATION, "settings", value=[{"smart_stage": {"keep": [["x"]]}}]),
        "SmartStageOptions.keep is [['x']]; expected tuple[str, ...]",
    ),
    (changed(*CONFIGURATION, "settings", value=[{"executor": "rm"}]), "no executor policy 'rm'"),
    (changed(*CONFIGURATION, "budget_s", value=1e9), "has no budget_s from 0.01 to 86400"),
    (changed(*CONFIGURATION, "seed", value=-1), "has no seed from 0 to"),
    (changed(*CONFIGURATION, "trace_steps", value=True), "has no trace_steps from 0 to"),
    (changed(*CONFIGURATION, "program", value=5), "has no name of a program"),
    (changed(*CONFIGURATION, "origin", value="rm -rf"), "does not say what program was measured"),
]


@pytest.mark.parametrize(("document", "said"), DAMAGED, ids=range(len(DAMAGED)))
def test_what_a_stranger_wrote_is_read_with_care(tmp_path, document, said):
    with pytest.raises(DataError) as caught:
        earlier_results(page(tmp_path, document))
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'report.html'}: ")
    assert said in message
    assert len(message.splitlines()) == 1 and len(message) < 400


def test_a_page_that_is_cut_off(tmp_path):
    path = page(tmp_path, json.dumps(good())[:200], end="")
    with pytest.raises(DataError, match="ends in the middle of its configuration; copy it again"):
        earlier_results(path)


def test_a_page_without_a_configuration(tmp_path):
    (tmp_path / "x.html").write_text("<p>")
    with pytest.raises(DataError, match="holds no configuration; give a report of this version"):
        earlier_results(tmp_path / "x.html")
    with pytest.raises(DataError, match="cannot be read: No such file or directory"):
        earlier_results(tmp_path / "no.html")
    with pytest.raises(DataError, match="was saved without a configuration; measure again with: "):
        earlier_of(comparison())


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"model": "dlrm"},
        {"model": "", "options": {}},
        {"place": ""},
        {"place": "a:b", "model": "dlrm"},
        {"model": "dlrm", "options": {"data": ["x"]}},
        {"model": "dlrm", "options": {}, "run": "x"},
        {"model": 5, "options": {}},
    ],
)
def test_an_origin_is_one_of_two_shapes(document):
    with pytest.raises(DataError, match="does not say what program was measured"):
        origin_from(document)
