"""``bioshards vocab``: build a vocabulary, adopt a published one, or rewrite the report of one."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from typing import Final

from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.ui.command_line import CommandResult, run_command
from bioshards.corpus.ui.options import parse_command
from bioshards.corpus.ui.progress import Progress
from bioshards.corpus.ui.terminal import escape_output
from bioshards.vocab.options import AdoptOptions, BuildOptions, ReportOptions, RewriteOptions

COMMANDS: Final[dict[str, tuple[type[ReportOptions], str]]] = {
    "build": (BuildOptions, "build a vocabulary from documents or counted words"),
    "adopt": (AdoptOptions, "make a vocabulary of a published one, with its ids"),
    "report": (RewriteOptions, "rewrite the report of a vocabulary"),
}


@escape_output()
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return its exit code."""
    argv = list(sys.argv[1:] if arguments is None else arguments)
    options = dataclasses.replace(parse_command("bioshards vocab", COMMANDS, argv), command=tuple(argv))
    return run_command(
        "vocab",
        lambda: CommandResult(_run_command(options, Progress(sys.stderr))),
        interrupted="stopped. No partial output is left: run the same command again",
        out_of_memory="give a higher --min-count, or a machine with more",
    )


def _run_command(options: ReportOptions, progress: Progress) -> str:
    from bioshards.vocab import commands  # here, so that --help does not wait for pyarrow

    match options:
        case BuildOptions():
            return commands.run_build(LocalStorage(), options, progress)
        case AdoptOptions():
            return commands.run_adopt(LocalStorage(), options, progress)
        case _:
            assert isinstance(options, RewriteOptions)
            return commands.run_report(LocalStorage(), options, progress)


if __name__ == "__main__":
    sys.exit(main())
