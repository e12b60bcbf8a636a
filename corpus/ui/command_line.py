"""Run a command: from its work, or the exception that ends it, to what it prints and its exit code."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from bioshards.corpus.errors import (
    DISK_FULL,
    FAILED,
    INTERRUPTED,
    OK,
    USAGE_ERROR,
    BioshardsError,
    WorkerError,
    describe_install,
    escape_controls,
)
from bioshards.corpus.storage.local_storage import (
    DISK_FULL_ERRORS,
    get_temporary_folder,
    make_disk_full_error,
)

_RUST_PANIC: Final = "PanicException"
"""Failure within a library written in Rust (tokenizers, obstore): no ``Exception``, and in no module."""


class CommandResult(NamedTuple):
    """Last message and exit code of a command."""

    message: str
    exit_code: int = OK


@contextlib.contextmanager
def interrupt_on_sigterm() -> Iterator[None]:
    """Let a termination signal end the work as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous_handler = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous_handler)


def run_command(name: str, run: Callable[[], CommandResult], interrupted: str, out_of_memory: str) -> int:
    """Run a command, print its result or the error that ends it, and return the exit code.

    A closed standard output or error changes nothing: results are on disk.

    Args:
        name: the command, and the extra of the package with its libraries.
        run: its work.
        interrupted: message after Ctrl-C.
        out_of_memory: advice for out-of-memory errors.
    """
    try:
        with interrupt_on_sigterm():
            result = run()
            with contextlib.suppress(OSError):
                print(result.message, flush=True)
            return result.exit_code
    except KeyboardInterrupt:
        message, exit_code = interrupted, INTERRUPTED
    except ImportError as error:
        message = f"a library is missing ({error}): {describe_install(name)}"
        exit_code = USAGE_ERROR
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != _RUST_PANIC:
            raise
        message, exit_code = report_error(error, out_of_memory)
    with contextlib.suppress(OSError):
        print(f"{name}: {message}", file=sys.stderr)
    return exit_code


_NO_SPACE = tuple(os.strerror(number) for number in DISK_FULL_ERRORS)


def report_error(error: BaseException, out_of_memory: str = "give a machine with more") -> CommandResult:
    """Return the message and exit code for an exception that ends a command.

    The message is fit for a terminal: control characters are escaped.  With ``BIOSHARDS_TRACEBACK`` set, the
    traceback is printed to standard error.

    Args:
        error: the exception.
        out_of_memory: advice for out-of-memory errors.
    """
    if os.environ.get("BIOSHARDS_TRACEBACK"):
        print(escape_controls("".join(traceback.format_exception(error))), end="", file=sys.stderr)
    report = _make_report(error, out_of_memory)
    return report._replace(message=escape_controls(report.message))


def _make_report(error: BaseException, out_of_memory: str) -> CommandResult:
    if isinstance(error, WorkerError):
        if is_disk_full(error.detail.message) and not error.detail.is_ours:
            return CommandResult(describe_full_disk(), FAILED)
        return CommandResult(_with_hint(error.detail.description, error.detail.hint), FAILED)
    if isinstance(error, BioshardsError):
        return CommandResult(_with_hint(str(error), error.hint), error.exit_code)
    if isinstance(error, OSError) and error.errno in DISK_FULL_ERRORS and isinstance(error.filename, str):
        return _make_report(make_disk_full_error(error.filename, error.errno), out_of_memory)
    if is_disk_full(str(error)):  # also as text, from a library
        return CommandResult(describe_full_disk(), FAILED)
    if isinstance(error, OSError):
        location = f"{error.filename}: " if error.filename else ""
        return CommandResult(f"{location}{error.strerror or error}", FAILED)
    if isinstance(error, MemoryError) or "out of memory" in str(error):
        return CommandResult(f"memory ran out: {out_of_memory}", FAILED)
    hint = "BIOSHARDS_TRACEBACK=1 shows where it failed"
    return CommandResult(_with_hint(f"{type(error).__name__}: {error}", hint), FAILED)


def is_disk_full(text: str) -> bool:
    """Return True if the text of an error says that a disk is full."""
    return any(message in text for message in _NO_SPACE)


def describe_full_disk() -> str:
    """Return the message for a full disk whose place the error does not say."""
    folder = get_temporary_folder()
    try:
        return f"{DISK_FULL}. The temporary folder {folder} has {shutil.disk_usage(folder).free:,} bytes free"
    except OSError:
        return DISK_FULL


def _with_hint(message: str, hint: str) -> str:
    return f"{message.rstrip('.')}. {hint}" if hint else message
