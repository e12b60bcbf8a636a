"""Standard output and error of the commands, where text of strangers leaves the program.

Names of files, journals and models, and the messages of servers, may hold characters that a terminal obeys.
They are escaped here, whatever prints them.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any, TextIO, cast

from bioshards.corpus.errors import escape_controls


class EscapedStream:
    """A text stream that writes control characters as ``\\x1b``; :attr:`raw` writes them as they are.

    A pipe whose reader has ended (``bioshards list | head -1``) takes the rest in silence.
    """

    def __init__(self, raw: TextIO) -> None:
        self.raw = raw

    def write(self, text: str) -> int:
        try:
            self.raw.write(escape_controls(text))
        except BrokenPipeError:
            discard(self.raw)
        return len(text)

    def flush(self) -> None:
        try:
            self.raw.flush()
        except BrokenPipeError:
            discard(self.raw)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)


def discard(stream: TextIO) -> None:
    """Let a stream whose reader has ended write to nowhere, what it has buffered too."""
    null = os.open(os.devnull, os.O_WRONLY)
    with contextlib.suppress(OSError):  # a stream in memory has no number
        os.dup2(null, stream.fileno())
    os.close(null)


def escape_stream(stream: TextIO) -> TextIO:
    """Return a stream that writes to this one, control characters escaped."""
    is_escaped = stream is None or isinstance(stream, EscapedStream)  # None: the process has no such stream
    return stream if is_escaped else cast(TextIO, EscapedStream(stream))


def get_raw_stream(stream: TextIO) -> TextIO:
    """Return the stream below, for what draws with control characters on purpose."""
    return stream.raw if isinstance(stream, EscapedStream) else stream


@contextlib.contextmanager
def escape_output() -> Iterator[None]:
    """Escape what is printed, and write it out at the end; it decorates the function of each command."""
    with (
        contextlib.redirect_stdout(escape_stream(sys.stdout)) as stdout,
        contextlib.redirect_stderr(escape_stream(sys.stderr)),
    ):
        try:
            yield
        finally:
            if stdout is not None:
                with contextlib.suppress(OSError):  # a full disk: Python says so when it ends
                    stdout.flush()


def write_data(text: str) -> None:
    """Write documents or figures to standard output: escaped on a terminal, byte by byte anywhere else."""
    stream = get_raw_stream(sys.stdout)
    if stream.isatty():
        escape_stream(stream).write(text)
    elif hasattr(stream, "buffer"):
        stream.flush()
        stream.buffer.write(text.encode("utf-8", "backslashreplace"))
        stream.buffer.flush()
    else:  # a stream in memory, of a caller in Python
        stream.write(text)
