"""No command prints a character of a stranger's file that a terminal obeys, on standard output or error."""

from __future__ import annotations

import io
import json
import logging
import shutil
import sys
from pathlib import Path
from typing import Final

import pytest

from bioshards.__main__ import main
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.ui import terminal
from bioshards.evaluate.runs.results import write_result
from tests.support.evaluate.synthetic_results import make_result
from tests.support.outputs import save_manifest

pytestmark = pytest.mark.thorough  # this file takes minutes

Capture = pytest.CaptureFixture[str]

HOSTILE: Final = "\x1b[2Jx\x9b31m\x07\u202eend\u2066\r"
ESCAPED: Final = r"\x1b[2Jx\x9b31m\x07\u202eend\u2066\r"
OBEYED: Final = {
    *map(chr, (*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)))
} - {"\n", "\t"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of a stranger: documents, a manifest, a model's result, and an input, all with hostile names."""
    folder = tmp_path_factory.mktemp("hostile")
    inputs = folder / f"in{HOSTILE}"
    inputs.mkdir()
    (inputs / f"{HOSTILE}.jsonl").write_text(
        json.dumps({"id": "a", "text": f"It {HOSTILE} grew. It fell."}) + "\nno JSON\n"
    )
    command = ["run", "text_to_shards", "--input", str(inputs), "--output", str(folder / "out")]
    assert main([*command, "--workers", "1", "--disable-cleaning", "controls", "--max-rejected", "1"]) == 0
    shutil.copytree(folder / "out", folder / "forged")
    manifest = (folder / "forged" / "manifest.json").read_text()
    (shard,) = (folder / "forged" / "data").glob("*.parquet")
    forged = manifest.replace(shard.name, json.dumps(f"{HOSTILE}.parquet")[1:-1])
    save_manifest(folder / "forged", json.loads(forged))
    result = make_result(model=HOSTILE)
    write_result(LocalStorage(), str(folder / "results" / HOSTILE / "seed-0.json"), result)
    return folder


COMMANDS: Final = (
    "run text_to_shards --input {bad} --output {new} --workers 1",
    "run text_to_shards --input {input} --output {new} --workers 1 --max-rejected 1",
    "run text_to_shards --input {input} --output {new} --workers 1 --dry-run",
    "run shards_to_words --input {forged} --output {new} --workers 1",
    "show {out} --with-source",
    "show {forged}",
    "show {bad}",
    "corpus stats {out}",
    "corpus stats {forged}",
    "corpus verify {forged}",
    "corpus verify {bad}",
    "corpus export {forged}",
    "evaluate report {results} --output {bad}",
    "evaluate verify {bad}",
    "vocab report {bad}",
    "train {bad} --output {new}",
    "doctor {bad}",
    "{bad}",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_prints_what_a_terminal_obeys(
    folder: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BIOSHARDS_TRACEBACK", "1")
    names = {name: str(folder / name) for name in ("out", "forged", "results")}
    names |= {"bad": HOSTILE, "new": f"new{HOSTILE}", "input": str(folder / f"in{HOSTILE}")}
    capsys.readouterr()
    main([word.format_map(names) for word in command.split(" ")])
    out, err = capsys.readouterr()
    assert out + err
    assert not OBEYED & set(out + err)
    for page in (path for path in tmp_path.rglob("*") if path.is_file() and path.suffix in (".html", ".md")):
        assert not OBEYED & set(page.read_text())


def test_documents_keep_their_bytes_in_a_pipe(folder: Path, capsys: Capture) -> None:
    capsys.readouterr()
    assert main(["corpus", "export", str(folder / "out")]) == 0
    assert "\x9b31m" in capsys.readouterr().out


def test_all_that_is_printed_is_escaped(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal.escape_output():
        logging.StreamHandler().emit(logging.makeLogRecord({"msg": HOSTILE}))
        for stream in (sys.stdout, sys.stderr):
            print(HOSTILE, file=stream)
            stream.writelines([HOSTILE, "é\tß\n"])
        with terminal.escape_output():  # a command within a command
            print(HOSTILE)
    out, err = capsys.readouterr()
    assert out == f"{ESCAPED}\n{ESCAPED}é\tß\n{ESCAPED}\n"
    assert err == f"{ESCAPED}\n{ESCAPED}\n{ESCAPED}é\tß\n"
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdout", screen)
    terminal.write_data(HOSTILE)
    assert screen.getvalue() == ESCAPED
