"""A run that fills a mirror: from parsed options to the exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from bioshards.corpus import workspace
from bioshards.corpus.download import europepmc, pubmed
from bioshards.corpus.download.mirror import Mirror
from bioshards.corpus.download.named import Named, named
from bioshards.corpus.download.pmc_selection import Articles
from bioshards.corpus.errors import OutputMismatchError
from bioshards.corpus.exit_codes import NOT_PUBLISHED, OK
from bioshards.corpus.files import LocalFiles
from bioshards.corpus.lock import locked
from bioshards.corpus.manifest import InventoryIdentity, MirrorConfig, MirrorRun, utc_now
from bioshards.corpus.workspace import Workspace

from . import bucket, estimates, fetch, plan
from .dataflow import Task
from .executing import execute, prepare
from .fetch import Job
from .fetching import REMOTE_LANES, Listed, look, mirror_folder
from .options import Parser, UsageError
from .starting import command_of, for_workers_elsewhere, output_at_fault, where

_LISTED = {"pubmed": pubmed, "europepmc": europepmc}


def run(parser: Parser, options: Any, rest: Sequence[str], arguments: Sequence[str]) -> int:
    """Do what the command line asks for; returns the exit code."""
    names = _names(options.input or [])
    folder = mirror_folder(options.mirror or "mirror", "")
    notices = for_workers_elsewhere(rest, {"--mirror": folder}, options.dry_run)
    place = where(parser, rest, options.workers, [folder], [folder] if options.dry_run else [])
    files, local = place.files, not place.runner_given
    mirror = Mirror(files, folder)
    listed = {
        name: look(mirror, _LISTED[name], getattr(options, f"{name}_url"), by_name, options, local)
        for name, by_name in sorted(names.items())
        if name in _LISTED
    }
    task = Task("fetch", folder, REMOTE_LANES * len(names))
    if options.dry_run:
        job = _job(options, arguments, mirror, names, listed, local)
        planned = plan.of_mirror(job)
        print(
            estimates.said(
                planned, notices, place, task, options.workers, lambda root: fetch.build(root, job)
            )
        )
        return OK
    for notice in [notice for found in listed.values() for notice in found.notices]:
        print(f"notice: {notice}", file=sys.stderr)
    work = Workspace(folder)
    _no_output(files, work)
    prepare(place, task)
    with output_at_fault(folder, "--mirror"):
        workspace.begin(files, work, {"pipeline": task.pipeline})
    with locked(files, work):
        job = _job(options, arguments, mirror, names, listed, local)
        files.remove(work.manifest)
        files.remove(work.outcome)
        from .progress import FetchProgress

        later = execute(
            lambda root: fetch.build(root, job),
            place,
            options.workers if job.something_to_do else 1,
            task,
            lambda terminal: FetchProgress(job, terminal),
        )
        return _report(job, later)


def _no_output(files: LocalFiles, work: Workspace) -> None:
    """See that what a mirror is to be is no other run's output, whose manifest would be taken away.

    Raises:
        OutputMismatchError: it is.
    """
    for path in (work.config, work.manifest):
        begun = files.read_json(path).get("pipeline", "fetch") if files.exists(path) else "fetch"
        if begun != "fetch":
            raise OutputMismatchError(
                f"--mirror {work.output} is an output of {begun}. Choose another folder"
            )


def _names(given: Sequence[str]) -> dict[str, list[Named]]:
    """The sources that the inputs name, with their selections.

    Raises:
        UsageError, SourceSpecError: an input that cannot be fetched.
    """
    if not given:
        raise UsageError("--input is missing: what to fetch, pubmed:, pmc: or europepmc:")
    names: dict[str, list[Named]] = {}
    for text in given:
        name = named(text)
        if name is None:
            raise UsageError(f"--input {text} is no source that can be fetched: pubmed:, pmc: or europepmc:")
        names.setdefault(name.source, []).append(name)
    bucket.check(names.get("pmc", []))
    return names


def _job(
    options: Any,
    arguments: Sequence[str],
    mirror: Mirror,
    names: dict[str, list[Named]],
    listed: dict[str, Listed],
    local: bool,
) -> Job:
    """The job that the command line asks for; unless it is a dry run, PMC's inventory is brought for it."""
    articles = Articles(
        frozenset(options.licences), frozenset(options.sets), options.drop_retracted, options.versions
    )
    now = utc_now()
    found = bucket.look(mirror, names["pmc"], articles, options, local) if "pmc" in names else None
    inventory = found.inventory if found else None
    return Job(
        mirror=mirror,
        listed=listed,
        bucket=found,
        max_rejected=options.max_rejected,
        config=MirrorConfig(
            inputs=tuple(options.input),
            servers={
                **{name: each.fetching.server.base for name, each in listed.items()},
                **({"pmc": found.fetching.server.base} if found else {}),
            },
            licences=tuple(sorted(articles.licences)),
            sets=tuple(sorted(articles.sets)),
            drop_retracted=articles.drop_retracted,
            versions=options.versions,
            inventory=InventoryIdentity(inventory.date, inventory.md5) if inventory else None,
        ),
        run=MirrorRun(
            command=command_of("fetch", arguments),
            listed_at=now,
            notices=tuple(notice for found in listed.values() for notice in found.notices),
        ),
    )


def _report(job: Job, later: str) -> int:
    if later:
        print(later)
        return OK
    files, work = job.mirror.files, job.work
    outcome = files.read_json(work.outcome)
    if outcome["files"] or outcome["problem"]:
        print(
            f"{outcome['files']:,} files in the mirror, {outcome['fetched']:,} of them fetched now "
            f"({outcome['bytes'] / 1e6:,.1f} MB)"
        )
    if found := outcome["articles"]:
        print(
            f"{found['selected']:,} articles selected: {outcome['articles_held']:,} were there, "
            f"{outcome['articles_fetched']:,} are fetched ({outcome['articles_bytes'] / 1e6:,.1f} MB), "
            f"{found['failed']:,} could not be; {outcome['articles_removed']:,} are taken out"
        )
        for reason, count in found["not_selected"].items():
            print(f"  {count:>12,}  not selected: {reason}")
    if outcome["problem"]:
        print(f"beam: {outcome['problem']}", file=sys.stderr)
        return NOT_PUBLISHED
    print(f"mirror:   {job.mirror.folder}\nreport:   {work.manifest}")
    return OK
