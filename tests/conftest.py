"""Fixtures of all tests, and two rules: no test reaches the network, none leaves its own folder."""

from __future__ import annotations

import faulthandler
import gc
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import MethodType
from typing import Any, Final

import pytest
from hypothesis import is_hypothesis_test, settings

from bioshards.corpus.download import http_client
from bioshards.corpus.storage.retry import RetryPolicy
from bioshards.pipelines import cli
from bioshards.pipelines.inputs import downloads
from tests.support import hypothesis_profiles
from tests.support.corpus import manifests
from tests.support.fork_server import run_beam
from tests.support.outputs import load_manifest
from tests.support.real_data import DATA
from tests.support.shared_folders import build_once

settings.load_profile(hypothesis_profiles.NAME)

STDERR: Final = 2
RUN_TIMEOUT_SECONDS: Final = 40 * 60
"""Time limit of a whole run.  A test has its own limit (``timeout`` in pyproject.toml)."""


def pytest_configure(config: pytest.Config) -> None:
    """End a run that hangs outside of a test, with the stacks of all threads; let tests send SIGINT."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell ignore it
    if not hasattr(config, "workerinput"):
        faulthandler.dump_traceback_later(RUN_TIMEOUT_SECONDS, exit=True, file=STDERR)


def pytest_unconfigure() -> None:
    """Stop the clock of :func:`pytest_configure`."""
    faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a process of a run whether it has the tests that import torch."""
    from tests.support import distribution

    if node.config.getvalue("dist") == "loadfile" and not distribution.is_first(node):
        node.workerinput["others_tests"] = distribution.TORCH_TESTS


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give the tests that import torch to one process."""
    from tests.support.distribution import OneTorchProcess

    return OneTorchProcess(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.hookimpl
def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """Leave out the files of another process, also those that the command names."""
    name = module_path.relative_to(parent.config.rootpath).as_posix()
    is_left_out = name.startswith(_tests_of_another_process(parent.config))
    return _EmptyModule.from_parent(parent, path=module_path) if is_left_out else None


def _tests_of_another_process(config: pytest.Config) -> tuple[str, ...]:
    """Return the beginnings of the names of files that this process leaves to the one that imports torch."""
    return tuple(getattr(config, "workerinput", {}).get("others_tests", ()))


class _EmptyModule(pytest.Module):
    def collect(self) -> list[pytest.Item | pytest.Collector]:
        return []


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Spare the garbage collector the million objects that are made here, and stay."""
    gc.disable()
    collected = yield
    gc.freeze()
    gc.enable()
    if others := _tests_of_another_process(session.config):
        wrong = "a test file imports torch: name it in TORCH_TESTS of tests/support/distribution.py, beside"
        assert "torch" not in sys.modules, f"{wrong} {others}"
    return collected


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests with generated or real data, and skip those that cannot run here."""
    for item in items:
        if item.get_closest_marker("needs_data"):
            item.add_marker("thorough")
            if not DATA:
                item.add_marker(pytest.mark.skip(reason="BIOSHARDS_DATA is not set"))
        if item.get_closest_marker("scispacy") and not find_spec("scispacy"):
            item.add_marker(pytest.mark.skip(reason="scispaCy is not installed: make test-scispacy"))
        if is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker("property")


@pytest.fixture(scope="session", autouse=True)
def no_network() -> Iterator[None]:
    """Refuse every connection but those to this machine, which go through no proxy."""
    connect = socket.socket.connect

    def guarded(sock: socket.socket, address: Any) -> None:
        if sock.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1", "localhost"):
            raise AssertionError(f"a test connects to {address}")
        connect(sock, address)

    with pytest.MonkeyPatch.context() as monkeypatch:
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.setenv(name, "127.0.0.1,localhost")
        monkeypatch.setattr(socket.socket, "connect", guarded)
        yield


@pytest.fixture(scope="session", autouse=True)
def known_methods() -> Iterator[None]:
    """Let Beam inspect each method once, not a hundred methods again for each step of each pipeline."""
    if "apache_beam" not in sys.modules:
        yield
        return
    from apache_beam.transforms import core

    find = core.get_function_args_defaults
    known: dict[object, Any] = {}

    def find_once(function: Any) -> Any:
        if not isinstance(function, MethodType):
            return find(function)
        if function.__func__ not in known:
            known[function.__func__] = find(function)
        arguments, defaults = known[function.__func__]
        return [*arguments], [*defaults]

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(core, "get_function_args_defaults", find_once)
        yield


@pytest.fixture(scope="session", autouse=True)
def every_manifest_is_valid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Validate all manifests that the tests have left, by whichever process, against the JSON Schema.

    ``write_manifest`` itself refuses what ``read_manifest`` would refuse, in every process.  What is left to
    see is that the schema accepts what that one reads.
    """
    yield
    wrong = {
        str(folder): found
        for folder in manifests.written(tmp_path_factory.getbasetemp())
        if (found := manifests.problems(load_manifest(folder)))
    }
    assert not wrong


@pytest.fixture(scope="session", autouse=True)
def own_runtime_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Count the connections of tests in their own folder, not in that of this user's runs."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))
        yield


@pytest.fixture
def own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder for this test and its processes alone: connections are counted there."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    return folder


@pytest.fixture
def shorten_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the backoff of downloads in this process."""
    retry_policy = RetryPolicy(initial_backoff=0.05, max_backoff=0.2, max_attempts=4)
    monkeypatch.setattr(http_client.Server.__init__, "__defaults__", (retry_policy, None))
    monkeypatch.setattr(downloads, "INTERACTIVE_RETRY_POLICY", retry_policy)


@pytest.fixture
def run() -> Callable[..., int]:
    """``beam run pubmed_to_shards`` in this process, one worker unless said otherwise."""

    def call(*arguments: object) -> int:
        return cli.main(["run", "pubmed_to_shards", "--workers", "1", *map(str, arguments)])

    return call


@pytest.fixture
def run_pmc() -> Callable[..., int]:
    """``beam run pmc_to_shards`` in this process, one worker unless said otherwise."""

    def call(*arguments: object) -> int:
        return cli.main(["run", "pmc_to_shards", "--workers", "1", *map(str, arguments)])

    return call


@pytest.fixture(scope="session")
def full_text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output of the sample's articles, dropped ones kept."""
    return build_once(tmp_path_factory, "full-text", partial(_run_on_sample, "pmc_to_shards")) / "out"


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample's output, dropped documents kept: what every other way of running must equal."""
    return build_once(tmp_path_factory, "reference", partial(_run_on_sample, "pubmed_to_shards")) / "out"


def _run_on_sample(pipeline: str, folder: Path) -> None:
    completed = run_beam("run", pipeline, "--workers", 1, "--keep-dropped", "--output", folder / "out")
    assert completed.returncode == 0, completed.stderr


@pytest.fixture(scope="session")
def real_abstracts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The documents of all real PubMed records."""
    output = tmp_path_factory.mktemp("real-abstracts") / "out"
    inputs = ("--input", f"{DATA}/pubmed", "--max-rejected", 0.01)
    completed = run_beam("run", "pubmed_to_shards", "--workers", 1, "--output", output, *inputs)
    assert completed.returncode == 0, completed.stderr
    return output
