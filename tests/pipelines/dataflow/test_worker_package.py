"""Tests of the package for workers of Dataflow: options that provide it, pinned libraries."""

from __future__ import annotations

import ast
import atexit
import itertools
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from bioshards.corpus.errors import UsageError
from bioshards.corpus.sentences.splitters import SCISPACY_MODEL
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.pipelines.context import JobSpec, RunContext
from bioshards.pipelines.dataflow import worker_package
from tests.support.fork_server import FORK_SERVER
from tests.support.paths import REPOSITORY


def provide_package(*options: str, paths: tuple[str, ...] = ()) -> PipelineOptions:
    """Provide the package to workers of a job with these options, and return all of them."""
    beam_options = PipelineOptions(list(options))
    context = RunContext(True, True, beam_options, LocalStorage(), paths)
    worker_package.provide_package(context, JobSpec("pubmed_to_shards", "gs://b/out", 1))
    return beam_options


def test_libraries_are_the_dependencies_of_the_project() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    needs = [*project["dependencies"], *project["optional-dependencies"]["vocab"]]
    names = {re.split(r"[\[<>=;]", need)[0] for need in needs}
    pinned = worker_package.pin_versions(("vocab",), [], {})
    assert set(pinned) == names
    assert not {"obstore", "torch", "pytest"} & set(pinned)


def test_imported_libraries_are_declared() -> None:
    """What a needed library brings along may go with its next version."""
    imported = set()
    for path in (
        path for folder in ("corpus", "vocab", "pipelines") for path in REPOSITORY.glob(f"{folder}/**/*.py")
    ):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [name.name for name in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
            imported |= {name.partition(".")[0] for name in names} - sys.stdlib_module_names
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    needs = [*project["dependencies"], *itertools.chain(*project["optional-dependencies"].values())]
    declared = {re.split(r"[\[<>=;]", need)[0].replace("-", "_") for need in needs}
    come_along = {
        "_typeshed",
        "botocore",
        "google",
        "grpc",
        "markupsafe",
    }  # with type checkers, Beam and jinja2
    assert imported <= declared | come_along | {"bioshards"}


def test_libraries_are_pinned_to_installed_versions() -> None:
    pinned = worker_package.pin_versions((), [], {})
    assert pinned == {name: metadata.version(name) for name in pinned}
    on_gcs = worker_package.pin_versions((), ["gs://b/in", "gs://b/out"], {})
    assert on_gcs == {**pinned, "obstore": metadata.version("obstore")}
    on_s3 = worker_package.pin_versions((), ["gs://b/in", "s3://b/out"], {})
    assert on_s3 == {**on_gcs, "boto3": metadata.version("boto3")}
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
        "--extra_package=there/bioshards-0.2.0-py3-none-any.whl",
    ],
)
def test_options_may_provide_the_package(option: str) -> None:
    requirements_file = provide_package(option).get_all_options()["requirements_file"]
    assert bool(requirements_file) == ("image" not in option)


@pytest.mark.parametrize(
    "option", ["--extra_package=there/other-0.1.0-py3-none-any.whl", "--requirements_file=x", "--region=x"]
)
def test_options_without_the_package_are_refused(option: str) -> None:
    with pytest.raises(UsageError, match=r"--sdk_container_image.*make wheel.*--extra_package=dist/"):
        provide_package(option)


def test_workers_install_the_installed_versions_unless_requirements_are_given() -> None:
    options = provide_package("--setup_file=x").get_all_options()
    lines = Path(options["requirements_file"]).read_text().splitlines()
    assert f"lxml=={metadata.version('lxml')}" in lines
    assert lines == sorted(lines)
    assert options["requirements_cache"] == "skip"
    options = provide_package("--setup_file=x", "--requirements_file=mine.txt").get_all_options()
    assert options["requirements_file"] == "mine.txt"
    assert options["requirements_cache"] is None


def test_requirements_are_removed_when_the_process_ends(tmp_path: Path) -> None:
    process = FORK_SERVER.Process(target=write_requirements_and_end, args=(tmp_path / "copy",))
    process.start()
    process.join()
    path, *lines = (tmp_path / "copy").read_text().split()
    assert lines == ["boto3==1.44.5", "lxml==6.1.3"]
    assert not Path(path).parent.exists()


def write_requirements_and_end(copy: Path) -> None:
    """Write requirements, copy them with their path, and end as an interpreter does."""
    options = PipelineOptions([])
    worker_package.write_requirements(options, {"lxml": "6.1.3", "boto3": "1.44.5"})
    path = options.get_all_options()["requirements_file"]
    copy.write_text(f"{path}\n{Path(path).read_text()}")
    atexit._run_exitfuncs()


def test_store_without_credentials_for_workers_is_refused() -> None:
    with pytest.raises(UsageError, match=r"s3://b/out cannot be used.*--s3_access_key_id and --s3_secret_ac"):
        provide_package("--setup_file=x", "--s3_access_key_id=x", paths=("gs://b/in", "s3://b/out"))
    with pytest.raises(UsageError, match=r"abfs://b/out cannot be used.*--azure_connection_string"):
        provide_package("--setup_file=x", paths=("abfs://b/out",))
    provide_package("--setup_file=x", paths=("gs://b/in", "here"))
    provide_package(
        "--setup_file=x", "--s3_access_key_id=x", "--s3_secret_access_key=y", paths=("s3://b/out",)
    )
    provide_package("--setup_file=x", "--azure_connection_string=x", paths=("az://b/out",))
