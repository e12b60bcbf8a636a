"""The source files of a run, and what the work folder knows of them: MD5s, lists of files, earlier inputs.

The MD5 of a file is cached by its path and stamp.  A folder of single articles is a few hundred sources of up
to 10,000 files each, whose names take hundreds of megabytes: the list of a source's files is in the work
folder, and in neither the Beam graph nor the elements between steps.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import astuple, replace
from typing import Final

from bioshards.corpus.errors import BadFileError, RunError, shorten_list
from bioshards.corpus.lifecycle.job import ShardsJob
from bioshards.corpus.manifest import DocumentsManifest, find_manifest
from bioshards.corpus.output.work_files import read_report, write_report
from bioshards.corpus.storage.checksums import md5_of_file
from bioshards.corpus.storage.parallel import parallel_for_each, prefetch_map
from bioshards.corpus.storage.source_file import SourceFile, SourcePart, open_source, stem_from_name

_ARTICLE_GROUP: Final = re.compile(r"PMC\d{4,}xxxx|articles-\d{3,}-of-\d{3,}")
"""Stem of a group of single articles (jats/inputs.py)."""


def without_parts(sources: Iterable[SourceFile]) -> list[SourceFile]:
    """Return the sources without their file lists."""
    return [replace(source, parts=()) for source in sources]


def save_part_lists(job: ShardsJob, sources: Iterable[SourceFile]) -> None:
    """Write the file lists of multi-file sources, for :func:`load_parts`."""

    def save_part_list(source: SourceFile) -> None:
        write_report(
            job.storage, job.output.part_list_path(source.stamp), [astuple(part) for part in source.parts]
        )

    existing = set(job.storage.list_names(f"{job.output.work_folder}/part_lists"))
    multi_file_sources = [source for source in sources if source.parts]
    parallel_for_each(
        job.storage,
        save_part_list,
        [source for source in multi_file_sources if f"{source.stamp}.json" not in existing],
    )


def load_parts(job: ShardsJob, source: SourceFile) -> SourceFile:
    """Return the source with its file list.

    Raises:
        RunError: the list is damaged.
    """
    if not source.num_files or source.parts:
        return source
    path = job.output.part_list_path(source.stamp)
    parts = read_report(job.storage, path, [])
    if parts is None:
        job.storage.remove(path)
        raise RunError(
            f"{path} was damaged and is removed. Run the same command again: it makes the list anew"
        )
    return replace(source, parts=tuple(SourcePart(*part) for part in parts))


def compute_input_md5(job: ShardsJob, source: SourceFile) -> str:
    """Return the MD5 of a source in hexadecimal; the source is read only if it is new or has changed.

    The MD5 of a multi-file source is that of a list of the names and MD5s of its files.

    Raises:
        BadFileError: the source cannot be read, or its ``.md5`` file has another MD5.
    """
    cache_path = job.output.input_digest_path(source.path, source.stamp)
    if cached := read_report(job.storage, cache_path, []):
        return str(cached["md5"])
    if source.num_files:
        digest = _digest_parts(job, load_parts(job, source))
        write_report(job.storage, cache_path, {"md5": digest})
        return digest
    with open_source(job.storage, source.path) as file:
        digest = md5_of_file(file)
    sidecar_path = f"{source.path}.md5"
    if job.storage.exists(sidecar_path):
        with job.storage.open(sidecar_path) as file:
            expected = re.search(rb"\b[0-9a-fA-F]{32}\b", file.read(4096))
        if expected and expected[0].decode().lower() != digest:
            remedy = "" if source.retrieved_at else "; delete it and download it again"
            raise BadFileError(
                "checksum", f"its MD5 is {digest}, its .md5 file says {expected[0].decode()}{remedy}"
            )
    write_report(job.storage, cache_path, {"md5": digest})
    return digest


def forget_digests(job: ShardsJob, sources: Iterable[SourceFile]) -> None:
    """Remove the cached MD5s of sources, so that these are read again."""
    cached = set(job.storage.list_names(job.output.work_path("input_digests")))
    paths = [job.output.input_digest_path(source.path, source.stamp) for source in sources]
    parallel_for_each(
        job.storage, job.storage.remove, [path for path in paths if path.rpartition("/")[2] in cached]
    )


def _digest_parts(job: ShardsJob, source: SourceFile) -> str:
    def digest_part(part: SourcePart) -> str:
        try:
            with open_source(job.storage, part.path) as file:
                return md5_of_file(file)
        except BadFileError:  # an unreadable file is rejected when it is staged
            return f"unreadable-{part.stamp}"

    digest = hashlib.md5(usedforsecurity=False)
    for part, part_md5 in zip(
        source.parts, prefetch_map(job.storage, digest_part, source.parts), strict=True
    ):
        digest.update(f"{part.name} {part_md5}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()


def describe_missing_inputs(
    job: ShardsJob, sources: Sequence[SourceFile], other_names: Iterable[str]
) -> list[str]:
    """Return notices on the files and single articles that an earlier run has read and this one will not.

    Files are compared by their names without extensions, so that another folder of the same files is no
    change.  Single articles are known as long as the work folder exists.  What another version of an article
    or the baseline of a later year replaces is not missing.

    Args:
        sources: sources that are available, with their parts.
        other_names: names of the files that are to be fetched.
    """
    stems = {source.stem for source in sources} | {stem_from_name(name) for name in other_names}
    newest_year = max(map(_find_year, stems), default="")
    files = [
        stem
        for stem in _list_previous_stems(job)
        if stem not in stems
        and not _ARTICLE_GROUP.fullmatch(stem)
        and not "" < _find_year(stem) < newest_year
    ]
    names = {_strip_version(part.name) for source in sources for part in source.parts}
    articles = [name for name in _list_replaced_parts(job, sources) if _strip_version(name) not in names]
    return [
        _describe(kind, missing, job) for kind, missing in (("file", files), ("article", articles)) if missing
    ]


def _find_year(stem: str) -> str:
    match = re.match(r"pubmed(\d\d)n\d", stem)
    return match[1] if match else ""


def _strip_version(name: str) -> str:
    return re.sub(r"^(PMC\d+)\.\d+", r"\1", name)


def _list_previous_stems(job: ShardsJob) -> list[str]:
    """Return the stems of the sources in the manifest or, of a stopped run, of those that are staged."""
    manifest = find_manifest(job.storage, job.output.path, DocumentsManifest)
    if manifest:
        return sorted({stem_from_name(item.file) for item in manifest.inputs})
    names = job.storage.list_names(job.output.work_path("staged"))
    return sorted({match[1] for name in names if (match := re.fullmatch(r"(.+)-[0-9a-f]{8}\.json", name))})


def _list_replaced_parts(job: ShardsJob, sources: Iterable[SourceFile]) -> list[str]:
    """Return the names of the articles in part lists that are not those of unchanged sources."""
    unchanged = {job.output.part_list_path(source.stamp) for source in sources if source.parts}
    folder = f"{job.output.work_folder}/part_lists"
    paths = [f"{folder}/{name}" for name in job.storage.list_names(folder) if name.endswith(".json")]
    replaced = [path for path in paths if path not in unchanged]
    part_lists = prefetch_map(job.storage, lambda path: read_report(job.storage, path, []), replaced)
    return sorted({SourcePart(*part).name for parts in part_lists for part in parts or ()})


def _describe(kind: str, names: list[str], job: ShardsJob) -> str:
    count = f"1 {kind}" if len(names) == 1 else f"{len(names):,} {kind}s"
    output = job.as_typed(job.output.path)
    return (
        f"{count} that an earlier run into {output} has read {'is' if len(names) == 1 else 'are'} not among "
        f"the inputs: {shorten_list(names)}. The result will be without "
        f"{'its' if len(names) == 1 else 'their'} documents, and with the versions that these replaced"
    )
