"""Ctrl-C and SIGTERM while a command imports its modules: one line, exit code 130."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bioshards import early_interrupt

STOP_AT_IMPORT = """\
import os, signal, sys

class StopAtImport:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["STOP_AT"]:
            os.kill(os.getpid(), getattr(signal, os.environ["STOP_BY"]))

sys.meta_path.insert(0, StopAtImport())
"""


@pytest.mark.parametrize(
    ("words", "module", "stop_by"),
    [
        ("bioshards run pubmed_to_shards --output out", "bioshards.pipelines.registry", "SIGINT"),
        ("bioshards run pubmed_to_shards --output out", "pyarrow", "SIGTERM"),
        ("bioshards.vocab build documents --output out", "bioshards.corpus.ui.options", "SIGTERM"),
        ("bioshards.vocab build documents --output out", "pyarrow.lib", "SIGINT"),
        ("bioshards.train examples --output out", "bioshards.train.config.train_job", "SIGINT"),
        ("bioshards.train examples --output out", "pyarrow.lib", "SIGINT"),
        ("bioshards.evaluate report results", "bioshards.evaluate.report.report_file", "SIGTERM"),
        ("bioshards.corpus stats documents", "pyarrow.lib", "SIGINT"),
    ],
)
def test_command_stopped_during_an_import_says_one_line(
    tmp_path: Path, words: str, module: str, stop_by: str
) -> None:
    (tmp_path / "sitecustomize.py").write_text(STOP_AT_IMPORT)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "STOP_AT": module, "STOP_BY": stop_by}
    completed = subprocess.run(
        [sys.executable, "-m", *words.split()],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.stderr.strip() == "stopped: run the same command again to continue"
    assert (completed.returncode, completed.stdout) == (130, "")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["python", "-m", "bioshards.train", "x"], True),
        (["python", "/opt/bin/beam", "run"], True),
        (["python", "-m", "pytest"], False),
        (["python", "-c", "import bioshards"], False),
        (["python", "-m"], False),
        (["python"], False),
        ([], False),
    ],
)
def test_only_commands_change_handlers(words: list[str], expected: bool) -> None:
    assert early_interrupt.is_command(words) is expected
