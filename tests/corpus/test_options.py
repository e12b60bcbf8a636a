"""Command lines as dataclasses."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import pytest

from bioshards.corpus.ui.options import (
    Argument,
    Option,
    OptionParser,
    Overrides,
    int_at_least,
    server_url,
    worker_count,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    size: Annotated[int, "width"] = 3
    fast: Annotated[bool, "no waiting"] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseOptions:
    workers: Annotated[int, Option("processes (default: %(default)s)", parse=int_at_least(1))] = 2
    command: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(BaseOptions):
    folders: Annotated[tuple[str, ...], Argument(metavar="DIR")]
    output: Annotated[str, "folder to write"]
    titles: Annotated[bool | None, "keep titles"] = None
    dry_run: Annotated[bool, "write nothing"] = False
    order: Annotated[Literal["up", "down"] | None, "sort"] = None
    input: Annotated[tuple[str, ...], Option("repeatable", many="repeat")] = field(
        default_factory=lambda: ("sample",)
    )
    splits: Annotated[tuple[Literal["dev", "test"], ...], Option("splits", many="words")] = ("test",)
    settings: Annotated[Overrides[Settings], Option(" (default: %(default)s)", group="settings")]


def parse(*argv: str) -> Options:
    return OptionParser(prog="x").parse_options(Options, argv)


def test_a_command_line_is_the_dataclass_and_what_is_left_out_has_its_default() -> None:
    assert parse("A", "B", "--output", "O") == Options(folders=("A", "B"), output="O", settings=Overrides())
    switches = "--workers 4 --no-titles --dry-run --order down --size 5 --no-fast"
    lists = "--input p --input q --splits dev test"
    given = parse("A", "B", "--output", "O", *switches.split(), *lists.split())
    assert given == Options(
        folders=("A", "B"),
        output="O",
        workers=4,
        titles=False,
        dry_run=True,
        order="down",
        input=("p", "q"),
        splits=("dev", "test"),
        settings=Overrides({"size": 5, "fast": False}),
    )


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["A"], "the following arguments are required: --output"),
        (["A", "--out", "O"], "x: unknown option --out (did you mean --output?). See x --help"),
        (["A", "--output", "O", "--workers", "0"], "argument --workers: 0 is below 1"),
        (["A", "--output", "O", "--workers", "x"], "invalid whole number value: 'x'"),
        (["A", "--output", "O", "--order", "x"], "argument --order: invalid choice: 'x'"),
        (["A", "--output", "O", "--splits", "train"], "argument --splits: invalid choice: 'train'"),
        (["A", "--output", "O", "--size", "x"], "argument --size: invalid int value: 'x'"),
        (["A", "--output", "O", "--command", "x"], "unknown option --command"),
    ],
)
def test_an_invalid_command_line_is_refused(
    argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_info:
        parse(*argv)
    assert exit_info.value.code == 2
    assert message in capsys.readouterr().err


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    url: Annotated[str, Option("server", parse=server_url)]


def test_malformed_server_address_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for address in ("http://[", "ftp://server/"):
        with pytest.raises(SystemExit):
            OptionParser().parse_options(ServerOptions, ["--url", address])
        message = f"argument --url: {address} is no address like https://SERVER/FOLDER/"
        assert message in capsys.readouterr().err


def test_help_has_a_class_before_its_bases_and_the_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse("--help")
    stdout = capsys.readouterr().out
    assert stdout.index("--output") < stdout.index("--workers N")
    assert "processes (default: 2)" in stdout
    assert "settings:\n  --size N" in stdout
    assert "width (default: 3)" in stdout


def test_options_win_over_a_config_and_a_config_over_a_preset(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("\ufeffsize = 7\nfast = false\n")
    overrides: Overrides[Settings] = Overrides({"size": 9})
    preset = Settings(size=4)
    assert overrides.apply(preset) == Settings(size=9)
    assert overrides.with_config(str(config), Settings).apply(preset) == Settings(size=9, fast=False)


def test_home_directory_is_expanded_in_every_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/homes/somebody")
    options = parse("~/A", "--output=~/o", "--input", "~", "--input", "a~/b")
    assert options.folders == ("/homes/somebody/A",)
    assert options.output == "/homes/somebody/o"
    assert options.input == ("/homes/somebody", "a~/b")


def test_more_workers_than_cores_are_capped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("bioshards.corpus.ui.options.count_cpus", lambda: 4)
    assert [worker_count("4"), worker_count("1000")] == [4, 4]
    assert capsys.readouterr().err == "notice: 1000 workers are more than this process may use CPUs: 4 run\n"
