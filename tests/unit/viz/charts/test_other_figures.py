"""Figures of predictions, calibrations, lenses and memory: their numbers, words and symbols."""

from __future__ import annotations

import pytest

from tests.builders.embedding_lenses import skewed_lens
from tests.builders.memories import chain_trace, staged_trace
from tests.builders.predictions import FUSED, INLINE, SMART, STAGE, check, predicted, predictions
from workbench.core.analysis.memory.memory import BUFFER, memory
from workbench.core.graph.op_families import DENSE, FAMILY_NAMES, INPUT
from workbench.core.optimizations import Optimizations
from workbench.core.what_if.calibration import Calibration
from workbench.core.what_if.predictions import Withheld
from workbench.core.what_if.scenario import Scenario
from workbench.errors import OptionError
from workbench.viz.charts.theme import DARK, LIGHT
from workbench.viz.style import colors

REFUSED = Withheld(scenario=Scenario(optimizations=FUSED), reason="the program builds no lookup")


def traces(figure):
    return {trace.name: trace for trace in figure.data}


class TestPredictions:
    def test_gains_and_ranges_the_fastest_first(self):
        figure = predictions(predicted(STAGE, 1.1), predicted(SMART, 1.32)).plot()
        mark = figure.data[0]
        assert list(mark.y) == ["smart stage", "stage"] and mark.marker.symbol == "diamond-open"
        assert list(mark.x) == pytest.approx([32, 10])
        assert list(mark.error_x.array) == pytest.approx(
            [100 * (1.32 / 0.9 - 1.32), 100 * 0.11 / 0.9]
        )
        assert list(mark.error_x.arrayminus) == pytest.approx([12, 10])
        assert mark.hovertext[0] == (
            "<b>Smart stage</b><br>predicted +32\u00a0%, 1.32× (1.20–1.47)"
            "<br>17.7\u00a0ms a step, limited by the step (≥ 16.0\u00a0ms)"
        )

    def test_the_traced_setting_is_measured(self):
        figure = predictions(predicted(STAGE, 1.1)).plot()
        traced = traces(figure)["traced, measured"]
        assert list(traced.x) == [0.0] and list(traced.y) == ["off"]
        assert traced.marker.symbol == "circle"
        assert [note.text for note in figure.layout.annotations] == [
            "1.10× (1.00–1.22)",
            "measured",
        ]

    def test_what_is_withheld_is_listed_with_its_reason(self):
        figure = predictions(predicted(INLINE, 0.8), withheld=(REFUSED,)).plot()
        assert list(figure.layout.yaxis.tickvals) == ["off", "inline executor", "fused V1"]
        notes = {note.name: note for note in figure.layout.annotations}
        refused = notes["fused V1"]
        assert refused.y == 2 and refused.text == "withheld: the program builds no lookup"
        assert refused.hovertext == "<b>Fused V1</b><br>The program builds no lookup."
        assert "Fused V1" in figure.layout.yaxis.ticktext[2]

    def test_where_all_is_withheld_there_is_no_axis(self):
        figure = predictions(predicted=(), withheld=(REFUSED,)).plot()
        assert len(figure.data) == 0 and figure.layout.xaxis.visible is False
        assert figure.layout.title.text.startswith("<b>Nothing is predicted of 1 setting.</b>")

    def test_other_batches_count_samples(self):
        figure = predictions(predicted(Optimizations(), 1.3, batch_ratio=2.0)).plot()
        said = figure.layout.xaxis.title.text
        assert said == "predicted gain in samples/s against all off"

    def test_nothing_at_all(self):
        with pytest.raises(OptionError, match="no setting to draw; predict some toggles"):
            predictions(predicted=()).plot()


class TestCalibration:
    CHECKS = (check("stage", 1.2, 1.25), check("smart stage", 1.4, 1.6))

    def test_predicted_to_the_right_and_measured_upwards(self):
        marks = traces(Calibration(checks=self.CHECKS).plot())["dlrm"]
        assert list(marks.x) == [1.2, 1.4] and list(marks.y) == [1.25, 1.6]
        assert list(marks.error_x.array) == pytest.approx([0.12, 0.14])
        assert list(marks.error_y.arrayminus) == pytest.approx([0.02, 0.02])
        # Only what lies outside the band is named: 1.4 is an eighth below 1.6.
        assert list(marks.text) == ["", "Smart stage"]
        assert marks.hovertext[1].endswith("error −13\u00a0%")

    def test_diagonal_and_band(self):
        figure = Calibration(checks=self.CHECKS).plot()
        diagonal, band = traces(figure)["as predicted"], traces(figure)["within ±8\u00a0%"]
        low, high = figure.layout.xaxis.range
        assert list(diagonal.x) == list(diagonal.y) == [low, high] == [*figure.layout.yaxis.range]
        assert list(band.x) == [low, high, high, low]
        # A prediction at the lower edge is 8 % too high, one at the upper edge 8 % too low.
        errors = [x / y - 1 for x, y in zip(band.x, band.y, strict=True)]
        assert errors == pytest.approx([0.08, 0.08, -0.08, -0.08])
        assert figure.layout.yaxis.scaleanchor == "x"

    def test_each_program_has_a_symbol(self):
        other = check("stage", 1.2, 1.5, program="dien")
        found = traces(Calibration(checks=(*self.CHECKS, other)).plot())
        assert found["dlrm"].marker.symbol != found["dien"].marker.symbol
        assert list(found["dien"].text) == ["dien: Stage"]

    def test_nothing_to_draw(self):
        with pytest.raises(OptionError, match="no setting was both predicted and measured"):
            Calibration(checks=()).plot()


class TestIdSkew:
    def test_shares_of_rows_and_lookups(self):
        lines = traces(skewed_lens().plot())
        assert list(lines["items"].x) == pytest.approx([0.01, 0.02, 0.03])
        assert list(lines["items"].y) == [0.5, 0.5, 0.75]
        assert list(lines["days"].x) == [0.25, 0.5, 0.75, 1] == list(lines["days"].y)
        assert lines["items"].hovertext[1] == (
            "<b>items</b><br>the 2 most frequent of 100 rows<br>50\u00a0% of its lookups"
        )
        assert list(lines["every row as often"].x) == list(lines["every row as often"].y)

    def test_the_axis_is_of_logarithms_and_ends_at_all_rows(self):
        axis = skewed_lens().plot().layout.xaxis
        assert axis.type == "log" and list(axis.tickvals) == pytest.approx([0.01, 0.1, 1])
        assert list(axis.ticktext) == ["1\u00a0%", "10\u00a0%", "100\u00a0%"]

    def test_a_table_without_a_line_is_named(self):
        said = skewed_lens().plot().layout.xaxis.title.text
        assert said.endswith("<br>1 table without sampled ids or a known number of rows: hashed")

    def test_the_answer(self):
        title = skewed_lens().plot().layout.title.text
        assert title.startswith("items: its most frequent id takes <b>50\u00a0%</b> of its lookups")

    def test_chosen_tables(self):
        names = [trace.name for trace in skewed_lens().plot(tables=["days"]).data]
        assert names == ["days", "every row as often"]
        with pytest.raises(OptionError, match="no table 'users'; expected some of items, days"):
            skewed_lens().plot(tables=["users"])
        with pytest.raises(
            OptionError, match=r"no ids of these tables .* make the lens with program="
        ):
            skewed_lens().plot(tables=["hashed"])


class TestMemory:
    @pytest.mark.parametrize("theme", [LIGHT, DARK])
    def test_families_in_their_colors_add_up(self, theme):
        figure = memory(chain_trace()).plot(theme=theme.name)
        assert [trace.name for trace in figure.data] == [FAMILY_NAMES[INPUT], FAMILY_NAMES[DENSE]]
        for trace, number in zip(figure.data, (INPUT, DENSE), strict=True):
            assert trace.fillcolor == getattr(colors.FAMILIES[number], theme.name)
            assert trace.stackgroup == "live" and trace.line.shape == "hv"
        tops = [sum(values) for values in zip(*(trace.y for trace in figure.data), strict=True)]
        assert max(tops) == 170 and tops[5] == 0
        assert figure.data[0].x[-1] == 100 and figure.data[0].hovertext[15].endswith(": 100\u00a0B")
        assert figure.layout.xaxis.title.text == "ns since the begin of step 1"

    def test_patterns_differ(self):
        shapes = {trace.fillpattern.shape for trace in memory(chain_trace()).plot().data}
        assert len(shapes) == 2

    def test_scopes_have_no_color_of_a_family(self):
        figure = memory(chain_trace()).plot("scope")
        assert [trace.name for trace in figure.data] == ["in", "net"]
        families = {each.light for each in colors.FAMILIES}
        assert families.isdisjoint(trace.fillcolor for trace in figure.data)

    def test_a_buffer_and_a_step(self):
        figure = memory(staged_trace()).plot(step=1)
        assert figure.data[-1].name == BUFFER
        assert "of tensors</b>" not in figure.layout.title.text
        assert figure.layout.title.text.endswith("at the peak of step 1.")
        with pytest.raises(OptionError, match="step is 9"):
            memory(staged_trace()).plot(step=9)
