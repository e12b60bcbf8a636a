"""Text files of benchmarks: UTF-8, either line ending, with or without a byte order mark.

Files with invalid UTF-8 are refused: they differ from the authors'.
"""

from __future__ import annotations

from collections.abc import Sequence

from bioshards.evaluate.benchmarks.definition import BenchmarkFileError, PathsByName

NumberedLines = Sequence[tuple[int, str]]
"""Lines without line endings, with 1-based numbers."""


def read_text(path: str) -> str:
    """Return the text of a UTF-8 file with its line endings, without a byte order mark.

    Raises:
        BenchmarkFileError: the file cannot be read, is not UTF-8, or contains a NUL.
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
    """Return the lines of a file. Only LF and CR LF end a line; other separators belong to the text.

    Raises:
        BenchmarkFileError: see :func:`read_text`.
    """
    rows = read_text(path).split("\n")
    if rows[-1] == "":
        rows.pop()
    return [(line_number, row.removesuffix("\r")) for line_number, row in enumerate(rows, 1)]


def get_only_path(files: PathsByName, name: str) -> str:
    """Return the path of a file that exists once in a benchmark.

    Raises:
        BenchmarkFileError: several files match.
    """
    first, *other_paths = files[name]
    if other_paths:
        raise BenchmarkFileError(
            other_paths[0], None, f"it may be the same file as {first}, and only one can be read"
        )
    return first


def quote_excerpt(text: str) -> str:
    """Return at most 60 characters of a text, quoted, for an error message."""
    return repr(text if len(text) <= 60 else f"{text[:57]}...")
