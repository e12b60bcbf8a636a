"""Links, anchors and options of the documents exist, and the README stays short."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from sphinx.cmd import build

from tests.support.options_reference import list_parsers

pytestmark = pytest.mark.thorough  # this file takes minutes

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "docker/*.md", "tests/bench/*.md", "corpus/sample/*.md")
    for path in ROOT.glob(pattern)
    if path.name not in ("manifest.md", "options.md")  # generated from the program
)
README_LINES = 130
_LINK = re.compile(r"\]\((?!https?://)([^)\s#]*)(?:#([^)\s]*))?\)")
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*(?![\w-])")
_HEADING = re.compile(r"#+ (.*)")
_FOREIGN_OPTIONS = frozenset(
    {"--blanks-separate-docs", "--extra_package", "--nproc-per-node", "--recursive", "--times"}
)
"""Of the ELECTRA scripts, Beam (which lists it as --extra_packages), torchrun, gcloud and rsync."""
_OTHER_PROGRAMS = frozenset({"CONTRIBUTING.md", "operate.md"})
"""Documents with options of gcloud, docker, Flink and mypy."""


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(path: Path) -> None:
    broken = [
        f"{target}#{anchor}"
        for target, anchor in _LINK.findall(_remove_code(path.read_text(encoding="utf-8")))
        if not (file := (path.parent / target).resolve() if target else path).exists()
        or (anchor and anchor not in set(_iter_anchors(file)))
    ]
    assert broken == []


@pytest.mark.thorough
def test_options_in_the_documents_exist() -> None:
    parsers = list(list_parsers())
    assert {"doctor", "train", "vocab", "worker-pool"} <= {parser.prog.split()[1] for parser in parsers}
    options = {name for parser in parsers for action in parser._actions for name in action.option_strings}
    beam_options = {f"--{name}" for name in PipelineOptions().get_all_options()}
    known = options | beam_options | _FOREIGN_OPTIONS
    unknown = {
        path.relative_to(ROOT): missing
        for path in DOCUMENTS
        if path.parent in (ROOT, ROOT / "docs") and path.name not in _OTHER_PROGRAMS
        if (missing := set(_OPTION.findall(path.read_text(encoding="utf-8"))) - known)
    }
    assert unknown == {}


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= README_LINES


@pytest.mark.thorough
def test_site_is_built_without_warnings(tmp_path: Path) -> None:
    site = tmp_path / "site"
    options = ["-q", "--fail-on-warning", "-b", "html"]
    folders = ["-c", str(ROOT / "docs"), "-d", str(tmp_path / "trees"), str(ROOT), str(site)]
    assert build.main([*options, *folders]) == 0
    page = (site / "docs" / "index.html").read_text(encoding="utf-8")
    assert "--max-rejected" in (site / "docs" / "options.html").read_text(encoding="utf-8")
    assert "BadFile" in (site / "docs" / "manifest.html").read_text(encoding="utf-8")
    assert "mirror" in (site / "searchindex.js").read_text(encoding="utf-8")
    assert not re.findall(r'(?:src|rel="stylesheet"[^>]*href)="https?://', page)


def _iter_anchors(path: Path) -> Iterator[str]:
    """Yield the anchors of a document's headings as GitHub makes them."""
    for heading in _HEADING.findall(_remove_code(path.read_text(encoding="utf-8"))):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _remove_code(text: str) -> str:
    return re.sub(r"(?ms)^```.*?^```", "", text)
