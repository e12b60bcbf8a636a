"""Resumable files: atomic publication, resuming and locks between writers."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.storage_protocol import PARTIAL_PREFIX, ResumableFile
from tests.support.hypothesis_profiles import examples


class InterruptedDownload(Exception):
    """Raised to interrupt a download."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "mirror" / "a.xml.gz"


def list_names(path: Path) -> list[str]:
    return sorted(os.listdir(path.parent))


def leave_partial(path: Path, data: bytes, version: str = "v1") -> None:
    """Leave a partial file with this data."""
    with (
        contextlib.suppress(InterruptedDownload),
        LocalStorage().open_resumable(str(path), version) as partial,
    ):
        partial.write(data)
        raise InterruptedDownload


@contextlib.contextmanager
def write_in_child(path: Path, version: str, then: str) -> Iterator[subprocess.Popen[str]]:
    """Start a process that writes some bytes, waits for a line and then runs the statement ``then``."""
    code = (
        "import sys; from bioshards.corpus.storage.local_storage import LocalStorage\n"
        "with LocalStorage().open_resumable(sys.argv[1], sys.argv[2]) as part:\n"
        "    part.restart(); part.write(b'theirs')\n"
        "    print('ready', flush=True); sys.stdin.readline()\n"
        f"    {then}"
    )
    command = [sys.executable, "-c", code, str(path), version]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout
        assert child.stdin
        assert child.stdout.readline() == "ready\n"
        try:
            yield child
        finally:
            child.kill()


def let_continue(child: subprocess.Popen[str]) -> None:
    assert child.stdin
    child.stdin.write("\n")
    child.stdin.close()


def test_final_name_appears_or_is_replaced_with_commit(path: Path) -> None:
    with LocalStorage().open_resumable(str(path), "v1") as partial:
        assert partial.size == 0
        partial.write(b"some ")
        partial.write(b"bytes")
        assert partial.size == 10
        assert list_names(path) == [f"{PARTIAL_PREFIX}v1-a.xml.gz"]
        partial.commit()
        assert path.read_bytes() == b"some bytes"
    assert list_names(path) == ["a.xml.gz"]
    with LocalStorage().open_resumable(str(path), "v2") as partial:
        partial.write(b"new")
        assert path.read_bytes() == b"some bytes"
        partial.commit()
    assert path.read_bytes() == b"new"


def test_partial_can_be_restarted_while_it_is_read(path: Path) -> None:
    leave_partial(path, b"x" * (3 << 20))
    with LocalStorage().open_resumable(str(path), "v1") as partial:
        assert len(next(iter(partial.read_blocks()))) < 3 << 20
        partial.restart()
        assert partial.size == 0
        assert list(partial.read_blocks()) == []
        partial.write(b"new")
        partial.commit()
    assert path.read_bytes() == b"new"


def test_discard_removes_the_partial(path: Path) -> None:
    with LocalStorage().open_resumable(str(path), "v1") as partial:
        partial.write(b"wrong")
        partial.discard()
        partial.discard()
    assert list_names(path) == []


def test_partials_of_other_versions_are_removed(path: Path) -> None:
    leave_partial(path, b"old", "v1")
    leave_partial(path.with_name("b.xml.gz"), b"another file's", "v1")
    (path.parent / "c.xml.gz").write_bytes(b"a whole file")
    with LocalStorage().open_resumable(str(path), "v2") as partial:
        assert partial.size == 0
        partial.commit()
    assert list_names(path) == [f"{PARTIAL_PREFIX}v1-b.xml.gz", "a.xml.gz", "c.xml.gz"]


def test_partial_of_a_running_process_is_kept(path: Path) -> None:
    """The file was republished between the listings of two runs; each publishes its own version."""
    with write_in_child(path, "v1", "part.commit()") as child:
        with LocalStorage().open_resumable(str(path), "v2") as partial:
            partial.write(b"ours")
            partial.commit()
        assert path.read_bytes() == b"ours"
        let_continue(child)
        assert child.wait(60) == 0
        assert path.read_bytes() == b"theirs"
    assert list_names(path) == ["a.xml.gz"]


@pytest.mark.parametrize(
    ("then", "size", "remaining"),
    [
        ("part.commit()", 0, ["a.xml.gz"]),
        ("part.discard()", 0, []),
        ("raise OSError", 6, [f"{PARTIAL_PREFIX}v1-a.xml.gz"]),
    ],
)
def test_second_writer_waits_for_the_first(path: Path, then: str, size: int, remaining: list[str]) -> None:
    with write_in_child(path, "v1", then) as child:
        is_released = threading.Event()

        def release() -> None:
            is_released.set()
            let_continue(child)

        timer = threading.Timer(0.3, release)
        timer.start()
        with LocalStorage().open_resumable(str(path), "v1") as partial:
            assert is_released.is_set()
            assert partial.size == size
            if size == 0:
                partial.discard()
    assert list_names(path) == remaining


def test_file_not_found_error_of_the_caller_is_raised(path: Path) -> None:
    with (
        pytest.raises(FileNotFoundError, match="something else"),
        LocalStorage().open_resumable(str(path), "v1"),
    ):
        raise FileNotFoundError("something else")


def test_killed_process_leaves_its_partial_and_no_lock(path: Path) -> None:
    with write_in_child(path, "v1", "part.commit()") as child:
        child.send_signal(signal.SIGKILL)
        child.wait(60)
    assert not path.exists()
    with LocalStorage().open_resumable(str(path), "v1") as partial:
        assert partial.size in (0, 6), "what was not yet given to the system is lost"


STEPS = st.lists(
    st.one_of(
        st.binary(max_size=40).map(lambda data: ("write", data)),
        st.sampled_from(["restart", "read", "break"]).map(lambda word: (word, b"")),
    ),
    max_size=12,
)


@settings(max_examples=examples(60))
@given(steps=STEPS)
def test_any_sequence_of_steps_keeps_the_written_bytes(
    steps: list[tuple[str, bytes]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("part") / "a"
    expected = b""
    with contextlib.ExitStack() as stack:
        partial: ResumableFile = stack.enter_context(LocalStorage().open_resumable(str(path), "v1"))
        for step, data in steps:
            if step == "write":
                partial.write(data)
                expected += data
            elif step == "restart":
                partial.restart()
                expected = b""
            elif step == "read":
                assert b"".join(partial.read_blocks()) == expected
            else:
                stack.close()
                partial = stack.enter_context(LocalStorage().open_resumable(str(path), "v1"))
            assert partial.size == len(expected)
        partial.commit()
    assert path.read_bytes() == expected
