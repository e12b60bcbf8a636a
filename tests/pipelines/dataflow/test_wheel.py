"""The wheel that workers elsewhere install: what is in it, what it asks for, always the same bytes."""

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
from bioshards.pipelines.dataflow import wheel as shipping
from tests.support.paths import REPOSITORY

ROOT = REPOSITORY
ABOUT = f"bioshards-{__version__}.dist-info"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    return zipfile.ZipFile(shipping.build_wheel(str(folder), {"lxml": "6.1.3", "boto3": "1.44.5"}))


def metadata(wheel: zipfile.ZipFile) -> Message:
    return Parser().parsestr(wheel.read(f"{ABOUT}/METADATA").decode())


def test_it_holds_what_workers_import_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    there = {name for name in wheel.namelist() if not name.startswith(ABOUT)}
    wanted = {
        "bioshards/__init__.py",
        "bioshards/py.typed",
        "bioshards/corpus/sentences/boundary_weights.tsv",
    }
    for package in ("corpus", "vocab", "pipelines"):
        paths = [path.relative_to(ROOT) for path in (ROOT / package).rglob("*.py")]
        wanted |= {
            f"bioshards/{path.as_posix()}" for path in paths if path.parts[1] not in ("_root", "sample")
        }
    assert there == wanted
    for name in there - {"bioshards/__init__.py", "bioshards/py.typed"}:
        assert wheel.read(name) == (ROOT / name.removeprefix("bioshards/")).read_bytes()


def test_packages_are_the_three_that_the_project_lists_less_what_is_trained_with() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = {name.split(".")[1] for name in project["tool"]["setuptools"]["packages"] if "." in name}
    assert set(shipping.PACKAGES) == packages - {"train", "evaluate"}


def test_its_record_lists_every_file_with_its_digest(wheel: zipfile.ZipFile) -> None:
    rows = list(csv.reader(io.StringIO(wheel.read(f"{ABOUT}/RECORD").decode())))
    assert [row[0] for row in rows] == wheel.namelist()
    assert rows[-1] == [f"{ABOUT}/RECORD", "", ""]
    for name, digest, size in rows[:-1]:
        data = wheel.read(name)
        expected = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        assert (digest, int(size)) == (f"sha256={expected}", len(data))


def test_it_asks_for_the_versions_that_it_is_told(wheel: zipfile.ZipFile) -> None:
    said = metadata(wheel)
    assert (said["Name"], said["Version"]) == ("bioshards", __version__)
    assert said.get_all("Requires-Dist") == ["boto3==1.44.5", "lxml==6.1.3"]


def test_the_same_files_give_the_same_bytes(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    again = Path(shipping.build_wheel(str(tmp_path), {"boto3": "1.44.5", "lxml": "6.1.3"}))
    assert again.read_bytes() == Path(str(wheel.filename)).read_bytes()
    assert again.name == Path(str(wheel.filename)).name
    assert again.stat().st_size < 2_000_000


def test_its_libraries_are_those_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    def names(requirements: list[str]) -> set[str]:
        return {re.split(r"[\[<>=]", requirement)[0] for requirement in requirements}

    assert set(shipping.LIBRARIES[""]) == names(project["dependencies"])
    assert set(shipping.LIBRARIES["vocab"]) == names(project["optional-dependencies"]["vocab"])
    beams = importlib.metadata.requires("apache-beam") or []
    assert set(shipping.LIBRARIES["aws"]) == names(
        [need for need in beams if need.endswith('extra == "aws"')]
    )


def test_libraries_are_wanted_as_they_are_installed_here() -> None:
    pinned = shipping.pin_versions((), ["gs://b/in", "gs://b/out"], {})
    assert pinned == {name: importlib.metadata.version(name) for name in shipping.LIBRARIES[""]}
    assert {"tokenizers", "numpy"} <= shipping.pin_versions(("vocab",), [], {}).keys()
    assert shipping.pin_versions((), ["gs://b/in", "s3://b/out"], {})["boto3"] == importlib.metadata.version(
        "boto3"
    )
    tools = {"scispacy": "0.6.2", "spacy": "3.8.18", "pysbd": "0.3.4"}
    assert {**pinned, **tools} == shipping.pin_versions((), [], tools)


def test_a_model_that_no_index_has_is_refused() -> None:
    with pytest.raises(UsageError, match=r"workers cannot install it.*--sdk_container_image"):
        shipping.pin_versions((), [], {SCISPACY_MODEL: "0.5.4", "spacy": "3.8.18"})


@pytest.mark.parametrize(
    ("way", "needless"),
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
def test_who_says_how_workers_get_the_package_gets_no_wheel(way: str, needless: bool) -> None:
    """Who adds another one still gets it: workers import ours, too."""
    assert shipping.has_worker_package(PipelineOptions([way])) == needless


def test_workers_have_no_credentials_of_this_machine_for_s3() -> None:
    with pytest.raises(UsageError, match=r"s3://b/out cannot be used.*--s3_access_key_id"):
        shipping.check_s3_credentials(PipelineOptions([]), ["gs://b/in", "s3://b/out"])
    shipping.check_s3_credentials(PipelineOptions([]), ["gs://b/in"])
    shipping.check_s3_credentials(PipelineOptions(["--s3_access_key_id=x"]), ["s3://b/out"])
