"""Checks README.md, CHANGELOG.md and docs/: `make language`; with files, those alone.

A mean of at most 20 words a sentence, at most 5 % of the sentences over 25, none over 40.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

from tests.language.sentences import sentences, words

MEAN, LONG, MOST = 20, 25, 40
SHARE = 0.05
HOME = Path(__file__).resolve().parents[2]


def main(files: list[str]) -> int:
    """Prints a line for each page, and the sentences that are too long; 1 where a page fails."""
    pages = [Path(each) for each in files] or [
        HOME / "README.md",
        HOME / "CHANGELOG.md",
        *sorted((HOME / "docs").glob("*.md")),
    ]
    failed = 0
    for page in pages:
        counts = {each: words(each) for each in sentences(page.read_text("utf-8"))}
        if not counts or page.name.endswith(".zh-CN.md"):
            continue
        mean = statistics.fmean(counts.values())
        long = [each for each, count in counts.items() if count > LONG]
        fails = mean > MEAN or len(long) > SHARE * len(counts) or max(counts.values()) > MOST
        failed += fails
        if fails or files:
            print(f"{page.name}: {mean:.1f} words, {len(long)} of {len(counts)} over {LONG}")
        for each in long if fails or files else ():
            print(f"  {counts[each]}: {each[:160]}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
