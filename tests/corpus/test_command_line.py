"""Errors of commands: the message and the exit code that each kind ends with."""

from __future__ import annotations

import errno
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from bioshards.corpus.errors import (
    FAILED,
    RESUME,
    USAGE_ERROR,
    BadFileError,
    DiskFullError,
    InvalidValueError,
    RunError,
    TransientStorageError,
    UserError,
    WorkerError,
    escape_controls,
)
from bioshards.corpus.ui.command_line import report_error

HOSTILE = "\x1b]0;mine\x07\x1b[2J\x9b31m\r\x08\u202egnp.exe\u2028\udc80"
ESCAPED = r"\x1b]0;mine\x07\x1b[2J\x9b31m\r\x08\u202egnp.exe\u2028\udc80"
NO_SPACE = OSError(errno.ENOSPC, "No space left on device")
NO_SPACE_AT = OSError(errno.ENOSPC, "No space left on device", "/nowhere/x")
DISK_FULL = DiskFullError("the disk is full: No space left on device in /a, where 0 bytes are free")


@pytest.mark.parametrize(
    ("error", "message", "exit_code"),
    [
        (UserError("give another folder"), "give another folder", USAGE_ERROR),
        (InvalidValueError("no size is 0"), "no size is 0", USAGE_ERROR),
        (RunError("the loss is none"), "the loss is none", FAILED),
        (BadFileError("checksum", "a is damaged"), "checksum: a is damaged", FAILED),
        (TransientStorageError("s3://a: silence"), "s3://a: silence. Completed work is kept; when", FAILED),
        (NO_SPACE, "the disk is full. Free some space", FAILED),
        (NO_SPACE_AT, "the disk is full: No space left on device in /, where ", FAILED),
        (DISK_FULL, f"{DISK_FULL}. Free some space there and run the same command again", FAILED),
        (RuntimeError(f"worker: {NO_SPACE}"), "the disk is full. Free some space", FAILED),
        (PermissionError(errno.EACCES, "Permission denied", "a/b"), "a/b: Permission denied", FAILED),
        (OSError("no number"), "no number", FAILED),
        (MemoryError(), "memory ran out: give less", FAILED),
        (RuntimeError("CUDA out of memory. Tried"), "memory ran out: give less", FAILED),
        (KeyError("x"), "KeyError: 'x'. BIOSHARDS_TRACEBACK=1 shows where it failed", FAILED),
        (ValueError("x"), "ValueError: x. BIOSHARDS_TRACEBACK=1 shows where it failed", FAILED),
    ],
)
def test_every_error_has_a_message_and_an_exit_code(error: Exception, message: str, exit_code: int) -> None:
    report = report_error(error, "give less")
    assert report.message.startswith(message)
    assert report.exit_code == exit_code


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (RunError("no answer from s3"), f"no answer from s3. {RESUME}"),
        (TransientStorageError("silence"), f"silence. {TransientStorageError.hint}"),
        (KeyError('a "quoted"\nkey'), f"the run failed: KeyError: 'a \"quoted\"\\nkey'. {RESUME}"),
        (DISK_FULL, f"{DISK_FULL}. {DiskFullError.hint}"),
    ],
)
def test_worker_error_is_restored_from_a_traceback(error: Exception, message: str) -> None:
    """A runner returns the text of the traceback; Beam adds the name of the step."""
    text = (
        f"Traceback (most recent call last):\n  File x\n{WorkerError.wrap(error)} [while running 'Stage']\n"
    )
    worker_error = WorkerError.find(text)
    assert worker_error is not None
    assert report_error(worker_error) == (message, FAILED)


def test_full_disk_of_unknown_place_is_reported_with_the_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for error in (NO_SPACE, WorkerError.wrap(NO_SPACE), RuntimeError(f"worker: {NO_SPACE}")):
        message = report_error(error).message
        assert message.startswith(
            "the disk is full. Free some space and run the same command again: it continues. The temporary "
            f"folder {tmp_path} has "
        )
        assert message.endswith(" bytes free")


@pytest.mark.parametrize(
    "text", ["", "KeyError: 'x'", 'BIOSHARDS-ERROR {"kind": "KeyErr', "BIOSHARDS-ERROR {}"]
)
def test_text_without_a_complete_marked_line_has_no_error(text: str) -> None:
    assert WorkerError.find(text) is None


def test_error_is_wrapped_once() -> None:
    error = WorkerError.wrap(RunError("x"))
    assert WorkerError.wrap(error) is error


@pytest.mark.parametrize(
    "error",
    [
        RunError(HOSTILE),
        BadFileError("checksum", HOSTILE),
        WorkerError.wrap(RunError(HOSTILE)),
        FileNotFoundError(errno.ENOENT, "No such file", HOSTILE),
        KeyError(HOSTILE),
        ValueError(HOSTILE),
    ],
    ids=lambda error: type(error).__name__,
)
def test_message_has_no_control_characters(
    error: Exception, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BIOSHARDS_TRACEBACK", "1")
    message = report_error(error).message
    assert r"\x1b]0;mine\x07\x1b[2J" in message
    for text in (message, capsys.readouterr().err):
        assert "mine" in text
        assert text.replace("\n", "").isprintable()


def test_text_without_control_characters_is_unchanged() -> None:
    text = "Füße, 日本語, é, \u00a0, a\ttab\nand a line"
    assert escape_controls(text) == text
    assert escape_controls(HOSTILE) == ESCAPED


@pytest.mark.parametrize("module", ["bioshards.__main__", "bioshards.pipelines.cli"])
def test_no_file_takes_the_place_of_a_closed_standard_file(tmp_path: Path, module: str) -> None:
    """A lock would, and the errors of workers be written into it."""
    script = (
        "import os, sys; os.closerange(0, 3); sys.stdout = sys.stderr = None; "
        f"from {module} import main; main(['list']); "
        "file = open(sys.argv[1], 'w'); file.write(f'{file.fileno()} {os.get_inheritable(2)}')"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "file")], check=True)
    assert (tmp_path / "file").read_text() == "3 True"
