"""Templates for Dataflow: metadata that says what parsers say, the launcher's words, ``beam template``."""

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
from tests.support.paths import REPOSITORY

COMMITTED = REPOSITORY / "docker/metadata"
IMAGE = "europe-west1-docker.pkg.dev/my-lab/images/bioshards-fetch:0.1.0"
GIVEN = {
    "input": "gs://my-bucket/a;s3://my-bucket/b/*.xml.gz",
    "output": "gs://my-bucket/out",
    "mirror": "gs://my-bucket/mirror",
    "vocab": "gs://my-bucket/vocab",
}
"""A value for each required parameter but fetch's input."""
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
"""Values as README and docker/README.md have them."""
WRONG = {
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


def _parameters() -> Iterator[tuple[str, dict[str, Any]]]:
    for pipeline in PIPELINES:
        for parameter in flex_metadata.make_metadata(pipeline)["parameters"]:
            yield pipeline, parameter


def _takes(parameter: dict[str, Any], value: str) -> bool:
    [regex] = parameter["regexes"]
    return re.search(regex, value) is not None and "\n" not in value


def _asked(pipeline: str, words: list[str]) -> argparse.Namespace:
    """What ``beam run`` understands of a template's parameters."""
    parser = load_parser(pipeline)
    own, others = launcher.split_own_args(parser, words)
    assert not others
    options, rest = parser.parse_known_args(own)
    assert not rest
    return options


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_the_committed_metadata_is_what_the_parser_says(pipeline: str) -> None:
    text = (COMMITTED / f"{pipeline}.json").read_text(encoding="utf-8")
    made = flex_metadata.make_metadata(pipeline)
    assert json.loads(text) == made, "python -m bioshards.pipelines.templates.flex_metadata docker/metadata"
    json_format.ParseDict(
        made, dataflow.TemplateMetadata.pb(dataflow.TemplateMetadata())
    )  # as Dataflow's API knows it
    assert (
        {path.stem for path in COMMITTED.iterdir()}
        == set(PIPELINES)
        == set(flex_metadata.REQUIRED_PARAMETERS)
    )


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_every_option_is_a_parameter_that_says_what_it_is(pipeline: str) -> None:
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


def test_expressions_are_read_alike_by_java_re2_and_python() -> None:
    """No look-around, back-reference, class by letter or escape but of a dot, a bar or a line's end."""
    for _, parameter in _parameters():
        [regex] = parameter["regexes"]
        assert regex.startswith("^(")
        assert regex.endswith(")$")
        assert "(?" not in regex
        assert set(re.findall(r"\\(.)", regex)) <= {".", "r", "n"}


def test_defaults_and_examples_are_taken_and_what_is_wrong_is_not() -> None:
    known = {parameter["name"] for _, parameter in _parameters()}
    assert set(EXAMPLES) | set(WRONG) <= known
    for pipeline, parameter in _parameters():
        name = parameter["name"]
        if name in EXAMPLES and not (name == "input" and pipeline.startswith("shards")):
            assert _takes(parameter, EXAMPLES[name]), name
        for value in WRONG.get(name, ()):
            assert not _takes(parameter, value), f"{name}={value}"
        if "defaultValue" in parameter:
            assert _takes(parameter, parameter["defaultValue"])
            said, unsaid = (
                {key: set(value) if isinstance(value, tuple) else value for key, value in vars(told).items()}
                for told in (
                    _asked(pipeline, [f"--{name}={parameter['defaultValue']}"]),
                    _asked(pipeline, []),
                )
            )
            assert said == unsaid, f"{pipeline}: {name}"


def test_a_form_fills_in_nothing_that_would_overrule_a_preset() -> None:
    """Numbers, flags and choices that have no default of ours are texts, which stay empty."""
    for _, parameter in _parameters():
        assert (parameter["paramType"] == "TEXT") or "defaultValue" in parameter
        if parameter["paramType"] == "ENUM":
            values = [option["value"] for option in parameter["enumOptions"]]
            assert parameter["defaultValue"] in values
            assert all(_takes(parameter, value) for value in values)


@given(st.data())
@settings(max_examples=50, deadline=None)
def test_what_an_expression_takes_the_parser_takes(data: st.DataObject) -> None:
    pipeline = data.draw(st.sampled_from(list(PIPELINES)))
    action = data.draw(st.sampled_from(list(flex_metadata.list_parameters(PARSERS[pipeline]).values())))
    value = data.draw(st.from_regex(flex_metadata.make_pattern(action), fullmatch=True))
    name = flex_metadata.option_name(action).replace("-", "_")
    told = getattr(_asked(pipeline, [f"--{name}={value}"]), action.dest)
    if flex_metadata.is_repeatable(action):
        assert told == [one.strip() for one in value.split(";") if one.strip()]


PARSERS: dict[str, Parser] = {pipeline: load_parser(pipeline) for pipeline in PIPELINES}


@pytest.mark.parametrize(
    ("pipeline", "missing"),
    [(name, one) for name, all in flex_metadata.REQUIRED_PARAMETERS.items() for one in all],
)
def test_what_is_required_a_job_cannot_be_without(
    pipeline: str, missing: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {**GIVEN, "input": "pubmed:"} if pipeline == "fetch" else GIVEN
    names = [name for name in flex_metadata.REQUIRED_PARAMETERS[pipeline] if name != missing]
    monkeypatch.setenv(launcher.PIPELINE_VARIABLE, pipeline)
    monkeypatch.setattr(session, "_open_remote_storage", lambda paths, beams: LocalStorage())
    place = [
        "--runner=DataflowRunner",
        "--project=my-lab",
        "--region=us-central1",
        "--temp_location=gs://my-bucket/t",
    ]
    assert launcher.main([*(f"--{name}={given[name]}" for name in names), *place, "--no_auth"]) == 2
    said = capsys.readouterr().err
    assert f"--{missing}" in said
    assert "is missing" in said or "is local" in said


def test_the_launcher_s_words_become_options() -> None:
    told = _asked(
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
    assert told.input == ["pubmed:baseline[1-10]", "gs://my-bucket/more"]
    assert told.output == "gs://my-bucket/out=1"
    assert (told.keep_dropped, told.titles, told.treebank, told.lower_case) == (True, False, True, None)
    assert told.max_rejected == 0.01
    assert told.languages == ()
    assert told.cleaning
    assert not {"copyright", "nfc"} & set(told.cleaning)
    assert _asked("pubmed_to_shards", ["--keep_dropped=false"]).keep_dropped is False
    with pytest.raises(UsageError, match="titles=maybe is neither true nor false"):
        _asked("pubmed_to_shards", ["--titles=maybe"])


def test_the_launcher_runs_the_image_s_pipeline_with_what_beam_knows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[list[str]] = []

    def run(pipeline: str, words: list[str]) -> int:
        ran.append([pipeline, *words])
        return 0

    monkeypatch.setattr(launcher, "run_command", run)
    monkeypatch.setenv(launcher.PIPELINE_VARIABLE, "shards_to_words")
    beams = [
        "--runner=DataflowRunner",
        "--job_name=words-2026-11",
        "--template_location=gs://my-bucket/staging/template_launches/job_object",
        '--labels={"goog-dataflow-provided-template-type": "flex"}',
        "--sdk_container_image=host/image:1",
        "--no_use_public_ips",
    ]
    assert launcher.main(["--pretokenizer=white-space", *beams, "--of_a_launcher_to_come=1"]) == 0
    assert ran == [["shards_to_words", "--pretokenizer=white-space", *beams]]
    assert "--of_a_launcher_to_come=1 is passed over" in capsys.readouterr().err
    for name in ("", "shards_to_wrods"):
        monkeypatch.setenv(launcher.PIPELINE_VARIABLE, name)
        assert launcher.main([]) == 2
        assert "it is one of fetch, pubmed_to_shards" in capsys.readouterr().err
    assert len(ran) == 1


def _beam(*words: str) -> int:
    return cli.main(["template", *words])


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_a_flex_template_is_a_container_spec(
    pipeline: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new/template.json"
    image = IMAGE.replace("fetch", pipeline.replace("_", "-"))
    assert _beam(pipeline, "--template-file", str(out), "--image", image) == 0
    shown = capsys.readouterr().out
    assert f"template: {out}\n" in shown
    assert all(f"{name}=..." in shown for name in flex_metadata.REQUIRED_PARAMETERS[pipeline])
    spec = json.loads(out.read_text())
    json_format.ParseDict(spec, dataflow.ContainerSpec.pb(dataflow.ContainerSpec()))
    assert spec["image"] == spec["defaultEnvironment"]["sdkContainerImage"] == image
    assert spec["metadata"] == json.loads((COMMITTED / f"{pipeline}.json").read_text())
    assert spec["sdkInfo"] == {"language": "PYTHON"}
    assert spec["defaultEnvironment"]["machineType"] == DEFAULTS.machine_type
    assert spec["defaultEnvironment"]["diskSizeGb"] == DEFAULTS.disk_size_gb


@pytest.mark.parametrize(
    ("words", "said"),
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
def test_what_is_wrong_is_said(
    words: list[str],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert _beam(*words) == 2
    shown = capsys.readouterr()
    assert said in shown.err + shown.out
    assert not list(tmp_path.rglob("*.json"))


def test_a_classic_template_is_a_run_that_beam_writes_down(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "new/template.json"
    ran: list[Sequence[str]] = []
    ends: list[tuple[str, int]] = [("{}", 0), ("", 0), ("", 3), ('{"a": 1}', 0), ("", 0)]

    def run(pipeline: str, words: Sequence[str]) -> int:
        ran.append([pipeline, *words])
        written, code = ends[len(ran) - 1]
        if written:
            out.write_text(written)
        return code

    monkeypatch.setattr(command_runner, "run_command", run)
    words = [
        "fetch",
        "--template-file",
        str(out),
        "--input=pubmed:",
        "--mirror=gs://my-bucket/m",
        "--project=my-lab",
    ]
    codes = [_beam(*words) for _ in ends[:3]] + [_beam(*words, "--runner=dataflow")]
    assert codes == [0, 2, 3, 0]
    assert "no template is written" in capsys.readouterr().err
    assert _beam(*words, "--dry-run") == 0  # which is to write none
    assert not capsys.readouterr().err
    assert ran[:3] == [["fetch", *words[3:], "--runner=DataflowRunner", f"--template_location={out}"]] * 3
    assert ran[3] == ["fetch", *words[3:], "--runner=dataflow", f"--template_location={out}"]


def test_what_a_classic_template_needs_is_not_left_in_a_temporary_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran: list[Sequence[str]] = []

    def run(_: str, words: Sequence[str]) -> int:
        ran.append(words)
        return 1

    monkeypatch.setattr(command_runner, "run_command", run)
    monkeypatch.setattr(session, "_open_remote_storage", lambda paths, beams: LocalStorage())
    words = [
        "fetch",
        "--template-file",
        "gs://my-bucket/templates/x.json",
        "--temp_location=gs://my-bucket/tmp",
    ]
    _beam(*words)
    _beam(*words, "--staging_location=gs://my-bucket/mine")
    staged = [[word for word in words if word.startswith("--staging_location")] for words in ran]
    assert staged == [
        ["--staging_location=gs://my-bucket/templates/staged"],
        ["--staging_location=gs://my-bucket/mine"],
    ]


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert _beam("fetch", "--template-file", str(tmp_path / "file/x.json"), "--image", IMAGE) == 2
    assert "cannot be written: " in capsys.readouterr().err


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_the_commands_that_help_shows_are_taken(pipeline: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _beam(pipeline, "--help") == 0
    shown = capsys.readouterr().out.replace("\\\n", " ")
    [classic] = [
        line.split()
        for line in shown.splitlines()
        if f"beam template {pipeline} --template-file" in line and "--project" in line
    ]
    _, rest = load_parser(pipeline).parse_known_args(classic[5:])
    assert rest == ["--project=P", "--region=R", "--temp_location=gs://BUCKET/tmp"]
    [flex] = re.findall(r"--parameters='\^~\^(.*)'", shown)
    parameters = {item["name"]: item for item in flex_metadata.make_metadata(pipeline)["parameters"]}
    for name, value in (pair.split("=") for pair in flex.split("~")):
        value = value.replace("BUCKET", "my-bucket")
        assert re.fullmatch(parameters[name]["regexes"][0], value)


def test_help_says_what_each_kind_freezes(capsys: pytest.CaptureFixture[str]) -> None:
    assert _beam("pmc_to_shards", "--help") == 0
    shown = capsys.readouterr().out
    assert "inputs are frozen" in " ".join(shown.split())
    assert "bioshards-pmc-to-shards:TAG" in shown
    assert template_writer.DESCRIPTION.count("{0}") == 1
