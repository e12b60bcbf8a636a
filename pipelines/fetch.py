"""Download PubMed, PMC and Europe PMC into a mirror: ``beam run fetch``."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

from bioshards.corpus.download.sources import (
    DEFAULT_SETS,
    SETS,
    SOURCES,
    SourceSpec,
    Versions,
    parse_source_spec,
)
from bioshards.corpus.errors import OutputMismatchError, UsageError, shorten_list
from bioshards.corpus.jats.filters import LICENCES_OPTION
from bioshards.corpus.licences import DEFAULT_LICENCES
from bioshards.corpus.ui.options import Option, nonempty_subset_of
from bioshards.pipelines.options import (
    CONNECTIONS_OPTION,
    MAX_REJECTED_OPTION,
    DownloadOptions,
    Parser,
    make_url_options,
)

if TYPE_CHECKING:
    import apache_beam as beam

    from bioshards.corpus.download.pmc.article_filter import ArticleFilter
    from bioshards.corpus.download.pmc.article_ranges import RangeReport
    from bioshards.corpus.download.pmc.range_plan import RangePlan
    from bioshards.corpus.manifest import MirrorConfig
    from bioshards.corpus.output.output_layout import OutputDir
    from bioshards.corpus.storage.storage_protocol import Storage
    from bioshards.corpus.ui.progress import StepBar
    from bioshards.pipelines.context import JobSpec
    from bioshards.pipelines.download_steps import FetchJob
    from bioshards.pipelines.inputs.downloads import SourceListing
    from bioshards.pipelines.inputs.run_inputs import PmcArticlePlan
    from bioshards.pipelines.run import CommandLine, Session

NAME: Final = "fetch"
DESCRIPTION = """\
Fetch PubMed's files, PMC's articles and Europe PMC's packages into a mirror: a folder of verified copies,
from which they are processed later. What is there is not fetched again."""


_ARTICLES_GROUP: Final = "which of PMC's articles (pmc:), decided before any is fetched"


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchOptions(DownloadOptions):
    """Options of ``beam run fetch``."""

    input: Annotated[
        tuple[str, ...],
        Option(
            "; ".join(source.usage for source in SOURCES.values())
            + " (numbers for pmc: are ids, in whole ranges of 10,000); repeatable",
            group="what to fetch",
            metavar="NAME",
            many="repeat",
        ),
    ] = ()
    max_rejected: Annotated[float, MAX_REJECTED_OPTION] = 0.001
    connections: Annotated[int, CONNECTIONS_OPTION] = 64
    licences: Annotated[tuple[str, ...], dataclasses.replace(LICENCES_OPTION, group=_ARTICLES_GROUP)] = tuple(
        sorted(DEFAULT_LICENCES)
    )
    sets: Annotated[
        tuple[str, ...],
        Option(
            f"comma-separated, of {', '.join(SETS)} (default: all but ocr, scanned pages)",
            group=_ARTICLES_GROUP,
            metavar="NAMES",
            parse=nonempty_subset_of(SETS),
        ),
    ] = tuple(sorted(DEFAULT_SETS))
    drop_retracted: Annotated[
        bool | None,
        Option(
            "leave out retracted articles (default: no; their list says which they are)",
            group=_ARTICLES_GROUP,
        ),
    ] = None
    versions: Annotated[Versions, Option("of an article (default: newest)", group=_ARTICLES_GROUP)] = "newest"
    urls: Annotated[tuple[tuple[str, str], ...], make_url_options(SOURCES)] = ()

    def check(self) -> None:
        """Check the inputs."""
        self.parse_specs()

    def parse_specs(self) -> dict[str, list[SourceSpec]]:
        """Parse the sources that the inputs name.

        Raises:
            UsageError, SourceSpecError: an input that cannot be downloaded.
        """
        names = " or ".join(f"{name}:" for name in SOURCES)
        if not self.input:
            raise UsageError(f"--input is missing: what to fetch, {names}")
        specs_by_source: dict[str, list[SourceSpec]] = {}
        for text in self.input:
            spec = parse_source_spec(text)
            if spec is None:
                raise UsageError(f"--input {text} is no source that can be fetched: {names}")
            specs_by_source.setdefault(spec.source, []).append(spec)
        return specs_by_source

    @property
    def article_filter(self) -> ArticleFilter:
        """Return which of PMC's articles are downloaded."""
        from bioshards.corpus.download.pmc.article_filter import ArticleFilter

        return ArticleFilter(
            licences=frozenset(self.licences),
            sets=frozenset(self.sets),
            drop_retracted=bool(self.drop_retracted),
            versions=self.versions,
        )


def run(options: FetchOptions, line: CommandLine) -> int:
    """Fetch the files of each source and PMC's articles by ranges, then write the mirror's manifest."""
    # Imported here, so that --help does not wait for Beam.
    from bioshards.corpus.download.mirror import Mirror
    from bioshards.corpus.manifest import MirrorRun, utc_now
    from bioshards.corpus.output.output_layout import OutputDir
    from bioshards.pipelines import dry_run
    from bioshards.pipelines.context import JobSpec, PathOption
    from bioshards.pipelines.download_steps import FetchJob
    from bioshards.pipelines.inputs import article_files
    from bioshards.pipelines.inputs.downloads import REMOTE_SLOTS, list_source, resolve_mirror_folder
    from bioshards.pipelines.run import check_published, open_session, print_notices

    specs_by_source = options.parse_specs()
    article_specs = specs_by_source.get("pmc", [])
    folder = resolve_mirror_folder(options.mirror or "mirror", "")
    session = open_session(line, options, [PathOption("--mirror", folder, is_written=True)])
    mirror, is_local_run = Mirror(session.storage, folder), session.context.is_local_run
    listed_at = utc_now()
    listings = {
        source: list_source(mirror, source, specs, options, is_local_run)
        for source, specs in sorted(specs_by_source.items())
        if SOURCES[source].folders
    }
    notices = [notice for listing in listings.values() for notice in listing.notices]
    spec = JobSpec(NAME, folder, REMOTE_SLOTS * len(specs_by_source))
    with contextlib.ExitStack() as claim:
        if not options.dry_run:
            print_notices(notices)
            claim.enter_context(_claim_mirror(session, OutputDir(folder), spec))
        plan = None
        if article_specs:  # it updates the inventory in the mirror, unless it is a dry run
            article_filter = options.article_filter
            plan = article_files.plan_articles(mirror, article_specs, article_filter, options, is_local_run)
            notices += plan.notices
        job = FetchJob(
            storage=session.storage,
            output=OutputDir(folder),
            config=_make_config(options, listings, plan),
            max_rejected=options.max_rejected,
            run=MirrorRun(command=session.command, listed_at=listed_at, notices=tuple(notices)),
        )

        def build(root: beam.Pipeline) -> None:
            _build(root, job, listings, plan)

        if options.dry_run:
            lines = [f"notice: {notice}" for notice in notices] + dry_run.describe_listings(listings)
            lines += dry_run.describe_articles(plan) if plan else []
            return dry_run.print_plan(session, [f"mirror:      {folder}", *lines], build)
        print_notices(plan.notices if plan else ())
        job.storage.remove(job.output.result_path)  # the graph removes the manifest, after its checks
        has_work = plan or any(listing.to_fetch for listing in listings.values())
        workers = options.workers if has_work else 1
        result = session.execute(job, spec, build, workers, _list_bars(listings, plan))
        _print_result(result)
        check_published(result)
        print(f"mirror:   {folder}\nreport:   {job.output.manifest_path}")
    return session.compare(job)


def _list_bars(listings: Mapping[str, SourceListing], plan: PmcArticlePlan | None) -> list[StepBar]:
    from bioshards.corpus.ui.progress import StepBar

    sizes = [remote_file.size for listing in listings.values() for remote_file in listing.to_fetch]
    if all(sizes):
        texts = {"fetched": f"{{:,}}/{len(sizes):,} files"}
        files = StepBar("received", "fetching files", "B", sum(sizes), texts=texts)
    else:
        files = StepBar("received", "fetching files", " files", len(sizes), "fetched")
    num_ranges = len(plan.ranges) if plan else 0
    return [
        files,
        StepBar("ranges", "fetching articles", " ranges", num_ranges, texts={"requests": "{:,} requests"}),
        StepBar("publish", "publishing"),
    ]


def _make_config(
    options: FetchOptions, listings: Mapping[str, SourceListing], plan: PmcArticlePlan | None
) -> MirrorConfig:
    """Return the options as the manifest has them."""
    from bioshards.corpus.manifest import InventoryIdentity, MirrorConfig

    servers = {source: listing.download_plan.server.base_url for source, listing in listings.items()}
    if plan:
        servers["pmc"] = plan.download_plan.server.base_url
    article_filter = options.article_filter
    inventory = plan.inventory if plan else None
    return MirrorConfig(
        inputs=options.input,
        servers=servers,
        licences=tuple(sorted(article_filter.licences)),
        sets=tuple(sorted(article_filter.sets)),
        drop_retracted=article_filter.drop_retracted,
        versions=article_filter.versions,
        inventory=InventoryIdentity(inventory.date, inventory.md5) if inventory else None,
    )


def _build(
    root: beam.Pipeline,
    job: FetchJob,
    listings: Mapping[str, SourceListing],
    plan: PmcArticlePlan | None,
) -> None:
    """Build the graph: whatever removes or replaces something waits for the check of removals."""
    from bioshards.corpus.download.mirror_manifest import FetchedFile
    from bioshards.pipelines import download_steps
    from bioshards.pipelines.inputs.downloads import split_into_slots
    from bioshards.pipelines.steps import create, finish, merge, once, slots

    found: Sequence[RangePlan] = create(root, "no removals", [])
    if plan:
        to_check = create(root, "to check", split_into_slots(plan.ranges_to_check, plan.download_plan))
        found = slots("removals", download_steps.find_removals, job, to_check, plan)
    checked = once("check", download_steps.check_removals, job, found, job.output.path)
    mirrored = [
        FetchedFile(source, remote_file, mirrored_file)
        for source, listing in listings.items()
        for remote_file, mirrored_file in listing.mirrored.items()
    ]
    fetched = [create(root, "no files", list[FetchedFile]())]
    for source, listing in listings.items():
        download = listing.download_plan
        files = create(root, f"slots of {source}", split_into_slots(listing.to_fetch, download))
        fetch_files = download_steps.fetch_files
        fetched.append(slots(f"fetch {source}", fetch_files, job, files, source, download, checked))
    all_fetched = merge("fetched", fetched)
    ranges: Sequence[RangeReport] = create(root, "no ranges", [])
    if plan:
        range_slots = create(root, "to update", split_into_slots(plan.ranges, plan.download_plan))
        ranges = slots("ranges", download_steps.fetch_ranges, job, range_slots, plan, checked)
    measured = [all_fetched, found, checked, ranges]
    publish = download_steps.publish_mirror
    finish("publish", measured, publish, job, create(root, "mirrored", mirrored), all_fetched, ranges)


@contextlib.contextmanager
def _claim_mirror(session: Session, output: OutputDir, spec: JobSpec) -> Iterator[None]:
    """See that the job can run; inside the block, this run alone writes the mirror.

    The configuration of a mirror may change from run to run.

    Raises:
        UserError: it cannot; or the folder is no mirror, or another run writes it.
    """
    from bioshards.corpus.output import output_layout
    from bioshards.pipelines.execution.executor import prepare_run
    from bioshards.pipelines.run import translate_output_errors

    prepare_run(session.context, spec, session.options.force)
    _check_is_mirror(session.storage, output)
    with contextlib.ExitStack() as stack:
        with translate_output_errors(output.path, "--mirror"):
            stack.enter_context(output_layout.lock_output(session.storage, output, session.options.force))
            output_layout.mark_started(session.storage, output, {"pipeline": NAME})
        yield


def _check_is_mirror(storage: Storage, output: OutputDir) -> None:
    """Check that the folder is no other pipeline's output, whose manifest would be removed.

    Raises:
        OutputMismatchError: it is, or nobody can say.
    """
    from bioshards.corpus.manifest import ManifestError, read_any_version
    from bioshards.corpus.output.output_layout import read_started

    try:
        manifest = read_any_version(storage, output.path)
    except ManifestError as error:
        raise OutputMismatchError(
            f"{output.manifest_path} is damaged or was edited, so that it does not say whether --mirror "
            f"{output.path} is a mirror. If it is, delete the file and repeat the command"
        ) from error
    for value in (read_started(storage, output), manifest):
        pipeline = value.get("pipeline", NAME) if value else NAME
        if pipeline != NAME:
            raise OutputMismatchError(
                f"--mirror {output.path} is an output of {pipeline}. Choose another folder"
            )


def _print_result(result: Mapping[str, Any]) -> None:
    """Print what was downloaded, published or not."""
    from bioshards.pipelines.run import print_notices

    if result["files"] or result["problem"]:
        print(
            f"{result['files']:,} files in the mirror, {result['fetched']:,} of them fetched now "
            f"({result['bytes'] / 1e6:,.1f} MB)"
        )
    if articles := result["articles"]:
        print(
            f"{articles['selected']:,} articles selected: {result['articles_cached']:,} were there, "
            f"{result['articles_fetched']:,} are fetched ({result['articles_bytes'] / 1e6:,.1f} MB), "
            f"{articles['failed']:,} could not be; {result['articles_removed']:,} are taken out"
        )
        if articles["failed"] and not result["problem"]:
            details = [article["detail"] for article in articles["failed_articles"]]
            first = shorten_list(details, articles["failed"], "; ")
            print_notices([f"articles that could not be fetched: {first}. The next run tries them again"])
        for reason, count in result["articles_withdrawn"].items():
            print(f"  {count:>12,}  withdrawn: {reason}")
        for reason, count in articles["not_selected"].items():
            print(f"  {count:>12,}  not selected: {reason}")


def make_parser() -> Parser[FetchOptions]:
    """Make the parser of ``beam run fetch``."""
    return Parser(f"beam run {NAME}", DESCRIPTION, FetchOptions)
