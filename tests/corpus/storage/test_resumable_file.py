"""A file that arrives in pieces: its name only when it is whole, and never two writers of one part."""

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

from bioshards.corpus.storage.resumable_file import PARTIAL_PREFIX, ResumableFile, open_local_resumable


class Broken(Exception):
    """What breaks a download off."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "mirror" / "a.xml.gz"


def names(path: Path) -> list[str]:
    return sorted(os.listdir(path.parent))


def broken_off(path: Path, data: bytes, version: str = "v1") -> None:
    """Leave a part of this."""
    with contextlib.suppress(Broken), open_local_resumable(str(path), version) as part:
        part.write(data)
        raise Broken


@contextlib.contextmanager
def writing_elsewhere(path: Path, version: str, then: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that has written some bytes, and then waits for a line to do what ``then`` says."""
    code = (
        "import sys; from bioshards.corpus.storage.resumable_file import open_local_resumable\n"
        "with open_local_resumable(sys.argv[1], sys.argv[2]) as part:\n"
        "    part.restart(); part.write(b'theirs')\n"
        "    print('ready', flush=True); sys.stdin.readline()\n"
        f"    {then}"
    )
    command = [sys.executable, "-c", code, str(path), version]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout
        assert running.stdin
        assert running.stdout.readline() == "ready\n"
        try:
            yield running
        finally:
            running.kill()


def go_on(running: subprocess.Popen[str]) -> None:
    assert running.stdin
    running.stdin.write("\n")
    running.stdin.close()


def test_the_name_is_there_when_the_file_is_whole_and_not_before(path: Path) -> None:
    with open_local_resumable(str(path), "v1") as part:
        assert part.size == 0
        part.write(b"some ")
        part.write(b"bytes")
        assert part.size == 10
        assert names(path) == [f"{PARTIAL_PREFIX}v1-a.xml.gz"]
        part.commit()
        assert path.read_bytes() == b"some bytes"
    assert names(path) == ["a.xml.gz"]


def test_a_file_of_that_name_is_replaced_at_once(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"old")
    with open_local_resumable(str(path), "v1") as part:
        part.write(b"new")
        assert path.read_bytes() == b"old"
        part.commit()
    assert path.read_bytes() == b"new"


def test_a_part_that_is_broken_off_is_gone_on_with(path: Path) -> None:
    broken_off(path, b"some ")
    with open_local_resumable(str(path), "v1") as part:
        assert part.size == 5
        assert b"".join(part.read_blocks()) == b"some "
        part.write(b"bytes")
        assert b"".join(part.read_blocks()) == b"some bytes"
        part.commit()
    assert path.read_bytes() == b"some bytes"


def test_a_part_can_be_begun_anew_even_while_it_is_read(path: Path) -> None:
    broken_off(path, b"x" * (3 << 20))
    with open_local_resumable(str(path), "v1") as part:
        assert len(next(iter(part.read_blocks()))) < 3 << 20
        part.restart()
        assert part.size == 0
        assert list(part.read_blocks()) == []
        part.write(b"new")
        part.commit()
    assert path.read_bytes() == b"new"


def test_nothing_is_left_of_what_is_discarded(path: Path) -> None:
    with open_local_resumable(str(path), "v1") as part:
        part.write(b"wrong")
        part.discard()
        part.discard()
    assert names(path) == []


def test_parts_of_other_versions_are_removed_and_no_others(path: Path) -> None:
    broken_off(path, b"old", "v1")
    broken_off(path.with_name("b.xml.gz"), b"another file's", "v1")
    (path.parent / "c.xml.gz").write_bytes(b"a whole file")
    with open_local_resumable(str(path), "v2") as part:
        assert part.size == 0
        part.commit()
    assert names(path) == [f"{PARTIAL_PREFIX}v1-b.xml.gz", "a.xml.gz", "c.xml.gz"]


def test_a_part_that_another_process_writes_is_not_taken_from_it(path: Path) -> None:
    """It was published anew between two runs' looks at the server; each ends with its own version."""
    with writing_elsewhere(path, "v1", "part.commit()") as other:
        with open_local_resumable(str(path), "v2") as part:
            part.write(b"ours")
            part.commit()
        assert path.read_bytes() == b"ours"
        go_on(other)
        assert other.wait(10) == 0
        assert path.read_bytes() == b"theirs"
    assert names(path) == ["a.xml.gz"]


@pytest.mark.parametrize(
    ("then", "size", "left"),
    [
        ("part.commit()", 0, ["a.xml.gz"]),
        ("part.discard()", 0, []),
        ("raise OSError", 6, [f"{PARTIAL_PREFIX}v1-a.xml.gz"]),
    ],
)
def test_who_comes_second_waits_and_finds_what_the_first_has_left(
    path: Path, then: str, size: int, left: list[str]
) -> None:
    with writing_elsewhere(path, "v1", then) as other:
        let_go = threading.Event()

        def release() -> None:
            let_go.set()
            go_on(other)

        waited = threading.Timer(0.3, release)
        waited.start()
        with open_local_resumable(str(path), "v1") as part:
            assert let_go.is_set()
            assert part.size == size
            if size == 0:
                part.discard()
    assert names(path) == left


def test_a_file_that_is_missed_meanwhile_is_an_error_like_any_other(path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="something else"), open_local_resumable(str(path), "v1"):
        raise FileNotFoundError("something else")


def test_a_killed_process_leaves_its_part_and_no_lock(path: Path) -> None:
    with writing_elsewhere(path, "v1", "part.commit()") as other:
        other.send_signal(signal.SIGKILL)
        other.wait(10)
    assert not path.exists()
    with open_local_resumable(str(path), "v1") as part:
        assert part.size in (0, 6), "what was not yet given to the system is lost"


STEPS = st.lists(
    st.one_of(
        st.binary(max_size=40).map(lambda data: ("write", data)),
        st.sampled_from(["restart", "read", "break"]).map(lambda word: (word, b"")),
    ),
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(steps=STEPS)
def test_whatever_is_done_it_holds_what_was_written(
    steps: list[tuple[str, bytes]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("part") / "a"
    expected = b""
    with contextlib.ExitStack() as stack:
        part: ResumableFile = stack.enter_context(open_local_resumable(str(path), "v1"))
        for step, data in steps:
            if step == "write":
                part.write(data)
                expected += data
            elif step == "restart":
                part.restart()
                expected = b""
            elif step == "read":
                assert b"".join(part.read_blocks()) == expected
            else:
                stack.close()
                part = stack.enter_context(open_local_resumable(str(path), "v1"))
            assert part.size == len(expected)
        part.commit()
    assert path.read_bytes() == expected
