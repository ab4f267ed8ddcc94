"""Checks the language of docs, docstrings and names: `make language`; with files, those alone.

Of README.md, CHANGELOG.md, the pages of docs/ and the docstrings of public names: a mean of at most
20 words a sentence, at most 5 % of the sentences over 25, none over 40. Of the package's modules:
names that say nothing are local, and no longer than a few lines.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.language.docstrings import paragraphs, public_docstrings
from tests.language.names import spans
from tests.language.sentences import sentences, words

MEAN, LONG, MOST = 20, 25, 40
SHARE = 0.05
NAME_LINES = 8
HOME = Path(__file__).resolve().parents[2]
PACKAGE = HOME / "workbench"


def main(files: list[str]) -> int:
    """Prints what is too long, or says nothing; 1 where there is any."""
    chosen = [Path(file).resolve() for file in files]
    pages = [path for path in chosen if path.suffix == ".md"] if files else _pages()
    failed = sum(_check(page.name, page.read_text("utf-8"), bool(files)) for page in pages)
    if not files:
        text = "\n\n".join(paragraphs(text) for _, text in public_docstrings(PACKAGE))
        failed += _check("docstrings of public names", text, False)
    modules = chosen if files else sorted(PACKAGE.rglob("*.py"))
    return int(failed + _check_names(path for path in modules if path.suffix == ".py") > 0)


def _pages() -> list[Path]:
    pages = [HOME / "README.md", HOME / "CHANGELOG.md", *sorted((HOME / "docs").glob("*.md"))]
    return [page for page in pages if not page.name.endswith(".zh-CN.md")]


def _check(name: str, text: str, always: bool) -> bool:
    """Whether a page fails; prints its figures then, or always."""
    counts = {sentence: words(sentence) for sentence in sentences(text)}
    if not counts:
        return False
    mean = statistics.fmean(counts.values())
    long = [sentence for sentence, count in counts.items() if count > LONG]
    fails = mean > MEAN or len(long) > SHARE * len(counts) or max(counts.values()) > MOST
    if fails or always:
        print(f"{name}: {mean:.1f} words, {len(long)} of {len(counts)} over {LONG}")
        for sentence in long:
            print(f"  {counts[sentence]}: {sentence[:160]}")
    return fails


def _check_names(modules: Iterable[Path]) -> int:
    """How many names fail; prints each."""
    failed = 0
    for path in modules:
        for span in sorted(spans(path.read_text("utf-8"))):
            if not 0 < span.lines <= NAME_LINES:
                failed += 1
                where = f"is used over {span.lines} lines" if span.lines else "is not local"
                print(f"{path}:{span.line}: {span.name!r} {where}")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
