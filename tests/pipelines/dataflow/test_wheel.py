"""Tests of the wheel for remote workers: contents, pinned requirements, reproducibility."""

from __future__ import annotations

import base64
import csv
import hashlib
import importlib.metadata
import io
import re
import tomllib
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from bioshards import __version__
from bioshards.corpus.errors import UsageError
from bioshards.corpus.sentences.splitters import SCISPACY_MODEL
from bioshards.pipelines.dataflow import wheel as wheel_builder
from tests.support.paths import REPOSITORY

REPOSITORY_ROOT = REPOSITORY
DIST_INFO = f"bioshards-{__version__}.dist-info"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    return zipfile.ZipFile(wheel_builder.build_wheel(str(folder), {"lxml": "6.1.3", "boto3": "1.44.5"}))


def parse_metadata(wheel: zipfile.ZipFile) -> Message:
    return Parser().parsestr(wheel.read(f"{DIST_INFO}/METADATA").decode())


def test_wheel_contains_only_what_workers_import(wheel: zipfile.ZipFile) -> None:
    names = {name for name in wheel.namelist() if not name.startswith(DIST_INFO)}
    expected = {
        "bioshards/__init__.py",
        "bioshards/py.typed",
        "bioshards/corpus/sentences/boundary_weights.tsv",
    }
    for package in ("corpus", "vocab", "pipelines"):
        paths = [path.relative_to(REPOSITORY_ROOT) for path in (REPOSITORY_ROOT / package).rglob("*.py")]
        expected |= {
            f"bioshards/{path.as_posix()}" for path in paths if path.parts[1] not in ("_root", "sample")
        }
    assert names == expected
    for name in names - {"bioshards/__init__.py", "bioshards/py.typed"}:
        assert wheel.read(name) == (REPOSITORY_ROOT / name.removeprefix("bioshards/")).read_bytes()


def test_packages_are_those_of_the_project_without_train_and_evaluate() -> None:
    project = tomllib.loads((REPOSITORY_ROOT / "pyproject.toml").read_text())
    packages = {name.split(".")[1] for name in project["tool"]["setuptools"]["packages"] if "." in name}
    assert set(wheel_builder.PACKAGES) == packages - {"train", "evaluate"}


def test_record_lists_every_file_with_its_digest(wheel: zipfile.ZipFile) -> None:
    rows = list(csv.reader(io.StringIO(wheel.read(f"{DIST_INFO}/RECORD").decode())))
    assert [row[0] for row in rows] == wheel.namelist()
    assert rows[-1] == [f"{DIST_INFO}/RECORD", "", ""]
    for name, digest, size in rows[:-1]:
        data = wheel.read(name)
        expected = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        assert (digest, int(size)) == (f"sha256={expected}", len(data))


def test_metadata_pins_the_given_versions(wheel: zipfile.ZipFile) -> None:
    metadata = parse_metadata(wheel)
    assert (metadata["Name"], metadata["Version"]) == ("bioshards", __version__)
    assert metadata.get_all("Requires-Dist") == ["boto3==1.44.5", "lxml==6.1.3"]


def test_wheel_is_reproducible(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    again = Path(wheel_builder.build_wheel(str(tmp_path), {"boto3": "1.44.5", "lxml": "6.1.3"}))
    assert again.read_bytes() == Path(str(wheel.filename)).read_bytes()
    assert again.name == Path(str(wheel.filename)).name
    assert again.stat().st_size < 2_000_000


def test_libraries_are_the_dependencies_of_the_project() -> None:
    project = tomllib.loads((REPOSITORY_ROOT / "pyproject.toml").read_text())["project"]

    def strip_versions(requirements: list[str]) -> set[str]:
        return {re.split(r"[\[<>=]", requirement)[0] for requirement in requirements}

    assert set(wheel_builder.LIBRARIES[""]) == strip_versions(project["dependencies"])
    assert set(wheel_builder.LIBRARIES["vocab"]) == strip_versions(project["optional-dependencies"]["vocab"])
    beam_requirements = importlib.metadata.requires("apache-beam") or []
    assert set(wheel_builder.LIBRARIES["aws"]) == strip_versions(
        [need for need in beam_requirements if need.endswith('extra == "aws"')]
    )


def test_libraries_are_pinned_to_installed_versions() -> None:
    pinned = wheel_builder.pin_versions((), ["gs://b/in", "gs://b/out"], {})
    assert pinned == {name: importlib.metadata.version(name) for name in wheel_builder.LIBRARIES[""]}
    assert {"tokenizers", "numpy"} <= wheel_builder.pin_versions(("vocab",), [], {}).keys()
    assert wheel_builder.pin_versions((), ["gs://b/in", "s3://b/out"], {})[
        "boto3"
    ] == importlib.metadata.version("boto3")
    tools = {"scispacy": "0.6.2", "spacy": "3.8.18", "pysbd": "0.3.4"}
    assert {**pinned, **tools} == wheel_builder.pin_versions((), [], tools)


def test_model_without_a_package_index_is_refused() -> None:
    with pytest.raises(UsageError, match=r"workers cannot install it.*--sdk_container_image"):
        wheel_builder.pin_versions((), [], {SCISPACY_MODEL: "0.5.4", "spacy": "3.8.18"})


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("--sdk_container_image=x", True),
        ("--worker_harness_container_image=x", True),
        ("--setup_file=x", True),
        ("--extra_package=there/bioshards-0.1.0-py3-none-any.whl", True),
        ("--extra_package=there/other-0.1.0-py3-none-any.whl", False),
        ("--requirements_file=x", False),
        ("--region=x", False),
    ],
)
def test_no_wheel_is_built_if_options_provide_the_package(option: str, expected: bool) -> None:
    """Extra packages other than ours do not replace the wheel."""
    assert wheel_builder.has_worker_package(PipelineOptions([option])) == expected


def test_s3_without_credentials_for_workers_is_refused() -> None:
    with pytest.raises(UsageError, match=r"s3://b/out cannot be used.*--s3_access_key_id"):
        wheel_builder.check_s3_credentials(PipelineOptions([]), ["gs://b/in", "s3://b/out"])
    wheel_builder.check_s3_credentials(PipelineOptions([]), ["gs://b/in"])
    wheel_builder.check_s3_credentials(PipelineOptions(["--s3_access_key_id=x"]), ["s3://b/out"])
