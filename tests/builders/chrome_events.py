"""Events of Chrome JSON, and the rows of the trace that they become."""

from __future__ import annotations


def slice_(name, ts, dur, tid=1, pid=1, **more):
    """A span, in µs."""
    return {"ph": "X", "name": name, "ts": ts, "dur": dur, "pid": pid, "tid": tid, **more}


def half(phase, name, ts, tid=1, pid=1):
    """The begin or the end of a span."""
    return {"ph": phase, "name": name, "ts": ts, "pid": pid, "tid": tid}


def named(kind, name, pid=1, tid=1):
    """The name of a process or a thread."""
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}


def rows(trace, *columns):
    """Some columns of a trace's events, a tuple for each event."""
    frame = trace.to_pandas()
    return list(frame[list(columns)].itertuples(index=False, name=None))
