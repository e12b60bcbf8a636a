"""A run that fills a mirror: from parsed options to the exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from bioshards.corpus.download import europepmc, pubmed
from bioshards.corpus.download.mirror import Mirror
from bioshards.corpus.download.pmc.article_filter import ArticleFilter
from bioshards.corpus.download.source_spec import SourceSpec, parse_source_spec
from bioshards.corpus.errors import OutputMismatchError
from bioshards.corpus.exit_codes import NOT_PUBLISHED, OK
from bioshards.corpus.manifest import InventoryIdentity, MirrorConfig, MirrorRun, utc_now
from bioshards.corpus.output import output_layout
from bioshards.corpus.output.lock import lock_output
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.pipelines import fetch
from bioshards.pipelines.context import JobSpec
from bioshards.pipelines.dry_run import estimates, source_plans
from bioshards.pipelines.execution.executor import execute, prepare_run
from bioshards.pipelines.execution.session import (
    check_reachable_by_workers,
    command_of,
    make_context,
    translate_output_errors,
)
from bioshards.pipelines.inputs import pmc_articles
from bioshards.pipelines.inputs.downloads import (
    REMOTE_SLOTS,
    SourceListing,
    list_source,
    resolve_mirror_folder,
)
from bioshards.pipelines.job_types import FetchJob
from bioshards.pipelines.options.parser import Parser, UsageError

_LISTED_SOURCES = {"pubmed": pubmed, "europepmc": europepmc}


def run(parser: Parser, args: Any, beam_args: Sequence[str], argv: Sequence[str]) -> int:
    """Do what the command line asks for; returns the exit code."""
    specs_by_source = _parse_specs(args.input or [])
    folder = resolve_mirror_folder(args.mirror or "mirror", "")
    notices = check_reachable_by_workers(beam_args, {"--mirror": folder}, args.dry_run)
    context = make_context(parser, beam_args, args.workers, [folder], [folder] if args.dry_run else [])
    storage, is_local_run = context.storage, not context.has_runner
    mirror = Mirror(storage, folder)
    listings = {
        source: list_source(
            mirror, _LISTED_SOURCES[source], getattr(args, f"{source}_url"), specs, args, is_local_run
        )
        for source, specs in sorted(specs_by_source.items())
        if source in _LISTED_SOURCES
    }
    job_spec = JobSpec("fetch", folder, REMOTE_SLOTS * len(specs_by_source))
    if args.dry_run:
        job = _make_job(args, argv, mirror, specs_by_source, listings, is_local_run)
        dry_run_plan = source_plans.plan_mirror(job)
        print(
            estimates.format_estimate(
                dry_run_plan, notices, context, job_spec, args.workers, lambda root: fetch.build(root, job)
            )
        )
        return OK
    for notice in [notice for listing in listings.values() for notice in listing.notices]:
        print(f"notice: {notice}", file=sys.stderr)
    output_dir = OutputDir(folder)
    _check_is_mirror(storage, output_dir)
    prepare_run(context, job_spec)
    with translate_output_errors(folder, "--mirror"):
        output_layout.mark_started(storage, output_dir, {"pipeline": job_spec.pipeline})
    with lock_output(storage, output_dir):
        job = _make_job(args, argv, mirror, specs_by_source, listings, is_local_run)
        storage.remove(output_dir.manifest_path)
        storage.remove(output_dir.result_path)
        from bioshards.pipelines.execution.progress_monitor import FetchProgress

        deferred_message = execute(
            lambda root: fetch.build(root, job),
            context,
            args.workers if job.has_work else 1,
            job_spec,
            lambda terminal: FetchProgress(job, terminal),
        )
        return _print_report(job, deferred_message)


def _check_is_mirror(storage: LocalStorage, output_dir: OutputDir) -> None:
    """See that what a mirror is to be is no other run's output, whose manifest would be taken away.

    Raises:
        OutputMismatchError: it is.
    """
    for path in (output_dir.config_path, output_dir.manifest_path):
        pipeline = storage.read_json(path).get("pipeline", "fetch") if storage.exists(path) else "fetch"
        if pipeline != "fetch":
            raise OutputMismatchError(
                f"--mirror {output_dir.path} is an output of {pipeline}. Choose another folder"
            )


def _parse_specs(input_args: Sequence[str]) -> dict[str, list[SourceSpec]]:
    """The sources that the inputs name, with their selections.

    Raises:
        UsageError, SourceSpecError: an input that cannot be fetched.
    """
    if not input_args:
        raise UsageError("--input is missing: what to fetch, pubmed:, pmc: or europepmc:")
    specs_by_source: dict[str, list[SourceSpec]] = {}
    for text in input_args:
        spec = parse_source_spec(text)
        if spec is None:
            raise UsageError(f"--input {text} is no source that can be fetched: pubmed:, pmc: or europepmc:")
        specs_by_source.setdefault(spec.source, []).append(spec)
    pmc_articles.check_specs(specs_by_source.get("pmc", []))
    return specs_by_source


def _make_job(
    args: Any,
    argv: Sequence[str],
    mirror: Mirror,
    specs_by_source: dict[str, list[SourceSpec]],
    listings: dict[str, SourceListing],
    is_local_run: bool,
) -> FetchJob:
    """The job that the command line asks for; unless it is a dry run, PMC's inventory is brought for it."""
    article_filter = ArticleFilter(
        frozenset(args.licences), frozenset(args.sets), args.drop_retracted, args.versions
    )
    listed_at = utc_now()
    article_plan = (
        pmc_articles.plan_articles(mirror, specs_by_source["pmc"], article_filter, args, is_local_run)
        if "pmc" in specs_by_source
        else None
    )
    inventory = article_plan.inventory if article_plan else None
    return FetchJob(
        mirror=mirror,
        listings=listings,
        article_plan=article_plan,
        max_rejected=args.max_rejected,
        config=MirrorConfig(
            inputs=tuple(args.input),
            servers={
                **{source: listing.download_plan.server.base_url for source, listing in listings.items()},
                **({"pmc": article_plan.download_plan.server.base_url} if article_plan else {}),
            },
            licences=tuple(sorted(article_filter.licences)),
            sets=tuple(sorted(article_filter.sets)),
            drop_retracted=article_filter.drop_retracted,
            versions=args.versions,
            inventory=InventoryIdentity(inventory.date, inventory.md5) if inventory else None,
        ),
        run_info=MirrorRun(
            command=command_of("fetch", argv),
            listed_at=listed_at,
            notices=tuple(notice for article_plan in listings.values() for notice in article_plan.notices),
        ),
    )


def _print_report(job: FetchJob, deferred_message: str) -> int:
    if deferred_message:
        print(deferred_message)
        return OK
    storage, output_dir = job.mirror.storage, job.output_dir
    outcome = storage.read_json(output_dir.result_path)
    if outcome["files"] or outcome["problem"]:
        print(
            f"{outcome['files']:,} files in the mirror, {outcome['fetched']:,} of them fetched now "
            f"({outcome['bytes'] / 1e6:,.1f} MB)"
        )
    if articles := outcome["articles"]:
        print(
            f"{articles['selected']:,} articles selected: {outcome['articles_held']:,} were there, "
            f"{outcome['articles_fetched']:,} are fetched ({outcome['articles_bytes'] / 1e6:,.1f} MB), "
            f"{articles['failed']:,} could not be; {outcome['articles_removed']:,} are taken out"
        )
        for reason, count in articles["not_selected"].items():
            print(f"  {count:>12,}  not selected: {reason}")
    if outcome["problem"]:
        print(f"beam: {outcome['problem']}", file=sys.stderr)
        return NOT_PUBLISHED
    print(f"mirror:   {job.mirror.folder}\nreport:   {output_dir.manifest_path}")
    return OK
