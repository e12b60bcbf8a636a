"""What readers of all formats share: a file's text, the one file that is wanted, and ids that differ."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from ..datasets import PARTS, Files, Parts, WrongFile
from ..records import Record

_Record = TypeVar("_Record", bound=Record)


def text(path: str) -> str:
    """A file of UTF-8, without the byte-order mark that some begin with; line ends are left as they are.

    Raises:
        WrongFile: it is not UTF-8.
    """
    with open(path, "rb") as file:
        data = file.read().removeprefix(codecs.BOM_UTF8)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise WrongFile(path, line, f"it is not UTF-8 ({error.reason}: {data[error.start]:#04x})") from error


def only(paths: Sequence[str]) -> str:
    """The file that a pattern names.

    Raises:
        WrongFile: it names several, and it is not known which one is meant.
    """
    if len(paths) > 1:
        raise WrongFile(paths[1], None, f"there is another one, {paths[0]}, and one is wanted")
    return paths[0]


def by_part(read: Callable[[str], Sequence[Record]]) -> Callable[[Files], Parts]:
    """Reads a layout of a file for each part, called after it."""
    return lambda files: {part: read(only(files[part])) for part in PARTS if part in files}


def unique(path: str, records: Iterable[_Record]) -> list[_Record]:
    """The records, all with ids of their own.

    Raises:
        WrongFile: two have the same.
    """
    found: dict[str, _Record] = {}
    for record in records:
        if record.id in found:
            raise WrongFile(path, None, f"the id {record.id!r} is given twice")
        found[record.id] = record
    return [*found.values()]
