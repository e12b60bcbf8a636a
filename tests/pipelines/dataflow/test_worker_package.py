"""Tests of the package for workers of Dataflow: options that provide it, pinned libraries."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from bioshards.corpus.errors import UsageError
from bioshards.corpus.sentences.splitters import SCISPACY_MODEL
from bioshards.pipelines.dataflow import worker_package
from tests.support.paths import REPOSITORY

REPOSITORY_ROOT = REPOSITORY


def test_libraries_are_the_dependencies_of_the_project() -> None:
    project = tomllib.loads((REPOSITORY_ROOT / "pyproject.toml").read_text())["project"]

    def strip_versions(requirements: list[str]) -> set[str]:
        return {re.split(r"[\[<>=;]", requirement)[0] for requirement in requirements}

    assert set(worker_package.LIBRARIES[""]) == strip_versions(project["dependencies"])
    assert set(worker_package.LIBRARIES["cloud"]) == strip_versions(
        project["optional-dependencies"]["cloud"]
    ) - {"apache-beam"}
    assert set(worker_package.LIBRARIES["vocab"]) == strip_versions(project["optional-dependencies"]["vocab"])
    beam_requirements = importlib.metadata.requires("apache-beam") or []
    assert set(worker_package.LIBRARIES["aws"]) == strip_versions(
        [need for need in beam_requirements if need.endswith('extra == "aws"')]
    )


def test_libraries_are_pinned_to_installed_versions() -> None:
    pinned = worker_package.pin_versions((), [], {})
    assert pinned == {name: importlib.metadata.version(name) for name in worker_package.LIBRARIES[""]}
    on_gcs = worker_package.pin_versions((), ["gs://b/in", "gs://b/out"], {})
    assert on_gcs == {**pinned, "obstore": importlib.metadata.version("obstore")}
    assert {"tokenizers", "numpy"} <= worker_package.pin_versions(("vocab",), [], {}).keys()
    assert worker_package.pin_versions((), ["gs://b/in", "s3://b/out"], {})[
        "boto3"
    ] == importlib.metadata.version("boto3")
    tools = {"scispacy": "0.6.2", "spacy": "3.8.18", "pysbd": "0.3.4"}
    assert {**pinned, **tools} == worker_package.pin_versions((), [], tools)


def test_model_without_a_package_index_is_refused() -> None:
    with pytest.raises(UsageError, match=r"workers cannot install it.*--sdk_container_image"):
        worker_package.pin_versions((), [], {SCISPACY_MODEL: "0.5.4", "spacy": "3.8.18"})


@pytest.mark.parametrize(
    "option",
    [
        "--sdk_container_image=x",
        "--worker_harness_container_image=x",
        "--setup_file=x",
        "--extra_package=there/bioshards-0.1.0-py3-none-any.whl",
    ],
)
def test_options_may_provide_the_package(option: str) -> None:
    worker_package.check_worker_package(PipelineOptions([option]))


@pytest.mark.parametrize(
    "option",
    ["--extra_package=there/other-0.1.0-py3-none-any.whl", "--requirements_file=x", "--region=x"],
)
def test_options_without_the_package_are_refused(option: str) -> None:
    with pytest.raises(UsageError, match=r"--sdk_container_image.*--extra_package=dist/.*make wheel"):
        worker_package.check_worker_package(PipelineOptions([option]))


def test_workers_install_the_given_versions_unless_requirements_are_given(tmp_path: Path) -> None:
    options = PipelineOptions([])
    with worker_package.pin_libraries(options, {"lxml": "6.1.3", "boto3": "1.44.5"}):
        path = Path(options.get_all_options()["requirements_file"])
        assert path.read_text() == "boto3==1.44.5\nlxml==6.1.3\n"
        assert options.get_all_options()["requirements_cache"] == "skip"
    assert not path.exists()
    options = PipelineOptions(["--requirements_file=mine.txt"])
    with worker_package.pin_libraries(options, {"lxml": "6.1.3"}):
        assert options.get_all_options()["requirements_file"] == "mine.txt"
        assert options.get_all_options()["requirements_cache"] is None


def test_store_without_credentials_for_workers_is_refused() -> None:
    check = worker_package.check_store_credentials
    with pytest.raises(UsageError, match=r"s3://b/out cannot be used.*--s3_access_key_id and --s3_secret_ac"):
        check(PipelineOptions(["--s3_access_key_id=x"]), ["gs://b/in", "s3://b/out"])
    with pytest.raises(UsageError, match=r"abfs://b/out cannot be used.*--azure_connection_string"):
        check(PipelineOptions([]), ["abfs://b/out"])
    check(PipelineOptions([]), ["gs://b/in"])
    check(PipelineOptions(["--s3_access_key_id=x", "--s3_secret_access_key=y"]), ["s3://b/out"])
    check(PipelineOptions(["--azure_connection_string=x"]), ["az://b/out"])
