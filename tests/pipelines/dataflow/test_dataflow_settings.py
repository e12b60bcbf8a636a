"""Tests of Dataflow's default options, option checks and job status messages."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from hypothesis import given
from hypothesis import strategies as st

from bioshards.corpus.download.mirror import Mirror
from bioshards.corpus.errors import UsageError
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.pipelines import cli
from bioshards.pipelines.cli import PIPELINES, load_pipeline
from bioshards.pipelines.context import JobSpec, RunContext
from bioshards.pipelines.dataflow import job_status, settings
from bioshards.pipelines.dataflow.settings import MAX_WORKERS
from bioshards.pipelines.inputs import downloads

REQUIRED_OPTIONS = ["--project=my-lab", "--region=us-central1", "--temp_location=gs://my-bucket/tmp"]
JOB = JobSpec("pubmed_to_shards", "gs://my-bucket/out", num_items=1600)


def apply_settings(*arguments: str, job: JobSpec = JOB) -> dict[str, Any]:
    """Check options, apply defaults, and return all Beam options."""
    options = PipelineOptions(["--runner=DataflowRunner", *REQUIRED_OPTIONS, *arguments])
    settings.check_options(options)
    settings.set_defaults(options, job)
    all_options: dict[str, Any] = options.get_all_options()
    return all_options


def test_missing_options_get_defaults() -> None:
    options = apply_settings()
    assert options["machine_type"] == "e2-standard-4"
    assert options["disk_size_gb"] == 25
    assert options["number_of_worker_harness_threads"] == 1
    assert options["save_main_session"] is False
    assert options["max_num_workers"] == MAX_WORKERS
    assert options["labels"] == ["bioshards=0-2-0", "pipeline=pubmed_to_shards"]
    assert all(re.fullmatch(r"[a-z][a-z0-9_-]*=[a-z0-9_-]*", label) for label in options["labels"])


def test_given_options_are_kept() -> None:
    given = {
        "machine_type": "n2-highmem-8",
        "disk_size_gb": 60,
        "number_of_worker_harness_threads": 3,
        "autoscaling_algorithm": "NONE",
        "job_name": "mine",
        "max_num_workers": 400,
    }
    options = apply_settings(
        *(f"--{name}={value}" for name, value in given.items()), "--save_main_session", "--label=a=b"
    )
    assert {name: options[name] for name in given} == given
    assert options["save_main_session"] is True
    assert options["labels"] == ["a=b"]


@given(st.integers(0, 100_000), st.integers(1, 64))
def test_there_are_no_more_machines_than_items(items: int, vcpus: int) -> None:
    max_workers = settings.choose_max_workers(items, f"n2-standard-{vcpus}")
    assert 1 <= max_workers <= MAX_WORKERS
    assert (max_workers - 1) * vcpus < max(1, items)
    assert max_workers == MAX_WORKERS or max_workers * vcpus >= items


def test_max_workers_depends_on_the_machine_type() -> None:
    for machine, max_workers in {
        "x": 4,
        "e2-standard-4": 1,
        "n2-custom-2-8192": 2,
        "c3-highmem-8-lssd": 1,
    }.items():
        options = apply_settings(f"--machine_type={machine}", job=JobSpec("fetch", "gs://b/o", 4))
        assert options["max_num_workers"] == max_workers
    assert apply_settings(job=JobSpec("fetch", "gs://b/o", 4))["max_num_workers"] == 1


def test_max_workers_is_at_least_the_initial_workers() -> None:
    assert apply_settings("--num_workers=40")["max_num_workers"] == 40


def test_a_job_is_named_after_its_output() -> None:
    names = {
        settings.make_job_name(JobSpec(pipeline, output, 1))
        for pipeline in PIPELINES
        for output in ("gs://my-bucket/out", "gs://my-bucket/out2")
    }
    assert len(names) == 2 * len(PIPELINES)
    assert all(re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", name) and len(name) <= 63 for name in names)
    assert settings.make_job_name(JOB) == "bioshards-pubmed-to-shards-f577f9f3"


@pytest.mark.parametrize(
    "arguments", [["--runner=DataflowRunner"], ["--runner", "dataflow"], ["--runner=a.b.DataflowRunner"]]
)
def test_the_runner_is_known_by_all_its_names(arguments: list[str]) -> None:
    assert settings.is_dataflow_runner(["--region=x", *arguments])
    assert not settings.is_dataflow_runner(["--region=x", "--runner=PortableRunner", "--dataflow_endpoint=x"])
    assert not settings.is_dataflow_runner(["--runner", "PrismRunner", "--job_name", "dataflow"])


def test_misspelt_runner_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "out"
    output.mkdir()
    for runner, message in (
        ("DataflowRuner", r"did you mean DataflowRunner\?"),
        ("no.such.Runner", "cannot be loaded: No module"),
    ):
        assert cli.main(["run", "pubmed_to_shards", "--output", str(output), f"--runner={runner}"]) == 2
        assert re.search(message, capsys.readouterr().err)
    assert not list(output.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            REQUIRED_OPTIONS[1:],
            r"needs --project \(the project that runs the job and pays for it, as --project=my-lab\)\.",
        ),
        ([], r"needs --project .*; --region .*; --temp_location \(a folder .*gs://my-bucket/tmp\)"),
        ([*REQUIRED_OPTIONS, "--project=1234567890"], r"Invalid Project ID \(1234567890\)"),
        ([*REQUIRED_OPTIONS, "--temp_location=gs://ab/tmp"], r"Invalid GCS bucket \(gs://ab/tmp\)"),
        ([*REQUIRED_OPTIONS, "--temp_location=gs://my-bucket"], "Invalid GCS path: 'gs://my-bucket'"),
        ([*REQUIRED_OPTIONS, "--temp_location=/tmp/x"], r"Invalid GCS path \(/tmp/x\)"),
        ([*REQUIRED_OPTIONS, "--staging_location=s3://bucket/x"], r"Invalid GCS path \(s3://bucket/x\)"),
        ([*REQUIRED_OPTIONS, "--job_name=My_Job"], r"Invalid job_name \(My_Job\)"),
        ([*REQUIRED_OPTIONS, "--template_location=gs://b/x.json"], "would only write the job"),
        (
            [*REQUIRED_OPTIONS, "--dry_run"],
            r"^beam: .* --dry_run: expected one argument \(did you mean --dry-run\?\)\.",
        ),
        ([*REQUIRED_OPTIONS, "--dry_run=True"], "--dry_run is Beam's and says nothing: give --dry-run"),
        (
            [*REQUIRED_OPTIONS, "--machin_type=x"],
            r"unknown option --machin_type \(did you mean --machine_type\?\)",
        ),
    ],
)
def test_missing_or_invalid_options_are_refused(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    valid_options = [
        "--input",
        "gs://my-bucket/in",
        "--output",
        "gs://my-bucket/out",
        "--runner=DataflowRunner",
    ]
    assert cli.main(["run", "pubmed_to_shards", *valid_options, *arguments]) == 2
    assert re.search(message, capsys.readouterr().err)


def test_no_option_of_beam_is_taken_for_a_misspelling_of_ours() -> None:
    beam_parser = ArgumentParser(conflict_handler="resolve")
    for options_type in PipelineOptions.__subclasses__():
        if "_add_argparse_args" in vars(options_type):
            options_type._add_argparse_args(beam_parser)
    beam_args = [f"{name}=1" for name in beam_parser._option_string_actions if name not in ("-h", "--help")]
    assert len(beam_args) > 150
    for name in PIPELINES:
        assert load_pipeline(name).make_parser().parse_known_options(beam_args)[1] == beam_args


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--input", "here"), "--input here is local"),
        ((), "sample/pubmed is local"),
        (("--input", "gs://b/in", "--mirror", "there"), "--mirror there is local"),
    ],
)
def test_local_paths_are_refused(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    valid_options = ("--output", "gs://my-bucket/out", "--runner=DataflowRunner", *REQUIRED_OPTIONS)
    assert cli.main(["run", "pubmed_to_shards", *arguments, *valid_options]) == 2
    assert f"{message}; Dataflow's workers need gs://" in capsys.readouterr().err


def test_missing_cloud_library_error_names_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "apache_beam.runners.dataflow.internal.apiclient", None)
    with pytest.raises(UsageError, match=r"pip install '\.\[cloud\]'"):
        apply_settings()


def test_download_slots_share_the_limits_of_a_server(tmp_path: Path) -> None:
    """Remote slots divide the limits of the server; processes of one machine share them."""
    server = downloads.make_server("https://server/", None, 4, 8.0)
    mirror = Mirror(LocalStorage(), str(tmp_path))
    remote_plan = downloads.make_download_plan(mirror, server, workers=16, is_local_run=False)
    limiters = [
        remote_plan.server_for_slot(name).rate_limiter for name in ("a.xml", "b.xml", "c.xml", "d.xml")
    ]
    assert remote_plan.slots == downloads.REMOTE_SLOTS == len({limiter.server_name for limiter in limiters})
    assert sum(limiter.max_connections for limiter in limiters) == 4
    assert sum(limiter.requests_per_second for limiter in limiters) == 8
    assert remote_plan.server_for_slot("a.xml").rate_limiter == limiters[0]
    local_plan = downloads.make_download_plan(mirror, server, workers=16, is_local_run=True)
    assert local_plan.server_for_slot("a.xml") == local_plan.server_for_slot("b.xml") == server


# Messages of detached and failed jobs


def make_context(*arguments: str) -> RunContext:
    options = PipelineOptions([*arguments])
    return RunContext(True, settings.is_dataflow_runner(arguments), options, LocalStorage(), ())


def make_dataflow_context() -> RunContext:
    context = make_context("--runner=DataflowRunner", *REQUIRED_OPTIONS)
    settings.set_defaults(context.beam_options, JOB)
    return context


def test_detached_message_without_a_job_id_shows_how_to_find_the_job() -> None:
    message = job_status.format_detached_message(make_dataflow_context(), None, JOB)
    assert f"--filter=name={settings.make_job_name(JOB)} --region=us-central1 --project=my-lab" in message


def test_detached_message_of_other_runners() -> None:
    message = job_status.format_detached_message(
        make_context("--runner=PortableRunner", "--job_endpoint=localhost:8099"),
        SimpleNamespace(_job_id="job-7"),
        JOB,
    )
    assert "job job-7 goes on if its runner is a cluster" in message
    assert "finished when gs://my-bucket/out/manifest.json is there" in message
    assert (
        job_status.format_detached_message(make_context("--runner=DirectRunner"), SimpleNamespace(), JOB)
        == ""
    )
    own_server = make_context("--runner=FlinkRunner")
    for result in (None, SimpleNamespace(_job_id="job-7")):  # its job server ends with the command
        assert job_status.format_detached_message(own_server, result, JOB) == ""


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("CANCELLED, Error:\nNone", "job 7 was cancelled. Completed work is kept; run the same"),
        ("FAILED, Error:\nNone", "job 7 failed: it does not say why. Completed work is kept"),
        ("FAILED, Error:\nQuota is out.", "job 7 failed: Quota is out. Completed work is kept"),
        (
            "FAILED, Error:\nTraceback (most recent call last):\n  File x\n"
            "bioshards.corpus.storage.local_storage.StoreError: no room [while running "
            "'Stage-ptransform-9']\n",
            "job 7 failed: bioshards.corpus.storage.local_storage.StoreError: no room. Completed work is "
            "kept",
        ),
        (
            "FAILED, Error:\nA work item was attempted 4 times without success. The worker lost contact",
            "perhaps because memory ran out: give a larger --machine_type. Completed work",
        ),
    ],
)
def test_failed_job_error_has_cause_and_page(state: str, expected: str) -> None:
    error = RuntimeError(f"Dataflow pipeline failed. State: {state}")
    message = str(
        job_status.error_from_runner(make_dataflow_context(), SimpleNamespace(job_id=lambda: "7"), error)
    )
    assert expected in message
    assert message.endswith("dataflow/jobs/us-central1/7?project=my-lab shows where it failed")


def test_lost_connection_to_a_job_is_no_failure() -> None:
    """After a network failure, Beam's client stops polling and asserts that the job has ended."""
    error = AssertionError("Job did not reach to a terminal state after waiting indefinitely. Console URL: x")
    message = str(
        job_status.error_from_runner(make_dataflow_context(), SimpleNamespace(job_id=lambda: "7"), error)
    )
    assert "lost sight of job 7, which GOES ON at Dataflow, and costs (Dataflow did not answer)" in message
    assert "gcloud dataflow jobs cancel 7 --region=us-central1 --project=my-lab" in message
    assert "failed" not in message
