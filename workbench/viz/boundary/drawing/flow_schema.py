"""The drawing of a boundary in flow order: places of boxes, links, and what a moved line needs."""

from __future__ import annotations

import dataclasses

BOX_WIDTH, BOX_HEIGHT = 140, 60
COLUMN_GAP, ROW_GAP, MARGIN = 48, 14, 34


@dataclasses.dataclass(frozen=True, kw_only=True)
class FlowBox:
    """One box of the drawing.

    Attributes:
      box: place in `BoundaryView.boxes`.
      column: which column it stands in; x, y: its corner in px.
      state: "fixed" where it runs ahead whatever is chosen, "move" where it may, "stay" elsewhere.
      leaves: the leaves inside it; empty where nothing of it moves.
    """

    box: int
    column: int
    x: int
    y: int
    state: str
    leaves: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Link:
    """What one box reads of another.

    Attributes:
      source, target: places in `FlowView.boxes`.
      words: how many tensors, of which types and shapes, how many bytes.
      width: of its line in px.
      at: its height in px, in each gap between columns that it passes, the first one at its source.
    """

    source: int
    target: int
    words: str
    width: float
    at: tuple[int, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Leaf:
    """Nodes that move together: the smallest box that is kept.

    Attributes:
      box: place in `BoundaryView.boxes`.
      nodes: how many.
      needs: leaves that have to run ahead when it does.
      begins: (leaves that any of them reads, names of nodes that read nothing in this leaf).
      ends: (leaves that read any of them, names of nodes that nothing in this leaf reads).
    """

    box: int
    nodes: int
    needs: tuple[int, ...]
    begins: tuple[tuple[tuple[int, ...], tuple[str, ...]], ...] = ()
    ends: tuple[tuple[tuple[int, ...], tuple[str, ...]], ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Maker:
    """Nodes whose outputs travel where something behind the line reads one of them.

    Attributes:
      leaf: where they are; -1 where they run ahead whatever is chosen.
      count: how many are alike.
      always: they deliver the batch, which travels in any case.
      outputs: for each output (readers, bytes): leaves, or -1 - place of a box that stays; -1 byte
        where the size is not known.
    """

    leaf: int
    count: int
    always: bool
    outputs: tuple[tuple[tuple[int, ...], int], ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class EditView:
    """One difference of SmartStage's cut to another one.

    Attributes:
      box: place in `FlowView.boxes`.
      adds: it runs ahead in SmartStage's cut and not in the other.
      gain: of taking it alone, in words; "" where it was not predicted.
    """

    box: int
    adds: bool
    gain: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class KnownCut:
    """A cut and what it is predicted to give.

    Attributes:
      label: what it is called; "" where it is only a place of the line.
      leaves: those that run ahead.
      x: where the line stands straight; -1 where it does not.
      step, gain, limited_by: its predicted step time, the ratio to un-staged, and what bounds it;
        "" without a trace.
      edits: how SmartStage's cut differs; empty where that was not looked at.
    """

    label: str
    leaves: tuple[int, ...]
    x: int = -1
    step: str = ""
    gain: str = ""
    limited_by: str = ""
    edits: tuple[EditView, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class FlowView:
    """The drawing.

    Attributes:
      width, height: in px.
      boxes, links: what is drawn.
      leaves, makers: what the line moves.
      cuts: known ones: the places of the line from the left, then others.
      shown: place in `cuts` of the one that is drawn at first.
      smart: place in `cuts` of SmartStage's, -1 where it is not known.
      last: why the line goes no further, in a sentence.
      timed: there are costs, so boxes have times and cuts predictions.
      named: leaves have the names of their nodes, so that a cut can be written as code.
      solid: a plan takes the cut; else it is what may run ahead.
      stale: lookups may be stale, which predictions take for exact.
    """

    width: int
    height: int
    boxes: tuple[FlowBox, ...]
    links: tuple[Link, ...]
    leaves: tuple[Leaf, ...]
    makers: tuple[Maker, ...]
    cuts: tuple[KnownCut, ...]
    shown: int = 0
    smart: int = -1
    last: str = ""
    timed: bool = False
    named: bool = True
    solid: bool = False
    stale: bool = False
