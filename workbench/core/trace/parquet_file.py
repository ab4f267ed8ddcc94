"""The file of a Trace: one Parquet file, events as rows, everything else in its metadata."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from workbench.core.trace.tables import OPTIONAL_TABLES, TABLES, column_names
from workbench.errors import DataError, TraceError, first_line
from workbench.files.atomic_file import replacing
from workbench.files.saved_columns import NoParquetError, opened
from workbench.files.saved_values import is_file, json_of, shown, value_of

# Format 1 has no edges, and its nodes no source; format 2 has no bytes; format 3 no transfers, and
# its tracks no task; format 4 does not say which nodes are fusable; format 5 has no shapes.
FORMAT_VERSION = 6
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
    if not is_file(path):
        raise TraceError(f"there is no file `{name}`; expected a trace that `Trace.save` wrote")
    try:
        with opened(path) as file:
            notes = _notes(name, file.names, file.notes)
            held = set(file.names)
            columns = [column.name for column in TABLES["events"] if column.name in held]
            tables = {"events": file.read(columns)}
            for table, wanted in TABLES.items():
                if table != "events":
                    tables[table] = _small_table(table, notes["tables"])
                    for column in wanted:
                        if column.name not in tables[table] and not column.optional:
                            raise TraceError(
                                f"`{name}` has no column `{column.name}` in `{table}`."
                            )
    except NoParquetError as error:
        raise TraceError(
            f"`{name}` is not a trace: not a Parquet file ({first_line(error)}); "
            "expected a file that `Trace.save` wrote"
        ) from error
    except DataError as error:
        raise TraceError(
            f"`{name}` is damaged: {first_line(error)}; save or copy it again"
        ) from error
    return tables, notes["meta"]


def _small_table(table: str, tables: Mapping[str, Any]) -> pd.DataFrame:
    held = tables.get(table)
    if held is None and table in OPTIONAL_TABLES:
        return pd.DataFrame(columns=column_names(table), dtype="int64")
    kinds = {
        column.name: tuple[str, ...] if column.kind == "text" else tuple[int, ...]
        for column in TABLES[table]
    }
    columns = {
        # A column that is unknown is named by the trace itself.
        name: value_of(kinds.get(name, tuple[Any, ...]), values, f"`{table}`.`{name}`")
        for name, values in value_of(dict[str, Any], held or {}, f"table `{table}`").items()
    }
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(f"the columns of table `{table}` have {shown(lengths)} rows")
    return pd.DataFrame({name: list(values) for name, values in columns.items()})


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
    known = map(str, range(_FIRST_VERSION, FORMAT_VERSION + 1))
    notes: Any = None
    if _NOTES.encode() in metadata and version in known:
        notes = json_of(metadata[_NOTES.encode()])
    if not isinstance(notes, dict) or not {"tables", "meta"} <= notes.keys():
        raise TraceError(
            f"`{name}` is not a trace: its Parquet metadata lack Workbench's notes; "
            "expected a file that `Trace.save` wrote"
        )
    return {each: value_of(dict[str, Any], notes[each], each) for each in ("tables", "meta")}
