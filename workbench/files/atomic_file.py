"""A file appears whole or not at all, and what cannot be written is known early.

Every file that this library writes comes through here, so that one place knows what a path may be:
a file, a link to one, a device, a pipe, a descriptor of this process.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import os
import shutil
import stat
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Literal

from workbench.errors import OutputError

# A full disk takes an empty file, and often a few bytes in one that is there.
_PROBE_BYTES = 64 << 10
_COPY_BYTES = 1 << 20
# What a step of GitHub Actions writes to: each line of the step adds to it.
_STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
_MOST_LINKS = 40
_REFUSED = (
    (stat.S_ISDIR, "it is a directory"),
    (stat.S_ISBLK, "it is a disk or another block device"),
    (stat.S_ISSOCK, "it is a socket"),
)


@dataclasses.dataclass(frozen=True)
class _Place:
    """What a path leads to.

    Attributes:
      path: behind all links, for a file.
      way: how new content gets there. A file is replaced by a new one where nothing but its content
        changes by that, else overwritten. A device or a pipe takes the bytes.
      descriptor: of this process, where the path names one; else None.
    """

    path: Path
    way: Literal["replace", "overwrite", "append", "send"]
    descriptor: int | None = None


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Hands out a path to write to; on success what was written there becomes that of `path`.

    Whatever goes wrong meanwhile, `path` keeps what it had and nothing is left beside it. The
    directory must exist. A link still leads to its file, which has the new content and keeps its
    mode and owner; a device or a pipe takes the bytes; the summary of a step of GitHub Actions
    keeps what it has and gets more.

    Raises:
      OutputError: the file cannot be written; the message names `path`.
    """
    with writing(path):
        place = _place(path)
        with _part(place) as part:
            yield part
            _deliver(part, place)


def put_in_place(part: Path, path: str | os.PathLike[str]) -> None:
    """Makes a finished file of the same directory the content of `path`, as `replacing` does.

    Raises:
      OutputError: the file cannot be written; the message names `path`.
    """
    with writing(path):
        _deliver(part, _place(path))


@contextlib.contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turns the system's errors inside the block into OutputErrors that name `path`.

    A block inside another one writes a part of it: the outer path is what the user asked for.
    """
    try:
        yield
    except OSError as error:
        name = os.fsdecode(path) or "''"
        raise OutputError(f"{name}: cannot be written: {_reason(error)}") from error


def make_directory(path: str | os.PathLike[str]) -> Path:
    """Makes a directory and those above it, where they are missing.

    Raises:
      OutputError: it cannot be made; the message names `path`.
    """
    with writing(path):
        home = _named(path)
        home.mkdir(parents=True, exist_ok=True)
    return home


def require_writable_directory(path: str | os.PathLike[str]) -> None:
    """Checks that files can be written into a directory, which may not exist yet.

    A probe is written where the directory is, or would be made, and removed again.

    Raises:
      OutputError: names `path` and what stands in the way.
    """
    with writing(path):
        there = _first_that_exists(_named(path).absolute())
        probe = _beside(there / "probe")
        try:
            with probe.open("wb") as file:
                file.write(bytes(_PROBE_BYTES))
                file.flush()
                os.fsync(file.fileno())
        finally:
            with contextlib.suppress(OSError):
                probe.unlink(missing_ok=True)


def require_writable_file(path: str | os.PathLike[str]) -> None:
    """Checks that a file can be written, in a directory that may not exist yet.

    Raises:
      OutputError: names what stands in the way.
    """
    with writing(path):
        place = _place(path)
        here = place.way in ("overwrite", "send") and place.descriptor is None
        if here and not os.access(place.path, os.W_OK):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
        if place.way in ("replace", "append"):
            require_writable_directory(place.path.parent)


def is_stdout(path: str | os.PathLike[str]) -> bool:
    """Whether a path names this process's standard output, such as /dev/stdout."""
    return _descriptor(Path(path)) == 1


def home_of(path: str | os.PathLike[str]) -> Path:
    """The directory of a file, for what is written beside it; of a device the working directory.

    Raises:
      OutputError: the file cannot be written; the message names `path`.
    """
    with writing(path):
        return Path() if _place(path).way == "send" else Path(path).parent


def _named(path: str | os.PathLike[str]) -> Path:
    """The path, whose name the system takes."""
    name = os.fsdecode(path)
    if not name:
        raise OSError("its path is empty")
    if "\0" in name:
        raise OSError("its path has a NUL character")
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        raise OSError("its path has characters that no file name can have") from None
    return Path(name)


def _first_that_exists(home: Path) -> Path:
    """The directory itself, or the one above it in which it would be made."""
    missing = []
    for there in (home, *home.parents):
        try:
            os.lstat(there)
        except (FileNotFoundError, NotADirectoryError):
            missing.append(there.name)
            continue
        if not there.is_dir():
            raise OSError(f"{there} is not a directory")
        longest = os.pathconf(there, "PC_NAME_MAX")
        if any(len(os.fsencode(name)) > longest for name in missing):
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        return there
    raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))


def _place(path: str | os.PathLike[str]) -> _Place:
    """What a path leads to.

    Raises:
      OSError: nothing can be written there.
    """
    named = _named(path)
    descriptor = _descriptor(named)
    if descriptor is not None:
        os.fstat(descriptor)
        return _Place(named, "send", descriptor)
    real = Path(os.path.realpath(named))
    try:
        status = named.stat()
    except (FileNotFoundError, NotADirectoryError):
        return _Place(real, "append" if _is_step_summary(real) else "replace")
    for is_kind, what in _REFUSED:
        if is_kind(status.st_mode):
            raise OSError(what)
    if not stat.S_ISREG(status.st_mode):
        return _Place(named, "send")
    if _is_step_summary(real):
        return _Place(real, "append")
    return _Place(real, "replace" if _can_be_replaced(real, status) else "overwrite")


def _can_be_replaced(real: Path, found: os.stat_result) -> bool:
    """Whether a new file can stand for this one.

    1. It has no second name, which would keep the old content. 2. Its owner can be kept. 3. Its
    directory takes a new file.
    """
    own = os.geteuid() in (0, found.st_uid)
    return found.st_nlink == 1 and own and os.access(real.parent, os.W_OK | os.X_OK)


def _is_step_summary(real: Path) -> bool:
    summary = os.environ.get(_STEP_SUMMARY)
    return bool(summary) and os.path.realpath(str(summary)) == str(real)


def _descriptor(path: Path) -> int | None:
    """The descriptor of this process that a path names, through any links; else None."""
    own = {os.path.realpath(f"/proc/{who}/fd") for who in ("self", "thread-self")}
    name = os.fspath(path)
    for _ in range(_MOST_LINKS):
        home, last = os.path.realpath(os.path.dirname(name) or "."), os.path.basename(name)
        if home in own:
            return int(last) if last.isdecimal() else None
        try:
            name = os.path.join(home, os.readlink(os.path.join(home, last)))
        except (OSError, ValueError):
            return None
    return None


@contextlib.contextmanager
def _part(place: _Place) -> Iterator[Path]:
    """Where to write before all of it is there."""
    if place.way != "replace":
        with tempfile.TemporaryDirectory(prefix="workbench-", ignore_cleanup_errors=True) as home:
            yield Path(home) / "part"
        return
    part = _beside(place.path)
    try:
        yield part
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def _deliver(part: Path, place: _Place) -> None:
    if place.way == "replace":
        _keep_mode_and_owner(part, place.path)
        try:
            part.replace(place.path)
            return
        except OSError as error:
            # A file that is mounted there, as containers do, can only be overwritten.
            if error.errno != errno.EBUSY:
                raise
    with part.open("rb") as source, _opened(place) as out:
        shutil.copyfileobj(source, out, _COPY_BYTES)


def _keep_mode_and_owner(part: Path, target: Path) -> None:
    try:
        before = target.stat()
    except FileNotFoundError:
        return
    with contextlib.suppress(OSError):
        os.chown(part, before.st_uid, before.st_gid)
    # Last: a change of the owner takes bits away.
    os.chmod(part, stat.S_IMODE(before.st_mode))


def _opened(place: _Place) -> BinaryIO:
    """The place itself, to be written on."""
    if place.descriptor is not None:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        return os.fdopen(os.dup(place.descriptor), "wb")
    if place.way != "append":
        # Neither a device nor a pipe is made here, and some systems refuse to make them.
        flags = os.O_WRONLY | os.O_NOCTTY | (os.O_TRUNC if place.way != "send" else 0)
        return os.fdopen(os.open(place.path, flags), "wb")
    out = place.path.open("ab+")
    if out.tell():
        out.seek(-1, os.SEEK_END)
        if out.read(1) != b"\n":
            out.write(b"\n")
    return out


def _beside(path: Path) -> Path:
    # Not with its name in it, which may be as long as a name can be.
    return path.with_name(f".workbench-{uuid.uuid4().hex[:8]}.part")


def _reason(error: OSError) -> str:
    """What the system says; libraries put it behind words of their own."""
    if isinstance(error, OutputError) and isinstance(error.__cause__, OSError):
        error = error.__cause__
    return os.strerror(error.errno) if error.errno else str(error).partition("\n")[0]
