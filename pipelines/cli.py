"""The ``beam`` command: list pipelines, run one.

Beam is imported only when a pipeline runs, so that ``beam list`` and ``--help`` answer at once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from bioshards.corpus.errors import OK, USAGE_ERROR, suggest_nearest
from bioshards.pipelines.commands import PIPELINES, run_command

USAGE = """\
usage: beam list
       beam run PIPELINE --output DIR [options]
       beam run PIPELINE --help

pipelines:
""" + "".join(f"  {name:21} {description}\n" for name, description in PIPELINES.items())


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    args = list(sys.argv[1:] if argv is None else argv)
    if args in (["list"], ["--list"]):
        print("\n".join(f"{name:21} {description}" for name, description in PIPELINES.items()))
        return OK
    if not args or args[0] in ("-h", "--help", "help"):
        print(USAGE, end="")
        return OK if args else USAGE_ERROR
    if args[0] != "run":
        return _print_usage_error(f"unknown command {args[0]!r}", args[0], ["run", "list"])
    if len(args) < 2 or args[1] in ("-h", "--help"):
        print(USAGE, end="")
        return OK if len(args) > 1 else USAGE_ERROR
    if args[1] not in PIPELINES:
        return _print_usage_error(f"unknown pipeline {args[1]!r}", args[1], list(PIPELINES))
    return run_command(args[1], args[2:])


def _print_usage_error(message: str, unknown: str, known: list[str]) -> int:
    hint = suggest_nearest(unknown, known, 0.4) or f"; there are: {', '.join(known)}"
    print(f"beam: {message}{hint}", file=sys.stderr)
    return USAGE_ERROR


if __name__ == "__main__":
    sys.exit(main())
