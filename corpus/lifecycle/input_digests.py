"""MD5 of source files, cached in the work folder by path and stamp."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from bioshards.corpus.errors import BadFileError
from bioshards.corpus.lifecycle.part_lists import load_parts
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.storage.checksums import md5_of_file
from bioshards.corpus.storage.parallel import parallel_for_each, prefetch_map
from bioshards.corpus.storage.source_file import SourceFile, SourcePart, open_source
from bioshards.corpus.storage.storage_protocol import Storage


def compute_input_md5(storage: Storage, output_dir: OutputDir, source: SourceFile) -> str:
    """Return the MD5 of a source in hexadecimal; the source is read only if it is new or has changed.

    The MD5 of a multi-file source is that of a list of the names and MD5s of its files.

    Raises:
        BadFileError: the source cannot be read, or its ``.md5`` file has another MD5.
    """
    cache_path = output_dir.input_digest_path(source.path, source.stamp)
    if storage.exists(cache_path):
        return str(storage.read_json(cache_path)["md5"])
    if source.num_files:
        digest = _digest_parts(storage, load_parts(storage, output_dir, source))
        storage.write_json(cache_path, {"md5": digest, "path": source.path})
        return digest
    with open_source(storage, source.path) as file:
        digest = md5_of_file(file)
    sidecar_path = f"{source.path}.md5"
    if storage.exists(sidecar_path):
        with storage.open(sidecar_path) as file:
            expected = re.search(rb"\b[0-9a-fA-F]{32}\b", file.read(4096))
        if expected and expected[0].decode().lower() != digest:
            remedy = "" if source.retrieved_at else "; delete it and download it again"
            raise BadFileError(
                "checksum", f"its MD5 is {digest}, its .md5 file says {expected[0].decode()}{remedy}"
            )
    storage.write_json(cache_path, {"md5": digest, "path": source.path})
    return digest


def forget_digests(storage: Storage, output_dir: OutputDir, sources: Iterable[SourceFile]) -> None:
    """Remove the cached MD5s of sources, so that these are read again."""
    cached = set(storage.list_names(output_dir.input_digests_folder))
    paths = [output_dir.input_digest_path(source.path, source.stamp) for source in sources]
    parallel_for_each(storage, storage.remove, [path for path in paths if path.rpartition("/")[2] in cached])


def _digest_parts(storage: Storage, source: SourceFile) -> str:
    def digest_part(part: SourcePart) -> str:
        try:
            with open_source(storage, part.path) as file:
                return md5_of_file(file)
        except BadFileError:  # an unreadable file is rejected when it is staged
            return f"unreadable-{part.stamp}"

    digest = hashlib.md5(usedforsecurity=False)
    for part, part_md5 in zip(source.parts, prefetch_map(storage, digest_part, source.parts), strict=True):
        digest.update(f"{part.name} {part_md5}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()
