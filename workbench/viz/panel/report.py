"""The report of a session: the panel as a page of its own, with what reproduces and proves it."""

from __future__ import annotations

import base64
import importlib.metadata
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pandas as pd

from workbench.core.trace.trace import Trace
from workbench.errors import OptionError, visible
from workbench.experiments.regression.earlier import ELEMENT_ID, report_document
from workbench.experiments.session.run import Run, comparisons_of
from workbench.experiments.session.session import Session
from workbench.viz.comparison.environment import environment_pairs, setting_pairs
from workbench.viz.panel.page import panel_html, panel_page, still_html
from workbench.viz.panel.settings.groups import groups_of, unfit_options
from workbench.viz.panel.settings.known_settings import last_cut, stored_settings
from workbench.viz.panel.settings.setting import setting_of
from workbench.viz.panel.tabs.contents import Contents
from workbench.viz.panel.tabs.ratio_rows import run_name
from workbench.viz.panel.view import panel_view, state_of
from workbench.viz.style import assets
from workbench.viz.style.plain_values import plain_values

# The whole stays below 5 MB: what timelines and files to take away may have, as they stand.
_TIMELINES, _FILES = 1_200_000, 2_000_000
_PARQUET = "application/vnd.apache.parquet"
# Runs with every tab; of others the page has the throughput.
_MOST_WHOLE_RUNS = 3


def session_report_html(session: Session, contents: Contents | None = None) -> str:
    """A session as one page that needs no kernel and no network.

    Args:
      session: its runs.
      contents: what their tabs show, as far as it is known.

    Raises:
      OptionError: nothing has run.
    """
    if not session.runs:
        raise OptionError("nothing has run, so there is nothing to report; run a setting first")
    contents = contents or Contents(session)
    base = session.run_of(session.baseline) or session.runs[0]
    best = best_run(session, base)
    cut = last_cut(session)
    groups = groups_of(session.program, unfit_options(session), cut=cut, toggles=session.toggles)
    setting = setting_of(best.optimizations)
    page = panel_page(
        session,
        contents,
        panel_view(session, groups),
        state_of(session, setting, shown=best.number, base=base.number, cut=cut),
        stored_settings(session, groups, [setting]),
        _whole(session, best, base),
        base,
        _TIMELINES,
    )
    comparison = best.comparison
    return visible(
        assets.templates()
        .get_template("panel/report.html.j2")
        .render(
            title=f"Workbench: {session.name}",
            style=assets.panel_style(),
            script=assets.panel_page_script(),
            panel=panel_html(page, "wb-panel", still_html(contents, best, base), stacked=True),
            files=list(_files(session, [best, base])),
            settings=setting_pairs(comparison.settings),
            environment=environment_pairs(comparison.environment),
            command=comparison.command,
            configuration_id=ELEMENT_ID,
            configuration=assets.json_script(
                plain_values(report_document(comparisons_of(session.runs)))
            ),
            version=importlib.metadata.version("recsys-workbench"),
        )
    )


def report_name(session: Session) -> str:
    """What a session's report is called where nobody says: "workbench-" and the program's name."""
    name = re.sub(r"[^\w.-]+", "-", session.name).strip("-.") or "program"
    return f"workbench-{name}.html"


def best_run(session: Session, base: Run) -> Run:
    """The run that is clearly faster than the baseline, by most; else the baseline's."""
    ratios = [(session.ratio(run, base), run) for run in session.runs]
    faster = [(ratio.ratio, run) for ratio, run in ratios if ratio and ratio.verdict == "faster"]
    return max(faster, key=lambda each: each[0], default=(1.0, base))[1]


def _whole(session: Session, best: Run, base: Run) -> list[Run]:
    """The runs that the page holds whole: those it is about, and the newest others."""
    wanted = [best, base, *reversed(session.runs)]
    return list(dict.fromkeys(wanted))[:_MOST_WHOLE_RUNS]


def _files(session: Session, runs: Sequence[Run]) -> Iterator[dict[str, str]]:
    """Files to take away, as far as the page has room: the results, then the traces."""
    room = _FILES
    for name, content in _contents(session, runs):
        if len(content) > room:
            continue
        room -= len(content)
        data = base64.b64encode(content).decode("ascii")
        yield {"name": name, "address": f"data:{_PARQUET};base64,{data}"}


def _contents(session: Session, runs: Iterable[Run]) -> Iterator[tuple[str, bytes]]:
    yield "results.parquet", results_table(session).to_parquet()
    for run in dict.fromkeys(runs):
        if run.measured.trace is not None:
            yield f"trace-{run.number}.parquet", _trace_bytes(run.measured.trace)


def results_table(session: Session) -> pd.DataFrame:
    """One row for each run, as `Comparison.to_pandas` has them, with its number and when it ran."""
    rows = [
        {
            "run": run.number,
            "setting": run_name(run),
            "started": run.started,
            **run.comparison.to_pandas().loc[run.variant].to_dict(),
        }
        for run in session.runs
    ]
    return pd.DataFrame(rows).astype({"same_training": "boolean"})


def _trace_bytes(trace: Trace) -> bytes:
    with tempfile.TemporaryDirectory() as home:
        path = Path(home) / "trace.parquet"
        trace.save(path)
        return path.read_bytes()
