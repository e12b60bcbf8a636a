"""Run a command: from its work to what it prints and its exit code."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import NamedTuple

from bioshards.corpus.errors import INTERRUPTED, OK, USAGE_ERROR
from bioshards.corpus.ui.error_report import report_error


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
        message = f"a library is missing ({error}): pip install 'bioshards[{name}]'"
        exit_code = USAGE_ERROR
    except Exception as error:
        message, exit_code = report_error(error, out_of_memory)
    with contextlib.suppress(OSError):
        print(f"{name}: {message}", file=sys.stderr)
    return exit_code
