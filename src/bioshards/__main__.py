"""The ``bioshards`` command: every command of the project under one name.

A command's module is imported only when that command runs, so that ``--help`` answers at once.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

_USAGE: Final = """\
usage: bioshards COMMAND ...

  fetch             PubMed, PMC and Europe PMC into a mirror of verified files
  run PIPELINE      run a pipeline; bioshards list names them
  vocab             build, adopt or report on a vocabulary
  train             pretrain a model, or plot training curves
  evaluate          fine-tune, score and compare models
  corpus            export, show, verify, or print statistics of a finished directory
  doctor            check this machine: Python, libraries, disk, network, credentials, GPU

bioshards COMMAND --help describes a command.
"""
_MODULES: Final = {
    "list": "bioshards.pipelines.cli",
    "run": "bioshards.pipelines.cli",
    "vocab": "bioshards.vocab.__main__",
    "train": "bioshards.train.__main__",
    "evaluate": "bioshards.evaluate.__main__",
    "corpus": "bioshards.corpus.__main__",
    "doctor": "bioshards.doctor",
}
COMMANDS: Final = ("fetch", *_MODULES)
_BEAM: Final = "bioshards.pipelines.cli"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in ("-h", "--help", "help"):
        print(_USAGE, end="")
        return 0 if words else 2
    if words == ["--version"]:
        print(f"bioshards {import_module('bioshards').__version__}")
        return 0
    if words[0] == "fetch":
        words = ["run", *words]
    if words[0] not in _MODULES:
        hint = import_module("bioshards.corpus.errors").suggest_nearest(words[0], COMMANDS, 0.4)
        print(f"bioshards: unknown command {words[0]!r}{hint or ' (see bioshards --help)'}", file=sys.stderr)
        return 2
    module = _MODULES[words[0]]
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        exit_code: int = import_module(module).main(words if module == _BEAM else words[1:])
    except KeyboardInterrupt:  # while modules are imported; a command says itself how it goes on
        print("\nstopped: run the same command again to continue", file=sys.stderr)
        return 130
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
