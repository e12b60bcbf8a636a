"""How commands end: every kind of error has a message that helps, and an exit code."""

from __future__ import annotations

import errno

import pytest

from bioshards.corpus.command import FAILED, USAGE_ERROR, failure


class Refused(Exception):
    pass


class Gone(Exception):
    pass


@pytest.mark.parametrize(
    ("error", "message", "code"),
    [
        (Refused("give another folder"), "give another folder", USAGE_ERROR),
        (Gone("the loss is none"), "the loss is none", FAILED),
        (OSError(errno.ENOSPC, "No space left on device", "x"), "the disk is full. Make room", FAILED),
        (PermissionError(errno.EACCES, "Permission denied", "a/b"), "a/b: Permission denied", FAILED),
        (OSError("no number"), "no number", FAILED),
        (MemoryError(), "memory ran out: give less", FAILED),
        (RuntimeError("CUDA out of memory. Tried"), "memory ran out: give less", FAILED),
        (KeyError("x"), "KeyError: 'x'. BIOSHARDS_TRACEBACK=1 shows where it failed", FAILED),
    ],
)
def test_every_error_is_told(error: Exception, message: str, code: int) -> None:
    told, number = failure(error, (Refused,), (Gone,), "give less")
    assert told.startswith(message)
    assert number == code


def test_where_it_came_from_is_shown_to_who_asks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failure(Refused("x"), (Refused,), (), "")
    assert not capsys.readouterr().err
    monkeypatch.setenv("BIOSHARDS_TRACEBACK", "1")
    failure(Refused("x"), (Refused,), (), "")
    assert "Refused: x" in capsys.readouterr().err
