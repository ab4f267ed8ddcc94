"""What stands for one op, or one embedding table, says which: its name as the graph has it."""

from __future__ import annotations

import dataclasses
import html
import re

from tests.builders.critical_paths import three_steps
from tests.builders.embedding_lenses import stock_trace
from tests.builders.views import FRAGMENTS, some_alignment, some_findings
from workbench.core.analysis.critical_path import critical_path
from workbench.viz.alignment.view import alignment_view
from workbench.viz.critical_path.view import critical_path_view
from workbench.viz.outlets import fragment_of
from workbench.viz.style.table import Table, table_html


def named(markup: str, kind: str) -> set[str]:
    return set(map(html.unescape, re.findall(rf'data-{kind}="([^"]*)"', markup)))


def test_bars_and_rows_of_a_critical_path_name_nodes_of_the_trace() -> None:
    trace = three_steps()
    view = critical_path_view(critical_path(trace))
    nodes = set(trace.nodes["name"])
    bars = [(bar.name, bar.node) for bar in view.step.bars]
    assert {node for _, node in bars} - {""} <= nodes
    assert ("call of the step", "") in bars
    assert {row.node for row in view.nodes} - {""} <= nodes
    assert {row.name for row in view.nodes if not row.node}.isdisjoint(nodes)
    assert named(fragment_of(critical_path(trace)), "node") <= nodes


def test_a_row_of_several_tables_names_none() -> None:
    view = critical_path_view(critical_path(stock_trace()))
    assert view.features is not None
    assert len(view.features.tables) == len(view.features.rows)
    for (shown, *_), table in zip(view.features.rows, view.features.tables, strict=True):
        assert table in (shown, "")


def test_findings_name_the_nodes_that_they_are_about() -> None:
    found = some_findings()
    assert named(FRAGMENTS["findings"](), "node") == {name for each in found for name in each.nodes}


def test_a_group_of_nodes_is_no_node() -> None:
    view = alignment_view(some_alignment())
    assert len(view.nodes.nodes) == len(view.nodes.rows)
    assert any(view.nodes.nodes)
    for (shown, *_), node in zip(view.nodes.rows, view.nodes.nodes, strict=True):
        assert node in (shown, "")


def test_items_in_a_buffer_are_no_node() -> None:
    nodes = named(FRAGMENTS["memory"](), "node")
    assert nodes and "" not in nodes
    assert "input" not in nodes


def test_the_lens_names_its_tables() -> None:
    assert named(FRAGMENTS["embedding lens"](), "table") == {"table"}


def test_a_name_stays_a_name_in_an_attribute() -> None:
    nasty = '"><script>window.hit = 1</script>'
    table = Table("", ("a", "b"), ((nasty, "1"), ("sum", "2")), nodes=(nasty, ""))
    page = table_html(table)
    assert "<script" not in page
    assert named(page, "node") == {nasty}
    without = dataclasses.replace(table, nodes=())
    assert named(table_html(without), "node") == set()
