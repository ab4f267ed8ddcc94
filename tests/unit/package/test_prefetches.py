"""What is to be prefetched is prefetched: a compiler has left it out without a word."""

from __future__ import annotations

import pathlib
import re
import shutil
import subprocess

import pytest

NATIVE = pathlib.Path(__file__).parents[3] / "native"
HEAD = re.compile(r"^(_Z\w+):")


@pytest.mark.parametrize(
    ("source", "functions"),
    [
        ("optimizer/row_updates.cc", ("FetchRows", "UpdateRows")),
        ("table/embedding_rows.cc", ("EmbeddingRows4Find", "EmbeddingRows6Places")),
        ("table/embedding_table_shard.cc", ("TableShard10FetchBlock",)),
    ],
)
def test_a_function_prefetches(source: str, functions: tuple[str, ...]) -> None:
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    command = [compiler, "-std=c++17", "-O3", "-fPIC", f"-I{NATIVE}", "-S", "-o", "-"]
    done = subprocess.run([*command, NATIVE / source], capture_output=True, text=True, check=True)
    counts, name = dict.fromkeys(functions, 0), ""
    for line in done.stdout.splitlines():
        if head := HEAD.match(line):
            name = head.group(1)
        # x86-64 calls it prefetcht0, ARM prfm.
        elif re.match(r"\s+(prefetch|prfm)", line):
            for function in functions:
                counts[function] += function in name
    assert all(counts.values()), counts
