"""The ``bioshards`` command: every command of the project under one name.

A command's module is imported only when that command runs, so that ``--help`` answers at once.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

from bioshards.corpus.ui.options import choose_command, open_standard_files
from bioshards.corpus.ui.terminal import escape_output

_USAGE: Final = """\
usage: bioshards COMMAND ...

  fetch             PubMed, PMC and Europe PMC into a mirror of verified files
  run PIPELINE      run a pipeline; bioshards list names them
  vocab             build, adopt or report on a vocabulary
  train             pretrain a model
  evaluate          fine-tune, score and compare models
  show              show documents as a person reads them, beside their source
  corpus            export, verify, or print statistics of a finished directory
  worker-pool       start workers for the runner of a cluster (Flink, Spark)
  doctor            check this machine: Python, libraries, disk, network, credentials, GPU

bioshards COMMAND --help describes a command.
"""
_PIPELINES: Final = "bioshards.pipelines.cli"
_MODULES: Final = {
    "fetch": _PIPELINES,
    "list": _PIPELINES,
    "run": _PIPELINES,
    "vocab": "bioshards.vocab.__main__",
    "train": "bioshards.train.__main__",
    "evaluate": "bioshards.evaluate.__main__",
    "show": "bioshards.show",
    "corpus": "bioshards.corpus.__main__",
    "worker-pool": "bioshards.pipelines.execution.worker_pool",
    "doctor": "bioshards.doctor",
}


@escape_output()
def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    open_standard_files()
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["--version"]:
        print(f"bioshards {import_module('bioshards').__version__}")
        return 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        name = choose_command("bioshards", tuple(_MODULES), words, _USAGE)
        module = import_module(_MODULES[name])
        if name == "fetch":
            return int(module.run_command(name, words[1:], "bioshards fetch"))
        return int(module.main(words, "bioshards") if name in ("list", "run") else module.main(words[1:]))
    except SystemExit as usage_exit:
        return int(usage_exit.code or 0)
    except KeyboardInterrupt:  # while modules are imported; a command says itself how it goes on
        print("\nstopped: run the same command again to continue", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
