"""The files of `static/` that each outlet's script is made of, in the order of their scope."""

from __future__ import annotations

TIMELINE_PARTS = (
    "shared/format.js",
    "shared/unpack.js",
    "timeline/draw/decode.js",
    "timeline/draw/scales.js",
    "timeline/draw/lod.js",
    "timeline/draw/layout.js",
    "shared/theme.js",
    "timeline/draw/labels.js",
    "timeline/draw/draw_strip.js",
    "timeline/draw/draw_path.js",
    "timeline/draw/draw_lanes.js",
    "timeline/draw/draw_frame.js",
    "timeline/control/pick.js",
    "timeline/draw/describe.js",
    "shared/dom.js",
    "timeline/control/hover.js",
    "timeline/control/search.js",
    "timeline/control/nodes.js",
    "timeline/control/table.js",
    "timeline/control/pointer.js",
    "timeline/control/keys.js",
    "timeline/control/state.js",
    "timeline/control/controller.js",
    "timeline/control/mount.js",
    "timeline/control/embed.js",
)
BOUNDARY_PARTS = (
    "shared/unpack.js",
    "shared/theme.js",
    "shared/dom.js",
    "shared/focus.js",
    "boundary/key_words.js",
    "boundary/holding.js",
    "boundary/box.js",
    "boundary/cut.js",
    "boundary/flow.js",
    "boundary/why.js",
    "boundary/tables.js",
    "boundary/refusals.js",
    "boundary/move.js",
    "boundary/mount.js",
    "boundary/embed.js",
)
# What links views that stand beside each other; a page adds it where it has several.
LINKING_PARTS = ("shared/focus.js", "shared/linking.js")
REPORT_PARTS = (*TIMELINE_PARTS, *(part for part in BOUNDARY_PARTS if part not in TIMELINE_PARTS))
PANEL_PARTS = tuple(
    dict.fromkeys(
        [
            *REPORT_PARTS,
            *LINKING_PARTS,
            "panel/setting.js",
            "panel/toggles.js",
            "panel/figures.js",
            "panel/panes.js",
            "panel/mount.js",
            "panel/embed.js",
        ]
    )
)
# What opens the page of a notebook's frame, and what the page adds to the report's parts.
OPENING_PARTS = ("shared/unpack.js", "notebook/frame_open.js")
FRAME_PARTS = ("notebook/frame.js",)
