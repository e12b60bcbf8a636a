"""Tests of Dataflow templates: the launcher, ``beam template``."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from google.cloud import dataflow
from google.protobuf import json_format  # type: ignore[import-untyped]

from bioshards.corpus.errors import TransientStorageError
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.pipelines import cli, command_runner
from bioshards.pipelines.dataflow.settings import DEFAULTS
from bioshards.pipelines.execution import session
from bioshards.pipelines.registry import PIPELINES, load_parser
from bioshards.pipelines.templates import launcher, template_writer

IMAGE = "europe-west1-docker.pkg.dev/my-lab/images/bioshards-launcher:0.1.0"


def test_launcher_runs_the_pipeline_of_its_arguments_with_known_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []

    def record_command(pipeline: str, arguments: list[str]) -> int:
        commands.append([pipeline, *arguments])
        return 0

    monkeypatch.setattr(launcher, "run_command", record_command)
    beam_arguments = [
        "--runner=DataflowRunner",
        "--job_name=words-2026-11",
        "--template_location=gs://my-bucket/staging/template_launches/job_object",
        '--labels={"goog-dataflow-provided-template-type": "flex"}',
        "--sdk_container_image=host/image:1",
        "--no_use_public_ips",
    ]
    own = "--arguments=shards_to_words --pretokenizer=white-space --input 'gs://my-bucket/a b'"
    assert launcher.main([own, *beam_arguments, "--of_a_launcher_to_come=1"]) == 0
    assert commands == [
        ["shards_to_words", "--pretokenizer=white-space", "--input", "gs://my-bucket/a b", *beam_arguments]
    ]
    assert "--of_a_launcher_to_come=1 is passed over" in capsys.readouterr().err
    for arguments in ([], ["--arguments="], ["--arguments=shards_to_wrods --input=gs://my-bucket/a"]):
        assert launcher.main([*arguments, *beam_arguments]) == 2
        assert "it begins with one of fetch, pubmed_to_shards" in capsys.readouterr().err
    assert launcher.main(["--arguments=fetch --input 'pubmed:"]) == 2
    assert "cannot be split into words (No closing quotation)" in capsys.readouterr().err
    assert len(commands) == 1


def _run_template_command(*arguments: str) -> int:
    return cli.main(["template", *arguments])


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_a_flex_template_is_a_container_spec(
    pipeline: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new/template.json"
    assert _run_template_command(pipeline, "--template-file", str(out), "--image", IMAGE) == 0
    stdout = capsys.readouterr().out
    assert f"template: {out}\n" in stdout
    assert f"--parameters='^~^arguments={pipeline} --input=" in stdout
    spec = json.loads(out.read_text())
    json_format.ParseDict(spec, dataflow.ContainerSpec.pb(dataflow.ContainerSpec()))
    assert spec["image"] == spec["defaultEnvironment"]["sdkContainerImage"] == IMAGE
    [parameter] = spec["metadata"]["parameters"]
    assert parameter["name"] == "arguments"
    assert load_parser(pipeline).format_help() in parameter["helpText"]
    assert spec["sdkInfo"] == {"language": "PYTHON"}
    assert spec["defaultEnvironment"]["machineType"] == DEFAULTS.machine_type
    assert spec["defaultEnvironment"]["diskSizeGb"] == DEFAULTS.disk_size_gb


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "usage: beam list"),
        (["shards_to_wrods"], "did you mean shards_to_words?"),
        (["fetch"], "--template-file FILE is missing"),
        (["fetch", "--template-file", "s3://my-bucket/x.json"], "on gs:// alone"),
        (["fetch", "--template-file", "x.json", "--image", "gs://bucket/image"], "is no image like"),
        (["fetch", "--template-file", "x.json", "--image", "no blanks:1"], "is no image like"),
        (
            ["fetch", "--template-file", "x.json", "--image", "host:5000/r/bioshards-worker:1"],
            "bioshards-launcher does",
        ),
        (
            ["fetch", "--template-file", "x.json", "--image", IMAGE, "--contact=me@lab.org"],
            "when the template is started",
        ),
        (
            ["fetch", "--template-file", "new/x.json", "--input=pubmed:", "--mirror=gs://my-bucket/m"],
            "needs --project",
        ),
        (
            [
                "shards_to_words",
                "--template-file=x.json",
                "--input=gs://b/i",
                "--output=gs://b/o",
                "--regoin=r",
            ],
            "unknown option --regoin",
        ),
        (
            ["fetch", "--template-file", "x.json", "--input=pubmed:", "--runner=DirectRunner"],
            "a template is Dataflow's",
        ),
    ],
)
def test_wrong_command_line_is_refused(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert _run_template_command(*arguments) == 2
    captured = capsys.readouterr()
    assert message in captured.err + captured.out
    assert not list(tmp_path.rglob("*.json"))


def test_classic_template_is_a_run_with_a_template_location(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "new/template.json"
    commands: list[Sequence[str]] = []
    outcomes: list[tuple[str, int]] = [("{}", 0), ("", 0), ("", 3), ('{"a": 1}', 0), ("", 0)]

    def record_and_write(pipeline: str, arguments: Sequence[str]) -> int:
        commands.append([pipeline, *arguments])
        content, code = outcomes[len(commands) - 1]
        if content:
            out.write_text(content)
        return code

    monkeypatch.setattr(command_runner, "run_command", record_and_write)
    arguments = [
        "fetch",
        "--template-file",
        str(out),
        "--input=pubmed:",
        "--mirror=gs://my-bucket/m",
        "--project=my-lab",
    ]
    codes = [_run_template_command(*arguments) for _ in outcomes[:3]] + [
        _run_template_command(*arguments, "--runner=dataflow")
    ]
    assert codes == [0, 2, 3, 0]
    assert "no template is written" in capsys.readouterr().err
    assert _run_template_command(*arguments, "--dry-run") == 0  # a dry run writes no template
    assert not capsys.readouterr().err
    assert (
        commands[:3]
        == [["fetch", *arguments[3:], "--runner=DataflowRunner", f"--template_location={out}"]] * 3
    )
    assert commands[3] == ["fetch", *arguments[3:], "--runner=dataflow", f"--template_location={out}"]


def test_classic_template_stages_files_beside_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    commands: list[Sequence[str]] = []

    def record_command(_: str, arguments: Sequence[str]) -> int:
        commands.append(arguments)
        return 1

    monkeypatch.setattr(command_runner, "run_command", record_command)
    monkeypatch.setattr(session, "_open_remote_storage", lambda paths, beams: LocalStorage())
    arguments = [
        "fetch",
        "--template-file",
        "gs://my-bucket/templates/x.json",
        "--temp_location=gs://my-bucket/tmp",
    ]
    _run_template_command(*arguments)
    _run_template_command(*arguments, "--staging_location=gs://my-bucket/mine")
    staged = [
        [argument for argument in arguments if argument.startswith("--staging_location")]
        for arguments in commands
    ]
    assert staged == [
        ["--staging_location=gs://my-bucket/templates/staged"],
        ["--staging_location=gs://my-bucket/mine"],
    ]


def test_unwritable_template_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert (
        _run_template_command("fetch", "--template-file", str(tmp_path / "file/x.json"), "--image", IMAGE)
        == 2
    )
    assert "cannot be written: " in capsys.readouterr().err


def test_store_that_fails_is_no_usage_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise TransientStorageError("the store failed at gs://my-bucket/x.json: 503")

    monkeypatch.setattr(template_writer, "make_context", fail)
    assert _run_template_command("fetch", "--template-file", "gs://my-bucket/x.json", "--image", IMAGE) == 1
    assert "beam: the store failed at gs://my-bucket/x.json: 503. Completed" in capsys.readouterr().err


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_commands_shown_by_help_are_valid(pipeline: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run_template_command(pipeline, "--help") == 0
    stdout = capsys.readouterr().out.replace("\\\n", " ")
    [classic] = [
        line.split()
        for line in stdout.splitlines()
        if f"beam template {pipeline} --template-file" in line and "--project" in line
    ]
    _, rest = load_parser(pipeline).parse_known_args(classic[5:])
    assert rest == classic[-4:]
    assert rest[-1] == "--extra_package=WHEEL"
    [flex] = re.findall(r"--parameters='\^~\^arguments=(.*)'", stdout)
    name, *options = flex.split()
    assert name == pipeline
    assert options == classic[5:-4]


def test_help_says_what_each_kind_freezes(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run_template_command("pmc_to_shards", "--help") == 0
    stdout = capsys.readouterr().out
    assert "inputs are frozen" in " ".join(stdout.split())
    assert "bioshards-launcher:TAG" in stdout
    assert template_writer.DESCRIPTION.count("{0}") == 1
