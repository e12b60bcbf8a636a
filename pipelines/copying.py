"""``beam copy``: a finished directory from one store to another, every file that its manifest lists verified.

A vocabulary is built, and a model trained, of files on a machine; shards and examples may have been made on
gs:// or s3://.  The copy is a finished directory like its original: no manifest, not finished.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from bioshards.corpus import overlap, workspace
from bioshards.corpus.ahead import for_each
from bioshards.corpus.errors import OutputMismatchError
from bioshards.corpus.exit_codes import OK
from bioshards.corpus.files import Checked, LocalFiles
from bioshards.corpus.live_line import LiveLine
from bioshards.corpus.manifest import (
    Listed,
    ManifestError,
    ManifestNotFoundError,
    MirrorManifest,
    OutputManifest,
    encode,
    listed_files,
    read_manifest,
)
from bioshards.corpus.shards import Shard
from bioshards.corpus.workspace import Workspace
from bioshards.vocab import inputs
from bioshards.vocab.inputs import InputError

from .again import again
from .options import Parser, UsageError
from .starting import FILE_OPTIONS, absolute, begun, output_at_fault, where

_DESCRIPTION: Final = """\
A finished directory (document shards, words, a vocabulary, a pretraining set) from one store to another:
local, gs:// or s3://. Every file that its manifest lists is verified by SHA-256; what is at the target
already, and right, is not copied again; the manifest comes last."""
_THREADS: Final = 8
"""Files copied at a time: most of the time of a small one is waiting for a store's answer."""
_BLOCK: Final = 1 << 22
_MANIFEST: Final = "manifest.json"

_OF_INPUTS = re.compile(rf"(.+/)?(data-|pretrain_data\.)[^/]*|rejected/[^/]*|{re.escape(overlap.FILE)}")
"""Files that another input may not have; all others are there whatever the input is."""


def parser() -> Parser:
    """The options of ``beam copy``."""
    parser = Parser("beam copy", _DESCRIPTION)
    parser.epilog = "Options of Beam's file systems (--s3_endpoint_url ..., --no_auth) follow as they are."
    parser.add_argument("source", metavar="SOURCE", help="a finished directory")
    parser.add_argument(
        "target", metavar="TARGET", help="a new folder, or an earlier copy, which is brought up to date"
    )
    return parser


def run(parser: Parser, options: Any, rest: Sequence[str], _: Sequence[str]) -> int:
    """Do what the command line asks for; returns the exit code.

    Raises:
        UsageError, InputError, OutputMismatchError: with a message for the person.
    """
    source, target = absolute(options.source), absolute(options.target)
    files = where(parser, rest, 1, [source, target]).files
    for word in rest:
        if word.startswith("-") and not word.startswith(FILE_OPTIONS):
            raise UsageError(f"{word} says nothing to beam copy")
    size, copied = copy(files, source, target)
    print(f"{target} holds {source}: {size:,} files, {copied:,} of them copied now")
    return OK


def copy(files: LocalFiles, source: str, target: str) -> tuple[int, int]:
    """Copy a finished directory; returns how many files it has, and how many had to be copied.

    Raises:
        InputError: the source is not finished, or a file of it is not as its manifest lists it.
        OutputMismatchError: the target holds something else.
    """
    inputs.apart([source], target)
    manifest, original = _manifest(files, source)
    listed = {**{one.file: one for one in listed_files(manifest)}, _MANIFEST: original}
    there = set(workspace.names(files, source))
    if missing := sorted(listed.keys() - there):
        if files.exists(f"{source}/{missing[0]}"):
            raise InputError(
                f"{source} has folders of its own ({missing[0]}), as a model has, and is not copied by this: "
                "take gcloud storage cp --recursive, or aws s3 cp --recursive"
            )
        raise InputError(f"{source} has no {missing[0]}, which its manifest.json lists; make it again")
    work = Workspace(target)
    config = encode(manifest.config)
    with output_at_fault(target, "TARGET"):
        workspace.check(files, work, config)
        _not_of_a_run(files, work)
    with begun(files, work, config, "TARGET"):
        workspace.clear(files, work)
        before = set(workspace.names(files, target))
        surplus = filter(_OF_INPUTS.fullmatch, before - there)
        for_each(files, files.remove, [f"{target}/{name}" for name in surplus])
        copied = _all_but_manifest(files, source, target, listed, there, before)
        again(lambda: _one(files, source, target, _MANIFEST, original, False))
    return len(there), copied + 1


def _not_of_a_run(files: LocalFiles, work: Workspace) -> None:
    """See that no run has made what is at the target, perhaps of other inputs: it is no copy.

    Raises:
        OutputMismatchError: one has.
    """
    if any(files.is_folder(f"{work.folder}/{step}") for step in ("staged", "counts", "made")):
        raise OutputMismatchError(
            f"{work.output} is the output of a run, which a copy would replace. Choose another folder, or "
            "delete that one"
        )


def _all_but_manifest(
    files: LocalFiles,
    source: str,
    target: str,
    listed: Mapping[str, Listed],
    there: Collection[str],
    before: Collection[str],
) -> int:
    """Copy the files that are not as they should be; returns how many that were."""
    names = sorted(name for name in there if name != _MANIFEST)
    said = LiveLine()
    copied = 0

    def one(name: str) -> bool:
        return again(lambda: _one(files, source, target, name, listed.get(name), name in before))

    with ThreadPoolExecutor(_THREADS) as pool:
        try:
            for done, new in enumerate(pool.map(one, names), 1):
                copied += new
                said(f"{done:,}/{len(names):,} files")
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
        finally:
            said.end()
    return copied


def _manifest(files: LocalFiles, source: str) -> tuple[OutputManifest, Shard]:
    """The manifest of a directory that can be copied; and the file itself, as any other that is listed."""
    path = f"{source}/{_MANIFEST}"
    try:
        manifest = read_manifest(files, source)
    except ManifestNotFoundError as error:
        raise InputError(f"{source} is no finished directory: it has no manifest.json") from error
    except ManifestError as error:
        raise InputError(str(error)) from error
    if isinstance(manifest, MirrorManifest):
        raise InputError(f"{path} lists no outputs: a mirror is not copied by this. Run beam run fetch there")
    with files.open(path) as file:
        data = file.read()
    return manifest, Shard(_MANIFEST, 0, len(data), hashlib.sha256(data).hexdigest())


def _one(files: LocalFiles, source: str, target: str, name: str, listed: Listed | None, there: bool) -> bool:
    """Copy a file, unless it is there as it is listed; returns whether it was copied."""
    if listed and there and not inputs.damage(files, f"{target}/{name}", listed):
        return False
    with files.open(f"{source}/{name}") as old, files.write(f"{target}/{name}") as new:
        checked = Checked(new)
        while block := old.read(_BLOCK):
            checked.write(block)
        if listed and checked.sha256 != listed.sha256:
            raise InputError(
                f"{source}/{name} is not the file that its manifest.json lists, or was written anew "
                "meanwhile: make it again, or copy that again"
            )
    return True
