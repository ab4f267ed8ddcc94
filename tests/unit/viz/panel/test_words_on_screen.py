"""The list of words has every word of the panel's frame: tabs, toggles, phases and buttons."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from workbench.core.toggles.built_in import WITH_POSITIONS
from workbench.experiments.measurement.schedule import TITLES
from workbench.viz.panel.settings.group import SECTIONS
from workbench.viz.panel.settings.groups import groups_of
from workbench.viz.panel.tabs.contents import TABS
from workbench.viz.style.bundle import STATIC

WORDS = (Path(__file__).resolve().parents[4] / "docs/words.md").read_text("utf-8")
# In the scripts of the panel: a button's words, as they are or before what changes.
BUTTON = re.compile(r'panelButton\([`"]([A-Z][\w ]+)')


def words_of_buttons() -> set[str]:
    scripts = (STATIC / "panel").glob("*.js")
    return {found.strip() for each in scripts for found in BUTTON.findall(each.read_text("utf-8"))}


def words_of_toggles() -> set[str]:
    titles = {toggle.title for toggle in WITH_POSITIONS}
    titles |= {position.title for toggle in WITH_POSITIONS for position in toggle.positions}
    own = [group for group in groups_of(None) if group.section == next(iter(SECTIONS))]
    titles |= {number.label or group.title for group in own for number in group.numbers}
    return titles | {group.flag.label for group in own if group.flag}


@pytest.mark.parametrize(
    "words", [pytest.param(each, id=each) for each in sorted({*TABS.values(), *TITLES.values()})]
)
def test_tabs_and_phases_are_in_the_list(words):
    assert re.search(rf"\b{words}\b", WORDS)


def test_toggles_and_their_positions_are_in_the_list():
    shown = words_of_toggles()
    assert len(shown) > 15
    assert [each for each in sorted(shown) if not re.search(rf"\b{each}\b", WORDS)] == []


def test_buttons_are_in_the_list():
    shown = words_of_buttons()
    assert {"Run", "Find the best", "Measure it", "Show traceback"} <= shown
    assert [each for each in sorted(shown) if each not in WORDS] == []
