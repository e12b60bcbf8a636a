"""What a job on Dataflow is set to where the command line says nothing, and what it must say."""

from __future__ import annotations

import re
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
from bioshards.pipelines.context import JobSpec, RunContext
from bioshards.pipelines.dataflow import job_status, settings
from bioshards.pipelines.dataflow.settings import DEFAULTS, MAX_WORKERS
from bioshards.pipelines.inputs import downloads
from bioshards.pipelines.registry import PIPELINES

NEEDED = ["--project=my-lab", "--region=us-central1", "--temp_location=gs://my-bucket/tmp"]
TASK = JobSpec("pubmed_to_shards", "gs://my-bucket/out", num_items=1600)


def settled(*given: str, task: JobSpec = TASK) -> dict[str, Any]:
    """Beam's options of a run, after ours."""
    options = PipelineOptions(["--runner=DataflowRunner", *NEEDED, *given])
    settings.check_options(options)
    settings.set_defaults(options, task)
    everything: dict[str, Any] = options.get_all_options()
    return everything


def test_what_is_not_given_is_set() -> None:
    options = settled()
    for name in DEFAULTS.__slots__:
        assert options[name] == getattr(DEFAULTS, name)
    assert options["max_num_workers"] == MAX_WORKERS
    assert options["labels"] == ["bioshards=0-1-0", "pipeline=pubmed_to_shards"]
    assert all(re.fullmatch(r"[a-z][a-z0-9_-]*=[a-z0-9_-]*", label) for label in options["labels"])


def test_what_is_given_stays() -> None:
    given = {
        "machine_type": "n2-highmem-8",
        "disk_size_gb": 60,
        "number_of_worker_harness_threads": 3,
        "autoscaling_algorithm": "NONE",
        "job_name": "mine",
        "max_num_workers": 400,
    }
    options = settled(
        *(f"--{name}={value}" for name, value in given.items()), "--save_main_session", "--label=a=b"
    )
    assert {name: options[name] for name in given} == given
    assert options["save_main_session"] is True
    assert options["labels"] == ["a=b"]


@given(st.integers(0, 100_000), st.integers(1, 64))
def test_there_are_no_more_machines_than_items(items: int, at_a_time: int) -> None:
    most = settings.choose_max_workers(items, at_a_time)
    assert 1 <= most <= MAX_WORKERS
    assert (most - 1) * at_a_time < max(1, items)
    assert most == MAX_WORKERS or most * at_a_time >= items


def test_other_machines_may_have_one_process_only() -> None:
    for machine, most in {"x": 4, "e2-standard-4": 1, "n2-custom-2-8192": 2, "c3-highmem-8-lssd": 1}.items():
        options = settled(f"--machine_type={machine}", task=JobSpec("fetch", "gs://b/o", 4))
        assert options["max_num_workers"] == most
    assert settled(task=JobSpec("fetch", "gs://b/o", 4))["max_num_workers"] == 1


def test_a_run_may_begin_with_more_machines_than_would_be_its_most() -> None:
    assert settled("--num_workers=40")["max_num_workers"] == 40


def test_a_job_is_named_after_its_output() -> None:
    names = {
        settings.make_job_name(JobSpec(pipeline, output, 1))
        for pipeline in PIPELINES
        for output in ("gs://my-bucket/out", "gs://my-bucket/out2")
    }
    assert len(names) == 2 * len(PIPELINES)
    assert all(re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", name) and len(name) <= 63 for name in names)
    assert settings.make_job_name(TASK) == "bioshards-pubmed-to-shards-f577f9f3"


@pytest.mark.parametrize(
    "words", [["--runner=DataflowRunner"], ["--runner", "dataflow"], ["--runner=a.b.DataflowRunner"]]
)
def test_the_runner_is_known_by_all_its_names(words: list[str]) -> None:
    assert settings.is_dataflow_runner(["--region=x", *words])
    assert not settings.is_dataflow_runner(["--region=x", "--runner=PortableRunner", "--dataflow_endpoint=x"])
    assert not settings.is_dataflow_runner(["--runner", "PrismRunner", "--job_name", "dataflow"])


def test_a_misspelt_runner_takes_nothing_away(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "out"
    output.mkdir()
    for runner, said in (
        ("DataflowRuner", r"did you mean DataflowRunner\?"),
        ("no.such.Runner", "cannot be loaded: No module"),
    ):
        assert cli.main(["run", "pubmed_to_shards", "--output", str(output), f"--runner={runner}"]) == 2
        assert re.search(said, capsys.readouterr().err)
    assert not list(output.iterdir())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            NEEDED[1:],
            r"needs --project \(the project that runs the job and pays for it, as --project=my-lab\)\.",
        ),
        ([], r"needs --project .*; --region .*; --temp_location \(a folder .*gs://my-bucket/tmp\)"),
        ([*NEEDED, "--region=us-central1-a"], "us-central1-a is no region; they look like us-central1"),
        ([*NEEDED, "--project=1234567890"], "1234567890 is no project's ID"),
        ([*NEEDED, "--temp_location=gs://ab/tmp"], "gs://ab/tmp is no folder like gs://BUCKET/tmp"),
        ([*NEEDED, "--temp_location=gs://my-bucket"], "gs://my-bucket is no folder like"),
        ([*NEEDED, "--temp_location=/tmp/x"], "/tmp/x is no folder like gs://BUCKET/tmp"),
        (
            [*NEEDED, "--staging_location=s3://bucket/x"],
            "s3://bucket/x is no folder like gs://BUCKET/staging",
        ),
        ([*NEEDED, "--job_name=My_Job"], "--job_name My_Job is no job's name"),
        ([*NEEDED, "--template_location=no/such/x.json"], "there is no folder no/such"),
        (
            [*NEEDED, "--dry_run"],
            r"^beam: .* --dry_run: expected one argument \(did you mean --dry-run\?\)\.",
        ),
        ([*NEEDED, "--dry_run=True"], "--dry_run is Beam's and says nothing: give --dry-run"),
        ([*NEEDED, "--machin_type=x"], r"unknown option --machin_type \(did you mean --machine_type\?\)"),
    ],
)
def test_what_is_missing_or_wrong_is_said_at_once(
    capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    given = ["--input", "gs://my-bucket/in", "--output", "gs://my-bucket/out", "--runner=DataflowRunner"]
    assert cli.main(["run", "pubmed_to_shards", *given, *words]) == 2
    assert re.search(said, capsys.readouterr().err)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--input", "here"), "--input here is local"),
        ((), "sample/pubmed is local"),
        (("--input", "gs://b/in", "--mirror", "there"), "--mirror there is local"),
    ],
)
def test_workers_cannot_read_what_is_here(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    given = ("--output", "gs://my-bucket/out", "--runner=DataflowRunner", *NEEDED)
    assert cli.main(["run", "pubmed_to_shards", *words, *given]) == 2
    assert f"{said}; Dataflow's workers need gs://" in capsys.readouterr().err


def test_without_the_libraries_of_the_cloud_it_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "apache_beam.runners.dataflow.internal.apiclient", None)
    with pytest.raises(UsageError, match=r"pip install 'bioshards\[cloud\]'"):
        settled()


def test_lanes_ask_no_more_of_a_server_than_it_allows_wherever_they_are(tmp_path: Path) -> None:
    """Four processes of one machine do not share one lane's places, and nobody has those of another."""
    server = downloads.make_server("https://server/", None, 4, 8.0)
    mirror = Mirror(LocalStorage(), str(tmp_path))
    apart = downloads.make_download_plan(mirror, server, workers=16, is_local_run=False)
    lanes = [apart.server_for_slot(name).rate_limiter for name in ("a.xml", "b.xml", "c.xml", "d.xml")]
    assert apart.slots == downloads.REMOTE_SLOTS == len({places.server_name for places in lanes})
    assert sum(places.max_connections for places in lanes) == 4
    assert sum(places.requests_per_second for places in lanes) == 8
    assert apart.server_for_slot("a.xml").rate_limiter == lanes[0]
    together = downloads.make_download_plan(mirror, server, workers=16, is_local_run=True)
    assert together.server_for_slot("a.xml") == together.server_for_slot("b.xml") == server


# What is said when a run is left or fails


def place(*words: str) -> RunContext:
    options = PipelineOptions([*words])
    return RunContext(True, settings.is_dataflow_runner(words), options, LocalStorage(), ())


def on_dataflow() -> RunContext:
    found = place("--runner=DataflowRunner", *NEEDED)
    settings.set_defaults(found.beam_options, TASK)
    return found


def test_who_leaves_before_the_job_has_an_id_is_told_how_to_find_it() -> None:
    said = job_status.format_detached_message(on_dataflow(), None, TASK)
    assert f"--filter=name={settings.make_job_name(TASK)} --region=us-central1 --project=my-lab" in said


def test_a_clusters_job_goes_on_and_this_machines_does_not() -> None:
    said = job_status.format_detached_message(
        place("--runner=FlinkRunner"), SimpleNamespace(_job_id="job-7"), TASK
    )
    assert "job job-7 goes on if its runner is a cluster" in said
    assert "finished when gs://my-bucket/out/manifest.json is there" in said
    assert job_status.format_detached_message(place("--runner=DirectRunner"), SimpleNamespace(), TASK) == ""
    assert job_status.format_detached_message(place("--runner=FlinkRunner"), None, TASK) == ""


@pytest.mark.parametrize(
    ("says", "told"),
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
            "perhaps because memory ran out: give a --machine_type with more for each vCPU. Completed work",
        ),
    ],
)
def test_a_failed_job_is_explained_with_its_page(says: str, told: str) -> None:
    error = RuntimeError(f"Dataflow pipeline failed. State: {says}")
    said = str(job_status.error_from_runner(on_dataflow(), SimpleNamespace(job_id=lambda: "7"), error))
    assert told in said
    assert said.endswith("dataflow/jobs/us-central1/7?project=my-lab shows where it failed")


def test_a_job_that_can_no_longer_be_looked_at_has_not_failed() -> None:
    """The poll of Beam's client has died, of a network that was away; then it asserts that the job ended."""
    error = AssertionError("Job did not reach to a terminal state after waiting indefinitely. Console URL: x")
    said = str(job_status.error_from_runner(on_dataflow(), SimpleNamespace(job_id=lambda: "7"), error))
    assert "lost sight of job 7, which GOES ON at Dataflow, and costs (Dataflow did not answer)" in said
    assert "gcloud dataflow jobs cancel 7 --region=us-central1 --project=my-lab" in said
    assert "failed" not in said


def test_nothing_of_ours_loads_beam_before_it_is_needed() -> None:
    for module in ("settings", "job_status", "wheel"):
        text = (Path(settings.__file__).parent / f"{module}.py").read_text()
        assert not re.search(r"^(import|from) apache_beam", text, re.MULTILINE)
