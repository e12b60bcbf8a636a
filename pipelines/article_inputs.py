"""What the ``--input`` of ``pmc_to_shards`` names: files that are here, and what is to be fetched."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from bioshards.corpus import article_sources
from bioshards.corpus.download import europepmc, pmc
from bioshards.corpus.download.mirror import Mirror
from bioshards.corpus.download.pmc_selection import DEFAULT_SETS, Articles
from bioshards.corpus.files import LocalFiles

from . import bucket
from .article_options import rules_of
from .fetching import look, mirror_folder
from .inputs import Inputs, names_and_paths, rate


def find(files: LocalFiles, options: Any, output: str, given: Sequence[str], local: bool) -> Inputs:
    """Find what the inputs of ``pmc_to_shards`` name: look at folders, listings and the mirror.

    Raises:
        UsageError, InputNotFoundError, SourceSpecError, ListingError, EmptySelectionError, DownloadError:
            with a message for the person.
    """
    by_name, paths = names_and_paths(given, "pmc", "europepmc")
    bucket.check(by_name)
    found = Inputs(article_sources.discover(files, paths) if paths else [])
    if not by_name:
        return found
    mirror = Mirror(files, mirror_folder(options.mirror, output))
    packages = [name for name in by_name if name.source == "europepmc"]
    if packages:
        listed = look(mirror, europepmc, options.europepmc_url, packages, options, local)
        held = [article_sources.source(there.found, there.retrieved) for there in listed.held.values()]
        arriving = {mirror.path(remote) for remote in listed.wanted}
        here = {source.path: source for source in [*found.here, *held] if source.path not in arriving}
        found = Inputs(
            *(sorted(here.values()), listed.wanted, listed.fetching, listed.notices, listed.at),
            rate(listed.held.values()),
        )
    ranges = [name for name in by_name if name.source == "pmc"]
    if ranges:
        rules = rules_of(options)
        sets = DEFAULT_SETS | {"ocr"} if rules.keep_ocr else DEFAULT_SETS
        articles = Articles(frozenset(rules.licences), sets, rules.drop_retracted)
        asked = bucket.look(mirror, ranges, articles, options, local)
        lists = {pmc.selected_path(mirror.folder, number) for number in asked.ranges}
        here = {source.path: source for source in found.here if source.path not in lists}
        found = dataclasses.replace(found, here=sorted(here.values()), bucket=asked)
    return found
