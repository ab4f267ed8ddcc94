"""The parts of a boundary view: finished words and places, ready for JSON."""

from __future__ import annotations

import dataclasses

Pieces = tuple[tuple[str, bool], ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class BoxView:
    """One box, a group of nodes.

    Attributes:
      label: its name within what it is opened from.
      title: its name in full.
      about: how many nodes, or the op type of one.
      family: the op family of most of its nodes, as in `colors`.
      boxes: places in `BoundaryView.boxes` of what it opens into; empty where it cannot be opened.
      travels: how many of its tensors travel through the buffer; "" for none.
      reads: how many tensors it reads out of the buffer; "" for none.
      feeds: a box beside it reads what it makes.
      marks: places in `BoundaryView.reasons`, that of most nodes first.
      held_by: name of what holds most of its nodes back, and how many others do; "" for nothing.
      explanation: what happens to it and why, in a sentence or two.
      rows: places in `BoundaryView.rows` of its refusals, the first few.
      more_rows: how many further refusals there are, in words; "" for none.
      time: of its ops in a step, as the costs of a trace have it; "" without one.
      leaf: place in `FlowView.leaves`, -1 where it is none.
      nodes: names of its nodes that are in no box inside it; empty where a page cannot keep them.
    """

    label: str
    title: str
    about: str
    family: int
    time: str = ""
    leaf: int = -1
    boxes: tuple[int, ...] = ()
    travels: str = ""
    reads: str = ""
    feeds: bool = False
    marks: tuple[int, ...] = ()
    held_by: str = ""
    explanation: str = ""
    rows: tuple[int, ...] = ()
    more_rows: str = ""
    nodes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Region:
    """Boxes under one heading: places in `BoundaryView.boxes`; `empty` stands there without any."""

    title: str
    boxes: tuple[int, ...]
    empty: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class AreaView:
    """One side of a boundary.

    Attributes:
      kind: "own", "stage", "may" or "compute".
      title, about: heading, and a line below it.
      chain: which input it belongs to; 0 for the compute side.
      regions: what it shows; a compute side has what is next to the boundary, then the rest.
      tensors: how many travel out of it; "" for the compute side.
      travels: the same with dtypes, in words.
    """

    kind: str
    title: str
    about: str
    chain: int
    regions: tuple[Region, ...]
    tensors: str = ""
    travels: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReasonView:
    """A reason to stay: two-letter code, its words, how many nodes; `refused` is False for what
    may run ahead and is left."""

    code: str
    word: str
    nodes: str
    rows: int
    refused: bool = True


@dataclasses.dataclass(frozen=True, kw_only=True)
class CauseView:
    """Blockers that are alike, such as the tables of all features.

    Attributes:
      title: their name, folded.
      about: how many, and of which op type.
      reason: place in `BoundaryView.reasons`.
      behind: how many refused nodes depend on them, in words.
      alone: how many of these on nothing else that stays, in words.
      share: `behind` as a fraction of all refused nodes.
      change: the smallest change that would free them.
      gain: by how much the predicted step changes then; "" where that was not predicted.
    """

    title: str
    about: str
    reason: int
    behind: str
    alone: str
    share: float
    change: str
    gain: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class RefusalView:
    """Refused nodes that are alike, explained by the first of them.

    Attributes:
      title: their name, folded.
      op: their op type.
      nodes: how many, in words.
      reason: place in `BoundaryView.reasons`.
      cause: place in `BoundaryView.causes`, -1 where it is left out.
      near: they read what travels.
      blocker: name of the nearest blocker.
      detail, change: the reason in a sentence, and the smallest change.
      path: names from the first of them to the blocker; "…" stands for what is left out.
      names: their names, the first few.
    """

    title: str
    op: str
    nodes: str
    reason: int
    cause: int = -1
    near: bool
    blocker: str
    detail: str
    change: str
    path: tuple[str, ...]
    names: tuple[str, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class CutView:
    """What travels through one buffer.

    Attributes:
      caption: which buffer, and how many tensors.
      rows: (values, tensors, types, read by, why those travel that nothing reads).
      more: how many rows are left out, in words; "" for none.
    """

    caption: str
    rows: tuple[tuple[str, str, str, str, str], ...]
    more: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class CandidateView:
    """One candidate and its prediction; `at` and `bound_at` are fractions of an axis from 0."""

    label: str
    step: str
    bound: str
    ratio: str
    limited_by: str
    chosen: bool
    at: float
    bound_at: float
