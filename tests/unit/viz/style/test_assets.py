"""The joined script and style: one module, small, inert where it is embedded."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from tests.builders.javascript import run
from workbench.viz.style import assets, colors

MOST_BYTES = 200_000


@pytest.mark.parametrize(
    ("script", "exports"),
    [
        (
            assets.script,
            ["export { mount, mountAll };", "export default { render: renderWidget };"],
        ),
        (
            assets.boundary_script,
            ["export { mountBoundary };", "export default { render: renderBoundary };"],
        ),
        (assets.report_script, []),
        (assets.frame_script, []),
        (assets.opening_script, []),
        (assets.panel_script, ["export default { render: renderPanel };"]),
        (assets.panel_page_script, []),
        (assets.panel_frame_script, []),
    ],
)
def test_a_script_is_one_small_module_that_asks_for_nothing(
    script: Callable[[], str], exports: list[str]
) -> None:
    text = script()
    assert len(text.encode()) < MOST_BYTES
    assert not re.search(r"^\s*import\b", text, re.MULTILINE)
    assert re.findall(r"^export .*", text, re.MULTILINE) == exports
    assert "</script" not in text.lower()
    # the panel shows what the package's own templates made, in one place
    text = text.replace("root.innerHTML = content.html;", "", 1)
    assert not re.search(r"https?://|innerHTML|insertAdjacentHTML|document\.write|eval\(", text)


@pytest.mark.parametrize(
    ("script", "names"),
    [
        (assets.script, ["mount", "mountAll", "renderWidget"]),
        (assets.boundary_script, ["mountBoundary", "renderBoundary"]),
        (assets.panel_script, ["renderPanel", "mountPanels"]),
    ],
)
def test_a_script_loads_without_a_page(script: Callable[[], str], names: list[str]) -> None:
    kinds = ", ".join(f"typeof {name}" for name in names)
    assert run([script()], f"[{kinds}]") == ["function"] * len(names)


def test_joining_is_cached_by_content() -> None:
    assert assets.script() is assets.script()
    assert assets.boundary_script() is assets.boundary_script()
    assert assets.style() is assets.style()


def test_report_script_mounts_at_its_end() -> None:
    assert assets.report_script().endswith("mountReport();\n")


def test_frame_scripts_run_at_their_end() -> None:
    assert assets.frame_script().endswith("showFrame([mountAll, mountBoundaries]);\n")
    assert assets.panel_frame_script().endswith("showFrame([mountPanels]);\n")
    assert assets.panel_page_script().endswith("mountPanels();\n")
    assert assets.opening_script().endswith("openFrame();\n")


def test_style_holds_palette_and_tokens_of_both_themes() -> None:
    style = assets.style()
    for family in colors.FAMILIES:
        assert family.light in style
        assert family.dark in style
    for wanted in (
        "var(--jp-layout-color0,#111)",
        "prefers-color-scheme: dark",
        "forced-colors: active",
        "@media print",
        "@container wb",
    ):
        assert wanted in style
    assert "/*DARK*/" not in style
    assert "/*FORCED*/" not in style
    assert "</style" not in style.lower()


@pytest.mark.parametrize("text", ["</script><script>", "<!--", "a & b", "\u2028\u2029", "“é”"])
def test_json_script_cannot_end_its_element(text: str) -> None:
    made = assets.json_script({"name": text})
    assert json.loads(made) == {"name": text}
    assert not set("<>&\u2028\u2029") & set(made)
