"""Tests of cost estimates and of ``--dry-run`` of each pipeline, on local and remote runners."""

from __future__ import annotations

import re
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioshards.pipelines import cli
from bioshards.pipelines.dry_run import cost
from bioshards.pipelines.dry_run.cost import DryRunPlan
from bioshards.pipelines.storage.remote_storage import RemoteStorage
from bioshards.vocab.pretraining.objectives.example_recipes import BuildCost
from tests.bench.tables import full_corpora
from tests.support.corpus.pubmed_xml import citation_xml, pubmed_set_xml
from tests.support.paths import REPOSITORY
from tests.support.servers.fake_pmc_bucket import FakeArticle, create_bucket
from tests.support.servers.fake_server import FakeServer
from tests.support.servers.server_pages import create_pubmed_server
from tests.support.vocab.tiny_tokenizers import make_wordpiece

Capture = pytest.CaptureFixture[str]
REPOSITORY_ROOT = REPOSITORY
DATAFLOW_OPTIONS = (
    "--runner=DataflowRunner",
    "--project=some-project",
    "--region=us-central1",
    "--temp_location=gs://some-bucket/tmp",
)
MACHINES = st.integers(1, 500)
VCPUS = st.integers(1, 96)
SECONDS = st.floats(1, 1e8)
ITEMS = st.integers(1, 100_000)


def make_plan(
    core_seconds: float, items: int, store_wait_seconds: float = 0, fetch_seconds: float = 0
) -> DryRunPlan:
    return DryRunPlan([], core_seconds, 0, items, store_wait_seconds, fetch_seconds)


def test_cost_of_a_job_calculated_by_hand() -> None:
    """36,000 core seconds on two workers of 4 vCPUs take 4,500 seconds; each runs 1.3 hours with startup."""
    estimate = cost.estimate_cost(make_plan(36_000, 1_000), 2, 4)
    assert estimate.seconds == 36_000 / 8 + 180
    assert estimate.worker_hours == pytest.approx(2 * 4_680 / 3600)
    assert estimate.dollars == pytest.approx(2.6 * 4 * 0.0706)
    few_items = cost.estimate_cost(make_plan(36_000, 3), 2, 4)
    assert few_items.seconds == 12_180
    assert few_items.worker_hours == pytest.approx(12_180 / 3600)
    fetched = cost.estimate_cost(make_plan(36_000, 1_000, fetch_seconds=10_000), 2, 4)
    assert fetched.seconds == 10_180
    slow = cost.estimate_cost(make_plan(36_000, 1_000, store_wait_seconds=8_000), 2, 4)
    assert slow.seconds == 44_000 / 8 + 180


def test_seconds_of_one_core() -> None:
    build_cost = BuildCost(4, extra_pass_seconds_per_megabyte=0.5)
    assert build_cost.estimate_core_seconds(8_000_000, 1) == 2
    assert build_cost.estimate_core_seconds(8_000_000, 5) == 2 + 4 * 8 * 0.5


def test_store_wait_calculated_by_hand() -> None:
    """1,000 calls of 40 ms; 10 files with 20 calls each, 100 blocks read twice, and 160 single articles."""
    assert cost.estimate_store_wait(1_000, 0) == pytest.approx(40)
    assert cost.estimate_source_wait(10, 100 * (8 << 20), 160) == pytest.approx(
        0.04 * (10 * 20 + 2 * 100 + 10)
    )


@given(SECONDS, ITEMS, MACHINES, VCPUS)
def test_twice_the_work_costs_twice_as_much_apart_from_startup(
    seconds: float, items: int, machines: int, vcpus: int
) -> None:
    nothing, one, two = (
        cost.estimate_cost(make_plan(times * seconds, items), machines, vcpus) for times in (0, 1, 2)
    )
    start = cost.WORKER_STARTUP_SECONDS
    assert two.seconds - start == pytest.approx(2 * (one.seconds - start))
    assert two.worker_hours - nothing.worker_hours == pytest.approx(
        2 * (one.worker_hours - nothing.worker_hours), rel=1e-6, abs=1e-9
    )


@given(SECONDS, ITEMS, MACHINES, VCPUS, st.integers(0, 100))
def test_more_machines_are_never_cheaper_nor_slower(
    seconds: float, items: int, machines: int, vcpus: int, more: int
) -> None:
    few, many = (
        cost.estimate_cost(make_plan(seconds, items), count, vcpus) for count in (machines, machines + more)
    )
    assert many.seconds <= few.seconds
    assert many.worker_hours >= few.worker_hours * (1 - 1e-9)
    for estimate in (few, many):
        assert estimate.worker_hours * vcpus >= seconds / 3600 * (1 - 1e-9)
        assert estimate.dollars == pytest.approx(estimate.worker_hours * vcpus * cost.VCPU_HOUR_DOLLARS)


@given(SECONDS, ITEMS, MACHINES, VCPUS, st.floats(0, 1e6))
def test_waiting_for_downloads_adds_cost(
    seconds: float, items: int, machines: int, vcpus: int, fetch_seconds: float
) -> None:
    without, waiting = (
        cost.estimate_cost(make_plan(seconds, items, 0, wait), machines, vcpus) for wait in (0, fetch_seconds)
    )
    assert waiting.dollars >= without.dollars
    assert waiting.seconds == max(without.seconds, fetch_seconds + cost.WORKER_STARTUP_SECONDS)


def test_documented_table_of_the_full_corpora_is_up_to_date() -> None:
    for page in ("tests/bench/FIGURES.md", "docs/DATAFLOW.md"):
        assert full_corpora.make_table() in (REPOSITORY_ROOT / page).read_text()


@pytest.mark.parametrize(
    ("machine_type", "expected"),
    [
        ("e2-standard-4", 4),
        ("n2-highmem-8", 8),
        ("c3-highcpu-22", 22),
        ("c3-highmem-8-lssd", 8),
        ("n2-custom-6-20480", 6),
        ("custom-2-4096", 2),
        ("a3-unheard-of", 4),
    ],
)
def test_vcpus_of_machine_types(machine_type: str, expected: int) -> None:
    assert cost.count_vcpus(machine_type) == expected


# Dry runs


@pytest.fixture
def refuse_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    def probe(storage: RemoteStorage, path: str) -> None:
        raise PermissionError("gs:// needs credentials")

    monkeypatch.setattr(RemoteStorage, "probe", probe)


def run_dry(*arguments: object) -> int:
    return cli.main(["run", *map(str, arguments), "--dry-run"])


def list_modification_times(folder: Path) -> dict[Path, int]:
    """Return the modification times of everything in a folder."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def write_vocabulary(folder: Path) -> Path:
    """Write a vocabulary of all letters and digits."""
    letters = string.ascii_letters + string.digits
    folder.mkdir()
    tokenizer = make_wordpiece(*letters, *(f"##{letter}" for letter in letters), *"()-.,:;%=<>/+")
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def test_dry_run_of_words_and_pretraining_sets(reference: Path, tmp_path: Path, capsys: Capture) -> None:
    """Completed items are not estimated again, and nothing is written."""
    word_arguments = ("--input", reference, "--output", tmp_path / "words")
    assert run_dry("shards_to_words", *word_arguments) == 0
    stdout = capsys.readouterr().out
    assert "77 documents in 3 shards" in stdout
    assert "0 shards before, 3 to do" in stdout
    assert f"{cost.WORD_COUNT_MB_PER_CORE_SECOND:.1f} MB/s each" in stdout
    assert cli.main(["run", "shards_to_words", "--workers", "1", *map(str, word_arguments)]) == 0
    pretraining_arguments = (
        "--input",
        reference,
        "--vocab",
        write_vocabulary(tmp_path / "v"),
        "--output",
        tmp_path / "set",
    )
    capsys.readouterr()
    before = list_modification_times(tmp_path)
    assert run_dry("shards_to_words", *word_arguments) == 0
    stdout = capsys.readouterr().out
    assert "3 shards before, 0 to do" in stdout
    assert "estimate" not in stdout
    assert (
        run_dry(
            "shards_to_pretraining", *pretraining_arguments, "--preset", "pubmedbert", "--shuffle", "global"
        )
        == 0
    )
    stdout = capsys.readouterr().out
    assert "bert, 512 tokens a row at most, 5 passes, dealt out to 2 shards" in stdout
    assert "0 groups of shards before, 1 to do" in stdout
    assert list_modification_times(tmp_path) == before


@pytest.mark.usefixtures("refuse_credentials")
def test_dry_run_on_dataflow_without_credentials(reference: Path, tmp_path: Path, capsys: Capture) -> None:
    """Every pipeline shows graph, machines, hours and cost; inputs are local, the output is unreadable."""
    root, mirror = tmp_path / "servers", ("--mirror", "gs://some-bucket/mirror")
    create_pubmed_server(root, {"pubmed26n0001.xml.gz": pubmed_set_xml(citation_xml(1))}, {})
    create_bucket(root / "bucket", [FakeArticle(1200001)], "2026-11-01")
    output = ("--output", "gs://some-bucket/out")
    documents = ("--input", reference, *output)
    with FakeServer(root) as server:
        pubmed_arguments = ("--input", "pubmed:", "--pubmed-url", f"{server.url}pubmed/", *mirror)
        pmc_arguments = ("--input", "pmc:", "--pmc-url", f"{server.url}bucket/", *mirror)
        arguments_by_pipeline: dict[str, tuple[object, ...]] = {
            "fetch": (*pubmed_arguments, *pmc_arguments),
            "pubmed_to_shards": (*pubmed_arguments, *output),
            "pmc_to_shards": output,
            "text_to_shards": output,
            "shards_to_words": documents,
            "shards_to_pretraining": (*documents, "--vocab", write_vocabulary(tmp_path / "v")),
        }
        before = list_modification_times(tmp_path)
        for pipeline, arguments in arguments_by_pipeline.items():
            assert run_dry(pipeline, *arguments, *DATAFLOW_OPTIONS) == 0
            stdout = capsys.readouterr().out
            assert re.search(r"job graph:   \d\d steps, 0\.\d\d MB of the 10", stdout)
            assert "e2-standard-4 at most, each of 4 vCPUs" in stdout
            assert "of waiting for the store, in all processes together (40 ms a call" in stdout
            assert re.search(r"estimate: .* core hours, .* worker hours, \$0\.\d\d, in 3 min", stdout)
            assert "needs credentials. Planned as if nothing were there" in stdout
            assert "cloud.google.com/dataflow/pricing" in stdout
            assert ("is local; Dataflow's workers need gs://" in stdout) is (
                pipeline not in ("fetch", "pubmed_to_shards")
            )
        assert list_modification_times(tmp_path) == before
    assert run_dry("shards_to_words", "--input", "gs://some-bucket/in", *output, *DATAFLOW_OPTIONS) == 2
    assert "needs credentials" in capsys.readouterr().err


def test_dry_run_on_another_runner(reference: Path, tmp_path: Path, capsys: Capture) -> None:
    """Machines of other runners are unknown, so only core hours are shown."""
    portable = ("--runner=PortableRunner", "--job_endpoint=localhost:1")
    assert run_dry("shards_to_words", "--input", reference, "--output", tmp_path / "out", *portable) == 0
    stdout = capsys.readouterr().out
    assert re.search(r"job graph:   \d\d steps", stdout)
    assert "0.00 core hours of processing" in stdout
    assert "$" not in stdout
    assert not (tmp_path / "out").exists()


def test_too_large_job_graph_is_reported(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cost, "MAX_GRAPH_MB", 0.01)
    assert (
        run_dry("pubmed_to_shards", "--output", tmp_path / "out", *DATAFLOW_OPTIONS, "--max_num_workers=7")
        == 0
    )
    stdout = capsys.readouterr().out
    assert "too large for Dataflow" in stdout
    assert "machines:    7 e2-standard-4 at most" in stdout
