"""Tests of Dataflow templates: metadata and its patterns, the launcher, ``beam template``."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from google.cloud import dataflow
from google.protobuf import json_format  # type: ignore[import-untyped]
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.corpus.errors import UsageError
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.pipelines import cli, command_runner
from bioshards.pipelines.dataflow.settings import DEFAULTS
from bioshards.pipelines.execution import session
from bioshards.pipelines.options.parser import Parser
from bioshards.pipelines.registry import PIPELINES, load_parser
from bioshards.pipelines.templates import flex_metadata, launcher, template_writer
from tests.support.hypothesis_profiles import examples
from tests.support.paths import REPOSITORY

COMMITTED_METADATA = REPOSITORY / "docker/metadata"
IMAGE = "europe-west1-docker.pkg.dev/my-lab/images/bioshards-fetch:0.1.0"
REQUIRED_VALUES = {
    "input": "gs://my-bucket/a;s3://my-bucket/b/*.xml.gz",
    "output": "gs://my-bucket/out",
    "mirror": "gs://my-bucket/mirror",
    "vocab": "gs://my-bucket/vocab",
}
"""A value of each required parameter, except the input of fetch."""
EXAMPLES = {
    "enable_cleaning": "nfc,copyright",
    "connections": "16",
    "contact": "you@lab.org",
    "dedup": "exact",
    "drop_article_types": "correction,retraction,book-review",
    "drop_publication_types": "Published Erratum,Comment",
    "exclude_ids": "gs://my-bucket/benchmarks.txt",
    "formula_placeholder": "[FORMULA]",
    "input": "pubmed:baseline[1-10];pubmed:updates[-3:]",
    "keep_dropped": "true",
    "languages": "eng,fre",
    "max_seq_length": "512",
    "licences": "CC0,CC-BY",
    "max_rejected": "0.01",
    "max_shard_mb": "128",
    "min_words": "500",
    "exclude_parts": "boilerplate,footnote",
    "objective": "albert",
    "pubmed_url": "https://mirror.my-lab.org:8443/pubmed/",
    "include_parts": "abstract,body",
    "sets": "all",
    "titles": "false",
}
"""Values that README and docker/README.md show."""
INVALID_VALUES = {
    "enable_cleaning": ["nothing", "nfc copyright", ""],
    "connections": ["0", "-1", "1.5", "many", ""],
    "contact": ["you at lab", "a"],
    "dedup": ["fuzzy", "none|exact"],
    "exclude_ids": ["benchmarks.txt", "gs://a/b;gs://b/c"],
    "input": ["/data/pubmed", "gs://ab/c", "https://server/", "gs://my-bucket/a;", "local:"],
    "keep_dropped": ["yes", "True ", "1"],
    "max_seq_length": ["0", "12.5"],
    "licences": ["none", "GPL", "CC0;CC-BY"],
    "max_rejected": ["1.5", "-0.1", "1e-3%", "10"],
    "max_shard_mb": ["0", "1k"],
    "min_words": ["-1"],
    "mirror": ["mirror", "file:///tmp/x"],
    "output": ["/tmp/out", "gs://", "gs://-/", "gs://Bucket-In-Capitals/x"],
    "preset": ["bert", ""],
    "pubmed_url": [
        "http://mirror.my-lab.org/",
        "https://me:word@server/",
        "https://server/?a=b",
        "ftp://server/",
    ],
    "titles": ["no", ""],
    "vocab": ["vocab", "vocab;gs://my-bucket/vocab"],
}


def _iter_parameters() -> Iterator[tuple[str, dict[str, Any]]]:
    for pipeline in PIPELINES:
        for parameter in flex_metadata.make_metadata(pipeline)["parameters"]:
            yield pipeline, parameter


def _matches_pattern(parameter: dict[str, Any], value: str) -> bool:
    [regex] = parameter["regexes"]
    return re.search(regex, value) is not None and "\n" not in value


def _parse_template_arguments(pipeline: str, arguments: list[str]) -> argparse.Namespace:
    """Parse template parameters as ``beam run`` does."""
    parser = load_parser(pipeline)
    own_arguments, others = launcher.split_own_args(parser, arguments)
    assert not others
    options, rest = parser.parse_known_args(own_arguments)
    assert not rest
    return options


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_committed_metadata_is_up_to_date(pipeline: str) -> None:
    committed = (COMMITTED_METADATA / f"{pipeline}.json").read_text(encoding="utf-8")
    metadata = flex_metadata.make_metadata(pipeline)
    assert json.loads(committed) == metadata, (
        "python -m bioshards.pipelines.templates.flex_metadata docker/metadata"
    )
    json_format.ParseDict(
        metadata, dataflow.TemplateMetadata.pb(dataflow.TemplateMetadata())
    )  # valid for Dataflow's API
    assert (
        {path.stem for path in COMMITTED_METADATA.iterdir()}
        == set(PIPELINES)
        == set(flex_metadata.REQUIRED_PARAMETERS)
    )


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_every_option_is_a_parameter_with_help(pipeline: str) -> None:
    parameters = {one["name"]: one for one in flex_metadata.make_metadata(pipeline)["parameters"]}
    options = {
        name[2:].replace("-", "_")
        for action in load_parser(pipeline)._actions
        for name in action.option_strings
        if name.startswith("--") and not (flex_metadata.is_flag(action) and name.startswith("--no-"))
    }
    assert options - set(parameters) == {"help", "workers", "dry_run"} & options
    assert set(parameters) <= options
    for name, parameter in parameters.items():
        assert re.fullmatch("[a-z][a-z_]*", name)
        assert parameter["label"]
        assert len(parameter["helpText"]) > 10
        assert "%" not in parameter["helpText"].replace(" % ", "")
        assert parameter["groupName"]


def test_patterns_use_syntax_common_to_java_re2_and_python() -> None:
    """Without look-around, back-references and class escapes; only a dot and line ends are escaped."""
    for _, parameter in _iter_parameters():
        [regex] = parameter["regexes"]
        assert regex.startswith("^(")
        assert regex.endswith(")$")
        assert "(?" not in regex
        assert set(re.findall(r"\\(.)", regex)) <= {".", "r", "n"}


def test_patterns_match_valid_values_only() -> None:
    known = {parameter["name"] for _, parameter in _iter_parameters()}
    assert set(EXAMPLES) | set(INVALID_VALUES) <= known
    for pipeline, parameter in _iter_parameters():
        name = parameter["name"]
        if name in EXAMPLES and not (name == "input" and pipeline.startswith("shards")):
            assert _matches_pattern(parameter, EXAMPLES[name]), name
        for value in INVALID_VALUES.get(name, ()):
            assert not _matches_pattern(parameter, value), f"{name}={value}"
        if "defaultValue" in parameter:
            assert _matches_pattern(parameter, parameter["defaultValue"])
            with_default, without_option = (
                {
                    key: set(value) if isinstance(value, tuple) else value
                    for key, value in vars(namespace).items()
                }
                for namespace in (
                    _parse_template_arguments(pipeline, [f"--{name}={parameter['defaultValue']}"]),
                    _parse_template_arguments(pipeline, []),
                )
            )
            assert with_default == without_option, f"{pipeline}: {name}"


def test_parameters_without_default_are_text_fields() -> None:
    """A form would fill in a number, flag or choice, and so override a preset."""
    for _, parameter in _iter_parameters():
        assert (parameter["paramType"] == "TEXT") or "defaultValue" in parameter
        if parameter["paramType"] == "ENUM":
            values = [option["value"] for option in parameter["enumOptions"]]
            assert parameter["defaultValue"] in values
            assert all(_matches_pattern(parameter, value) for value in values)


@given(st.data())
@settings(max_examples=examples(50))
def test_parser_accepts_what_a_pattern_matches(data: st.DataObject) -> None:
    pipeline = data.draw(st.sampled_from(list(PIPELINES)))
    action = data.draw(st.sampled_from(list(flex_metadata.list_parameters(PARSERS[pipeline]).values())))
    value = data.draw(st.from_regex(flex_metadata.make_pattern(action), fullmatch=True))
    name = flex_metadata.option_name(action).replace("-", "_")
    parsed = getattr(_parse_template_arguments(pipeline, [f"--{name}={value}"]), action.dest)
    if flex_metadata.is_repeatable(action):
        assert parsed == [item.strip() for item in value.split(";") if item.strip()]


PARSERS: dict[str, Parser] = {pipeline: load_parser(pipeline) for pipeline in PIPELINES}


@pytest.mark.parametrize(
    ("pipeline", "missing"),
    [
        (name, parameter)
        for name, parameters in flex_metadata.REQUIRED_PARAMETERS.items()
        for parameter in parameters
    ],
)
def test_missing_required_parameter_is_refused(
    pipeline: str, missing: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    values = {**REQUIRED_VALUES, "input": "pubmed:"} if pipeline == "fetch" else REQUIRED_VALUES
    names = [name for name in flex_metadata.REQUIRED_PARAMETERS[pipeline] if name != missing]
    monkeypatch.setenv(launcher.PIPELINE_VARIABLE, pipeline)
    monkeypatch.setattr(session, "_open_remote_storage", lambda paths, beams: LocalStorage())
    dataflow_arguments = [
        "--runner=DataflowRunner",
        "--project=my-lab",
        "--region=us-central1",
        "--temp_location=gs://my-bucket/t",
    ]
    assert (
        launcher.main([*(f"--{name}={values[name]}" for name in names), *dataflow_arguments, "--no_auth"])
        == 2
    )
    stderr = capsys.readouterr().err
    assert f"--{missing}" in stderr
    assert "is missing" in stderr or "is local" in stderr


def test_launcher_arguments_become_options() -> None:
    options = _parse_template_arguments(
        "pubmed_to_shards",
        [
            "--input=pubmed:baseline[1-10]; gs://my-bucket/more ;",
            "--output=gs://my-bucket/out=1",
            "--keep_dropped=true",
            "--titles=False",
            "--treebank=true",
            "--max_rejected=0.01",
            "--languages=",
            "--disable_cleaning=copyright,nfc",
        ],
    )
    assert options.input == ["pubmed:baseline[1-10]", "gs://my-bucket/more"]
    assert options.output == "gs://my-bucket/out=1"
    assert (options.keep_dropped, options.titles, options.treebank, options.lower_case) == (
        True,
        False,
        True,
        None,
    )
    assert options.max_rejected == 0.01
    assert options.languages == ()
    assert options.cleaning
    assert not {"copyright", "nfc"} & set(options.cleaning)
    assert _parse_template_arguments("pubmed_to_shards", ["--keep_dropped=false"]).keep_dropped is False
    with pytest.raises(UsageError, match="titles=maybe is neither true nor false"):
        _parse_template_arguments("pubmed_to_shards", ["--titles=maybe"])


def test_launcher_runs_the_pipeline_of_the_image_with_known_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []

    def record_command(pipeline: str, arguments: list[str]) -> int:
        commands.append([pipeline, *arguments])
        return 0

    monkeypatch.setattr(launcher, "run_command", record_command)
    monkeypatch.setenv(launcher.PIPELINE_VARIABLE, "shards_to_words")
    beam_arguments = [
        "--runner=DataflowRunner",
        "--job_name=words-2026-11",
        "--template_location=gs://my-bucket/staging/template_launches/job_object",
        '--labels={"goog-dataflow-provided-template-type": "flex"}',
        "--sdk_container_image=host/image:1",
        "--no_use_public_ips",
    ]
    assert launcher.main(["--pretokenizer=white-space", *beam_arguments, "--of_a_launcher_to_come=1"]) == 0
    assert commands == [["shards_to_words", "--pretokenizer=white-space", *beam_arguments]]
    assert "--of_a_launcher_to_come=1 is passed over" in capsys.readouterr().err
    for name in ("", "shards_to_wrods"):
        monkeypatch.setenv(launcher.PIPELINE_VARIABLE, name)
        assert launcher.main([]) == 2
        assert "it is one of fetch, pubmed_to_shards" in capsys.readouterr().err
    assert len(commands) == 1


def _run_template_command(*arguments: str) -> int:
    return cli.main(["template", *arguments])


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_a_flex_template_is_a_container_spec(
    pipeline: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new/template.json"
    image = IMAGE.replace("fetch", pipeline.replace("_", "-"))
    assert _run_template_command(pipeline, "--template-file", str(out), "--image", image) == 0
    stdout = capsys.readouterr().out
    assert f"template: {out}\n" in stdout
    assert all(f"{name}=..." in stdout for name in flex_metadata.REQUIRED_PARAMETERS[pipeline])
    spec = json.loads(out.read_text())
    json_format.ParseDict(spec, dataflow.ContainerSpec.pb(dataflow.ContainerSpec()))
    assert spec["image"] == spec["defaultEnvironment"]["sdkContainerImage"] == image
    assert spec["metadata"] == json.loads((COMMITTED_METADATA / f"{pipeline}.json").read_text())
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
            "bioshards-fetch does",
        ),
        (["pmc_to_shards", "--template-file", "x.json", "--image", IMAGE], "does not start pmc_to_shards"),
        (
            ["fetch", "--template-file", "x.json", "--image", IMAGE, "--contact=me@lab.org"],
            "when the template is started",
        ),
        (
            ["fetch", "--template-file", "new/x.json", "--input=pubmed:", "--mirror=gs://my-bucket/m"],
            "needs --project",
        ),
        (["shards_to_words", "--template-file", "x.json", "--regoin=r"], "unknown option --regoin"),
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
    assert rest == ["--project=P", "--region=R", "--temp_location=gs://BUCKET/tmp"]
    [flex] = re.findall(r"--parameters='\^~\^(.*)'", stdout)
    parameters = {item["name"]: item for item in flex_metadata.make_metadata(pipeline)["parameters"]}
    for name, value in (pair.split("=") for pair in flex.split("~")):
        value = value.replace("BUCKET", "my-bucket")
        assert re.fullmatch(parameters[name]["regexes"][0], value)


def test_help_says_what_each_kind_freezes(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run_template_command("pmc_to_shards", "--help") == 0
    stdout = capsys.readouterr().out
    assert "inputs are frozen" in " ".join(stdout.split())
    assert "bioshards-pmc-to-shards:TAG" in stdout
    assert template_writer.DESCRIPTION.count("{0}") == 1
