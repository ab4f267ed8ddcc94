"""What all figures share: their configuration, their files, their themes, and when plotly loads."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import plotly.graph_objects as go
import plotly.io as pio
import pytest

from tests.builders.comparisons import comparison, planned_comparison
from tests.builders.embedding_lenses import skewed_lens
from tests.builders.memories import chain_trace
from tests.builders.predictions import STAGE, check, predicted, predictions
from workbench.core.analysis.memory.memory import memory
from workbench.core.what_if.calibration import Calibration
from workbench.errors import OptionError
from workbench.viz.charts.chart import CONFIG, Chart
from workbench.viz.charts.theme import DARK, LIGHT, theme_of
from workbench.viz.charts.words import headline, hover, in_lines, narrower, setting_lines
from workbench.viz.style import colors

FIGURES = {
    "throughput": lambda theme: planned_comparison().plot(theme=theme),
    "blocks": lambda theme: planned_comparison().plot("blocks", theme=theme),
    "predictions": lambda theme: predictions(predicted(STAGE, 1.1)).plot(theme=theme),
    "calibration": lambda theme: Calibration(checks=(check("a", 1.2, 1.3),)).plot(theme=theme),
    "id skew": lambda theme: skewed_lens().plot(theme=theme),
    "memory": lambda theme: memory(chain_trace()).plot(theme=theme),
    "memory by scope": lambda theme: memory(chain_trace()).plot("scope", theme=theme),
}
_CONFIG = re.compile(r'\{[^{}]*"showSendToCloud"[^{}]*\}')
_LOADS = re.compile(r"<(?:script|link|img|iframe)[^>]*\b(?:src|href)\s*=|\bimport\s*\(?[\"']http")


@pytest.fixture(params=list(FIGURES))
def figure(request: pytest.FixtureRequest) -> Chart:
    return FIGURES[request.param](None)


def config_in(page: str) -> dict[str, object]:
    found = _CONFIG.findall(page)
    assert len(found) == 1
    written: dict[str, object] = json.loads(found[0])
    return written


def without_library(figure: Chart) -> str:
    return figure.to_html(include_plotlyjs=False)


class TestFiles:
    def test_no_page_offers_to_send_the_figure_anywhere(self, figure: Chart):
        config = config_in(without_library(figure))
        assert config["showSendToCloud"] is False and config["displaylogo"] is False
        assert not config.get("plotlyServerURL")

    def test_no_page_loads_anything(self, figure: Chart, tmp_path: Path):
        figure.write_html(tmp_path / "figure.html")
        page = (tmp_path / "figure.html").read_text("utf-8")
        assert not _LOADS.search(page.replace(go_library(), "")) and go_library() in page
        assert config_in(page.replace(go_library(), ""))["showSendToCloud"] is False

    def test_what_the_caller_configures_counts(self):
        page = comparison().plot().to_html({"scrollZoom": True}, include_plotlyjs=False)
        assert config_in(page)["scrollZoom"] is True
        assert config_in(page)["showSendToCloud"] is False

    def test_a_cell_holds_the_figure_and_not_the_library(self, figure: Chart):
        before = pio.renderers.default
        pio.renderers.default = "plotly_mimetype"
        try:
            bundle = figure._repr_mimebundle_()
        finally:
            pio.renderers.default = before
        assert list(bundle) == ["application/vnd.plotly.v1+json"]
        shown = bundle["application/vnd.plotly.v1+json"]
        assert {name: shown["config"][name] for name in CONFIG} == CONFIG
        assert len(json.dumps(bundle)) < 200_000

    def test_html_without_a_renderer_is_whole(self):
        assert go_library() in comparison().plot()._repr_html_()


def go_library() -> str:
    from plotly.offline import get_plotlyjs

    return get_plotlyjs()


class TestShowing:
    def test_show_and_display_are_configured(self, monkeypatch: pytest.MonkeyPatch):
        seen = []
        monkeypatch.setattr(
            pio, "show", lambda figure, *args, **named: seen.append(named["config"])
        )
        monkeypatch.setattr(pio.renderers, "render_on_display", True)
        monkeypatch.setattr(type(pio.renderers), "default", property(lambda _: "json"))
        chart = comparison().plot()
        chart.show()
        chart.show(config={"displaylogo": True})
        chart._ipython_display_()
        assert [each["showSendToCloud"] for each in seen] == [False] * 3
        assert [each["displaylogo"] for each in seen] == [False, True, False]

    def test_it_is_a_figure_of_plotly(self, figure: Chart):
        assert isinstance(figure, go.Figure)
        figure.update_layout(title_text="mine", width=640)
        assert figure.layout.title.text == "mine"
        assert go.Figure(figure).to_dict()["layout"]["width"] == 640


class TestThemes:
    @pytest.mark.parametrize("kind", FIGURES)
    def test_both(self, kind: str):
        for theme in (LIGHT, DARK):
            figure = FIGURES[kind](theme.name)
            assert figure.layout.template.layout.paper_bgcolor == theme.page
            assert figure.layout.template.layout.font.color == theme.ink

    @pytest.mark.parametrize("theme", [LIGHT, DARK])
    def test_marks_and_words_are_legible(self, theme):
        for mark in (theme.fill, theme.accent, theme.ink):
            assert colors.contrast(mark, theme.page) >= 3
        for words in (theme.ink, theme.quiet, theme.harm):
            assert colors.contrast(words, theme.page) >= 4.5

    @pytest.mark.parametrize(
        ("name", "chosen"),
        [
            ("plotly", LIGHT),
            ("plotly_dark", DARK),
            ("simple_white", LIGHT),
            ("plotly_dark+presentation", DARK),
        ],
    )
    def test_none_follows_the_users_template(self, name, chosen, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(pio.templates, "_default", name)
        found = theme_of(None)
        assert found.name == chosen.name
        template = LIGHT.template if name == "plotly" else go.Layout(template=name).template
        assert found.template == template
        assert comparison().plot().layout.template == template
        assert comparison().plot(theme="dark").layout.template == DARK.template

    def test_another_name(self):
        with pytest.raises(OptionError, match="theme is 'blue'; expected 'light', 'dark' or None"):
            comparison().plot(theme="blue")


class TestWords:
    def test_strong_words_stay_strong_over_lines(self):
        shown = headline([("so ", False), ("a " * 60, True), ("<b>", False)])
        first, second = shown.split("<br>")
        assert first.startswith("so <b>a a") and first.endswith("</b>")
        assert second.startswith("<b>a") and second.endswith("</b>&lt;b&gt;")

    def test_a_narrower_headline_says_the_same(self):
        shown = headline([("so & ", False), ("a " * 60, True), ("<b>", False)])
        narrow = narrower(shown, 20).split("<br>")
        assert len(narrow) > 6 and narrow[0].startswith("so &amp; <b>a")
        assert " ".join(narrow).replace("</b> <b>", " ") == shown.replace("</b><br><b>", " ")

    def test_a_setting_breaks_between_its_toggles(self):
        assert setting_lines("off") == "All off"
        assert setting_lines("smart stage + fused V2 + cost model executor") == (
            "Smart stage + fused V2 + <br>cost model executor"
        )

    def test_lines_and_cards(self):
        assert in_lines("a & b\nc", 4) == "a &amp;<br>b\\nc"
        assert hover("a", "", "b") == "<b>a</b><br>b"


def test_plotly_is_loaded_where_a_figure_is_asked_for():
    code = (
        "import sys; from tests.builders.comparisons import comparison; one = comparison();"
        "str(one); one._repr_mimebundle_(); before = 'plotly' in sys.modules; one.plot();"
        "print(before, 'plotly' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
