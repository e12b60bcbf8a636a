"""Repeat the run of a manifest: ``beam run NAME --like manifest.json --output DIR``.

The manifest has the command line of its run, of which the options that decide the output are replayed. An
option that is given beside ``--like`` replaces that of the manifest, as ``--input`` where the files lie
elsewhere. The result is compared by the SHA-256 of its files.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from bioshards.corpus.errors import FAILED, OK, InputNotFoundError, InvalidValueError, escape_line
from bioshards.corpus.lifecycle.job import RunManifest
from bioshards.corpus.manifest import DocumentsManifest, listed_files, parse_manifest, read_manifest
from bioshards.corpus.storage.storage_protocol import Storage

_OPTION: Final = "--like"
_REPLAYED_NAMES: Final = """
    --input --vocab --preset --keep-dropped --max-shard-mb --max-rejected --max-bad-files

    --languages --section-labels --no-section-labels --min-abstract-words --min-pmid --publication-types
    --mesh --drop-mesh --drop-publication-types --keep-title-only --no-keep-title-only
    --other-abstract-types --columns --published --journals --drop-journals --drop-languages --min-words
    --max-words --drop-retracted --no-drop-retracted --titles --no-titles --mesh-tree --dedup
    --include-ids --exclude-ids --licences --include-parts --article-types --drop-article-types
    --keep-ocr --no-keep-ocr --keep-abstract-only --no-keep-abstract-only --keep-books --no-keep-books
    --keep-notes --no-keep-notes --author-year-citations
    --no-author-year-citations --translations --no-translations --citations --tables --formula
    --find-overlap-with --id-field --text-field --title-field

    --disable-cleaning --splitter --lower-case --no-lower-case --ascii-only --no-ascii-only --treebank
    --no-treebank --min-line-characters

    --pretokenizer --validation-fraction --seed --min-count --objective --max-seq-length
    --short-seq-prob --single-segment-prob --dupe-factor --keep-overflow --as-published
"""
_REPLAYED: Final = frozenset(_REPLAYED_NAMES.split())
"""Options that are taken from a manifest: those that decide what is written.

A manifest may come from a stranger.  Options of a machine are its owner's to give, and options of Beam can
run programs (``--setup_file``, ``--sdk_location``), as servers of a stranger's choice can give other texts.
"""
_MAX_NAMED: Final = 10
_REDACTED: Final = "***"
"""What stands for a secret in the command line of a manifest."""
_SECRET_OPTION: Final = re.compile(
    r"(--(?=\w*?(?:key|secret|token|password|connection_string))\w+)(=.*)?", re.IGNORECASE
)


def redact_secrets(argv: Sequence[str]) -> list[str]:
    """Replace access keys, passwords and tokens in arguments by ``***``."""
    redacted: list[str] = []
    is_value_secret = False
    for arg in argv:
        match = _SECRET_OPTION.fullmatch(arg)
        value = f"{match[1]}={_REDACTED}" if match and match[2] else arg
        redacted.append(_REDACTED if is_value_secret else value)
        is_value_secret = bool(match and not match[2])
    return redacted


def expand_arguments(pipeline: str, argv: Sequence[str]) -> list[str]:
    """Return the arguments with those of the manifest of ``--like``, if it is given, before them.

    Options of the manifest that are not replayed (:data:`_REPLAYED`) are printed.

    Raises:
        InputNotFoundError: there is no such manifest.
        InvalidValueError: it is of another pipeline.
        ManifestError: it is damaged, or of another version.
    """
    path = next((value for name, value in _iter_options(argv) if name == _OPTION), None)
    if path is None:
        return list(argv)
    manifest = read_manifest_file(path)
    if manifest.pipeline != pipeline:
        raise InvalidValueError(
            f"--like {path} is the manifest of a run of {manifest.pipeline}, not {pipeline}"
        )
    given = {name for name, _ in _iter_options(argv)}
    replayed: list[str] = []
    recorded: list[str] = []
    target: list[str] = []  # where the words of the option belong that is read
    for word in manifest.run.command[3:]:
        if word.startswith("-"):
            name = word.partition("=")[0]
            target = [] if name in given else replayed if name in _REPLAYED else recorded
        target.append(word)
    if recorded:
        print(f"recorded, not replayed: {escape_line(shlex.join(recorded))}", file=sys.stderr)
    return [*replayed, *argv]


def _iter_options(argv: Sequence[str]) -> Iterable[tuple[str, str | None]]:
    """Yield the names and values of the options; the value is None without one."""
    for index, word in enumerate(argv):
        following = argv[index + 1] if index + 1 < len(argv) else None
        if word.startswith("--"):
            name, has_value, value = word.partition("=")
            yield name, value if has_value else following


def read_manifest_file(path: str) -> RunManifest:
    """Read the manifest of ``--like``.

    Raises:
        InputNotFoundError: there is none, or it is no JSON.
        InvalidValueError: it is of another command than ``beam run``.
        ManifestError: it is damaged, or of another version.
    """
    try:
        with open(os.path.expanduser(path), encoding="utf-8-sig") as file:
            manifest = parse_manifest(json.load(file), path)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputNotFoundError(f"--like {path} cannot be read ({reason}): give a manifest.json") from error
    if not isinstance(manifest, RunManifest):
        raise InvalidValueError(
            f"--like {path} is a manifest of {manifest.pipeline}, which is not run by beam run"
        )
    return manifest


def compare_with_manifest(storage: Storage, folder: str, expected: RunManifest, path: str) -> int:
    """Compare a finished directory with a manifest, print the result and return the exit code.

    Args:
        expected: the manifest of ``--like``, read before the run, which may replace it.
        path: its path, for messages.
    """
    manifest = read_manifest(storage, folder)
    assert isinstance(manifest, RunManifest), "a pipeline writes no other"
    differences: list[str] = []
    if isinstance(expected, DocumentsManifest) and isinstance(manifest, DocumentsManifest):
        differences += _compare(
            "input", *({item.file: item.md5 for item in each.inputs} for each in (expected, manifest))
        )
    expected_files, files = (
        {entry.file: entry.sha256 for entry in listed_files(each)} for each in (expected, manifest)
    )
    differences += _compare("file", expected_files, files)
    if not differences:
        print(f"all {len(files):,} files have the SHA-256 of {path}")
        return OK
    print("\n".join(differences))
    print(f"{folder} differs from {path}: another input, version or option")
    versions = [each.run.pyarrow for each in (expected, manifest) if isinstance(each, DocumentsManifest)]
    if len(set(versions)) > 1:
        print(
            f"{path} was made with pyarrow {versions[0]}, and this is {versions[1]}: each shard names it in "
            "its footer, so that no shard has the same SHA-256"
        )
    return FAILED


def _compare(kind: str, expected: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    """Return a line for each of the first differences, and one for the number of the rest."""
    lines = [
        f"{kind} {name}: "
        + ("missing" if name not in found else "new" if name not in expected else "other content")
        for name in sorted(expected.keys() | found.keys())
        if expected.get(name) != found.get(name)
    ]
    rest = [f"and {len(lines) - _MAX_NAMED:,} more {kind}s"] if len(lines) > _MAX_NAMED else []
    return lines[:_MAX_NAMED] + rest
