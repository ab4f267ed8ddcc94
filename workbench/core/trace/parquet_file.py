"""The file of a Trace: one Parquet file, events as rows, everything else in its metadata."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from workbench.atomic_file import replacing
from workbench.core.trace.tables import OPTIONAL_TABLES, TABLES, column_names
from workbench.errors import TraceError, first_line

# Format 1 has no edges, and its nodes no source; format 2 has no bytes; format 3 no transfers, and
# its tracks no task.
FORMAT_VERSION = 4
_FIRST_VERSION = 1
_VERSION = "format_version"
_NOTES = "workbench_trace"
# zstd packs the differences of times better than the times; every reader knows this encoding
_ENCODINGS = dict.fromkeys(("start_ns", "dur_ns", "delay_ns"), "DELTA_BINARY_PACKED")


def write(
    path: str | os.PathLike[str], tables: Mapping[str, pd.DataFrame], meta: Mapping[str, Any]
) -> None:
    """Writes a checked trace, whole or not at all."""
    small = {name: frame.to_dict("list") for name, frame in tables.items() if name != "events"}
    notes = json.dumps({"tables": small, "meta": dict(meta)}, separators=(",", ":"))
    events = pa.Table.from_pandas(tables["events"], preserve_index=False)
    events = events.replace_schema_metadata(None)
    packing = {
        "compression": "zstd",
        "use_dictionary": ["node", "track", "step", "made_bytes", "passed_bytes"],
        "column_encoding": _ENCODINGS,
    }
    # An open file, since Arrow takes only names that are text.
    with (
        replacing(path) as part,
        part.open("wb") as file,
        pq.ParquetWriter(file, events.schema, **packing) as out,
    ):
        out.write_table(events)
        # Notes in the schema would be stored twice, the second time in base64.
        out.add_key_value_metadata({_VERSION: str(FORMAT_VERSION), _NOTES: notes})


def read(path: str | os.PathLike[str]) -> tuple[dict[str, pd.DataFrame], dict[str, Any]]:
    """The tables and notes of a file that `write` made; the rows are not checked.

    Raises:
      TraceError: there is no such file, it is not a trace, or is of a newer format.
    """
    name = os.fspath(path)
    if not os.path.isfile(path):
        raise TraceError(f"there is no file `{name}`; expected a trace that `Trace.save` wrote")
    try:
        file = pq.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise TraceError(
            f"`{name}` is not a trace: not a Parquet file ({first_line(error)}); "
            "expected a file that `Trace.save` wrote"
        ) from error
    with file:
        notes = _notes(name, file.schema_arrow.names, file.metadata.metadata or {})
        held = set(file.schema_arrow.names)
        columns = [column.name for column in TABLES["events"] if column.name in held]
        try:
            events = file.read(columns=columns).to_pandas()
        except (pa.ArrowInvalid, OSError) as error:
            raise TraceError(
                f"`{name}` is damaged: {first_line(error)}; save or copy it again"
            ) from error
    tables = {"events": events}
    for table, wanted in TABLES.items():
        if table != "events":
            tables[table] = _small_table(table, notes)
            for column in wanted:
                if column.name not in tables[table] and not column.optional:
                    raise TraceError(f"`{name}` has no column `{column.name}` in `{table}`.")
    return tables, notes["meta"]


def _small_table(table: str, notes: Mapping[str, Any]) -> pd.DataFrame:
    held = notes["tables"].get(table)
    if held is None and table in OPTIONAL_TABLES:
        return pd.DataFrame(columns=column_names(table), dtype="int64")
    return pd.DataFrame(held or {})


def _notes(name: str, columns: list[str], metadata: Mapping[bytes, bytes]) -> dict[str, Any]:
    """What stands beside the rows, once the format is known to be ours."""
    version = metadata.get(_VERSION.encode(), b"").decode(errors="replace")
    if version.isdecimal() and int(version) > FORMAT_VERSION:
        raise TraceError(
            f"`{name}`: Format {version}; this Workbench reads {FORMAT_VERSION}. Update it."
        )
    for column in TABLES["events"]:
        if column.name not in columns and not column.optional:
            raise TraceError(f"`{name}` has no column `{column.name}`.")
    try:
        notes = json.loads(metadata[_NOTES.encode()])
        known = range(_FIRST_VERSION, FORMAT_VERSION + 1)
        if version not in map(str, known) or not {"tables", "meta"} <= notes.keys():
            raise ValueError(f"format_version is {version!r}")
    except (KeyError, ValueError, AttributeError) as error:
        raise TraceError(
            f"`{name}` is not a trace: its Parquet metadata lack Workbench's notes; "
            "expected a file that `Trace.save` wrote"
        ) from error
    return dict(notes)
