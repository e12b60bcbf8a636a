"""Lines of a benchmark's text file, whatever ends them, and errors that name the line.

Benchmarks were made on many machines: with CR LF, with a byte order mark, without a last end of line.
None of that is text.  Bytes that are no UTF-8 are: such a file is not the authors', and is refused
rather than read with other letters.
"""

from __future__ import annotations

from collections.abc import Sequence

from bioshards.evaluate.benchmarks.definition import BenchmarkFileError, PathsByName

NumberedLines = Sequence[tuple[int, str]]
"""Lines without their ends, with their numbers, from 1."""


def read_text(path: str) -> str:
    """The text of a UTF-8 file, ends of line as they are, without a byte order mark.

    Raises:
        BenchmarkFileError: it cannot be read, or is no UTF-8, or holds a NUL.
    """
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise BenchmarkFileError(path, None, f"it cannot be read ({error.strerror})") from error
    if b"\0" in data:
        raise BenchmarkFileError(
            path, _find_line_number(data, data.index(b"\0")), "it is not text: it holds a NUL"
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # The place is in error.object, which lacks the byte order mark.
        line = _find_line_number(error.object, error.start)
        byte = error.object[error.start]
        raise BenchmarkFileError(path, line, f"it is not UTF-8 text: byte {byte:#04x}") from error


def _find_line_number(data: bytes, position: int) -> int:
    return data.count(b"\n", 0, position) + 1


def read_lines(path: str) -> NumberedLines:
    """The lines of a file; only LF and CR LF end one, for text has other separators within its lines.

    Raises:
        BenchmarkFileError: as of :func:`contents`.
    """
    rows = read_text(path).split("\n")
    if rows[-1] == "":
        rows.pop()
    return [(line_number, row.removesuffix("\r")) for line_number, row in enumerate(rows, 1)]


def get_only_path(files: PathsByName, name: str) -> str:
    """The path of a file of which a set has one.

    Raises:
        BenchmarkFileError: there are several in the folder, and which of them is meant cannot be known.
    """
    first, *other_paths = files[name]
    if other_paths:
        raise BenchmarkFileError(
            other_paths[0], None, f"it may be the same file as {first}, and only one can be read"
        )
    return first


def quote_excerpt(text: str) -> str:
    """A piece of a file as an error shows it, not longer than a line of a terminal."""
    return repr(text if len(text) <= 60 else f"{text[:57]}...")
