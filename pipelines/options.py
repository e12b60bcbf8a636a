"""Options that several pipelines share, the parser of command lines, and the errors on misspelt options.

argparse parses the pipeline's own options.  The others go to Beam, which must know them: Beam's own parser
would drop a misspelt option with a warning.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import io
import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Generic, Literal, NoReturn, TypeVar

from bioshards.corpus.cpus import count_cpus
from bioshards.corpus.download.sources import SOURCES
from bioshards.corpus.errors import UsageError, find_nearest, suggest_nearest
from bioshards.corpus.preset_names import explain_absent_presets
from bioshards.corpus.text_config import TextConfig
from bioshards.corpus.ui.options import (
    Option,
    OptionParser,
    OptionsT,
    Overrides,
    contact_address,
    fraction,
    from_args,
    int_at_least,
    server_url,
    worker_count,
)

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions

ConfigT = TypeVar("ConfigT", bound=TextConfig)

IO_GROUP: Final = "input and output"
DOCUMENTS_GROUP: Final = "which documents, and what of them"
_io_option = functools.partial(Option, group=IO_GROUP)
_documents_option = functools.partial(Option, group=DOCUMENTS_GROUP)
_download_option = functools.partial(Option, group="downloads")
_run_option = functools.partial(Option, group="execution")

OUTPUT_OPTION: Final = _io_option("folder to write; one for each configuration", metavar="DIR")
CONNECTIONS_OPTION: Final = _download_option(
    "to PMC's bucket, of all workers together (default: %(default)s)", parse=int_at_least(1)
)
MAX_REJECTED_OPTION: Final = _run_option(
    "fraction of records, articles or documents that may be rejected before the run fails; up to five never "
    "end it, but with 0 (default: %(default)s)",
    metavar="FRACTION",
    parse=fraction,
)


def make_input_option(help_text: str) -> Option:
    """Return ``--input``."""
    return _io_option(help_text, metavar="PATH", many="repeat")


def make_preset_option(presets: Mapping[str, object], reasons: Mapping[str, str]) -> Option:
    """Return ``--preset``.

    Args:
        reasons: why the pipeline has no preset of a paper, by the paper's name.
    """
    help_text = "configuration of a paper's corpus; other options override it. Not here: " + "; ".join(
        f"{name} ({reason})" for name, reason in reasons.items()
    )
    return _io_option(help_text, choices=sorted(presets), absent_choices=explain_absent_presets(reasons))


def make_url_options(source_names: Iterable[str]) -> list[Option]:
    """Return an option for the server of each source, ``--pubmed-url``."""
    return [
        Option(
            f"default: {SOURCES[name].url}",
            group="other servers with the same layouts",
            name=f"{name}_url",
            metavar="URL",
            parse=functools.partial(_parse_source_url, name),
            many="repeat",
        )
        for name in source_names
    ]


def _parse_source_url(source: str, text: str) -> tuple[str, str]:
    return source, server_url(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions(ABC):
    """The options of every pipeline.

    Attributes:
        like: manifest of a run to repeat (reproduction.py).
        dry_run: print the plan and write nothing.
        force: take over the lock of another run.
    """

    like: Annotated[
        str | None,
        _io_option(
            "repeat the run of this manifest.json with its options, unless they are given here, and compare "
            "the files by their SHA-256",
            metavar="FILE",
        ),
    ] = None
    dry_run: Annotated[
        bool, _io_option("print what would be downloaded, read and written; write nothing")
    ] = False
    workers: Annotated[
        int,
        _run_option(
            "local processes, no more than there are files (default: one for each CPU that may be used, "
            "%(default)s); a --runner has its own option",
            parse=worker_count,
        ),
    ] = count_cpus()
    force: Annotated[
        bool,
        _run_option(
            "take over the lock on an --output in an object store, which a killed run leaves (a run that is "
            "alive then publishes nothing), and from a job whose job service is gone (default: stop before)"
        ),
    ] = False

    @abstractmethod
    def check(self) -> None:
        """Check what the options alone show, before the pipeline's modules are imported, which takes a while.

        Raises:
            UsageError: one is missing, or they contradict each other.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class DownloadOptions(RunOptions):
    """How named sources are downloaded.

    Attributes:
        mirror: folder of verified copies; None for the default.
        connections: connections to PMC's bucket, of all workers together.
        urls: sources with the base URLs that replace theirs.
    """

    mirror: Annotated[
        str | None,
        _download_option(
            "folder of verified copies, also on gs://, s3:// or az://; files in it are not downloaded again "
            "(default: mirror, beside the output; of fetch, in this folder)",
            metavar="DIR",
        ),
    ] = None
    contact: Annotated[
        str | None,
        _download_option(
            "mail or web address to send to the servers, for their operators",
            metavar="ADDRESS",
            parse=contact_address,
        ),
    ] = None
    allow_removals: Annotated[
        bool,
        _download_option(
            "remove articles of PMC from the mirror that are no longer listed or selected even if they are "
            "more than 1 %% of it, and replace PubMed's files by those of another year even if no complete "
            "baseline is announced (default: stop before)"
        ),
    ] = False
    connections: int = 1
    urls: tuple[tuple[str, str], ...] = ()

    def get_url(self, source: str) -> str:
        """Return the base URL of a source."""
        return dict(self.urls).get(source, SOURCES[source].url)


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentsOptions(RunOptions):
    """Options of pipelines that read document shards."""

    input: Annotated[
        tuple[str, ...],
        _io_option(
            "a finished --output of pubmed_to_shards, pmc_to_shards or text_to_shards, also on gs://, s3:// "
            "or az://; repeatable",
            metavar="DIR",
            many="repeat",
        ),
    ] = ()
    output: Annotated[str, OUTPUT_OPTION] = ""

    def check(self) -> None:
        """Check that inputs and output are given."""
        if not self.input:
            raise UsageError(
                "--input DIR is missing: a finished --output of pubmed_to_shards, pmc_to_shards or "
                "text_to_shards"
            )
        _check_output(self.output)


def _check_output(output: str) -> None:
    if not output:
        raise UsageError("--output DIR is missing: the folder to write")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardsOptions(DownloadOptions):
    """Options of the pipelines that write document shards.

    Attributes:
        input: paths, and names of sources to download.
        preset: name of a paper's corpus, which is part of the configuration.
        mesh_tree: file with the tree of MeSH.
        find_overlap_with: directory of abstracts to look for in the articles.
    """

    input: tuple[str, ...] = ()
    output: Annotated[str, OUTPUT_OPTION] = ""
    preset: str | None = None
    keep_dropped: Annotated[
        bool, _io_option("also write the dropped documents, with reasons, to DIR/dropped")
    ] = False
    allow_fewer_inputs: Annotated[
        bool,
        _io_option(
            "take the documents of files that are no longer among the inputs out of a finished output "
            "(default: stop before)"
        ),
    ] = False
    verify_inputs: Annotated[
        bool,
        _io_option(
            "compute the MD5 of every input file again (of a mirror's PMC articles: of their lists); "
            "without it, a file of the same size and time as in the last run counts as unchanged"
        ),
    ] = False
    max_shard_mb: Annotated[
        int,
        _io_option("largest shard in megabytes (default: %(default)s)", metavar="MB", parse=int_at_least(1)),
    ] = 256
    max_rejected: Annotated[float, MAX_REJECTED_OPTION] = 0.001
    max_bad_files: Annotated[
        float,
        _run_option(
            "fraction of source files that may be unusable before the run fails; each is named at the end "
            "(default: %(default)s)",
            metavar="FRACTION",
            parse=fraction,
        ),
    ] = 0.001
    dedup: Annotated[
        Literal["none", "exact", "near"],
        _documents_option(
            "exact: of documents with the same title and text (case, spacing and punctuation apart) keep the "
            "one of the lowest PMID or PMCID, or hash of another id; near: of documents of which about 80 %% "
            "of all runs of five words are the same keep the one of the latest year, then likewise; "
            "DIR/duplicates.tsv lists the others (default: %(default)s)"
        ),
    ] = "none"
    include_ids: Annotated[
        str | None,
        _documents_option(
            "keep the documents of these articles only, of a list as for --exclude-ids", metavar="FILE"
        ),
    ] = None
    exclude_ids: Annotated[
        str | None,
        _documents_option(
            "drop the documents of these articles: a PMID, a PMCID, doi: and a DOI, or a document's id a "
            "line, # before a comment; any of an article's ids drops its abstract and its full text, in "
            "every version",
            metavar="FILE",
        ),
    ] = None
    mesh_tree: str | None = None
    find_overlap_with: str | None = None

    def check(self) -> None:
        """Check the configuration, and that the output is given."""
        self.make_config()
        _check_output(self.output)

    @abstractmethod
    def make_config(self) -> TextConfig:
        """Return the preset's configuration, changed by the options.

        Raises:
            UsageError: options contradict each other.
        """


def override_config(overrides: Overrides[ConfigT], preset: ConfigT) -> ConfigT:
    """Return a preset's configuration, changed by the options.

    Raises:
        UsageError: options contradict each other.
    """
    try:
        return overrides.apply(preset)
    except ValueError as error:
        raise UsageError(str(error)) from error


def find_sample(name: str) -> tuple[str, ...]:
    """Return the ``--input`` of a sample that comes with bioshards."""
    corpus = Path(str(resources.files("bioshards.corpus")))
    return (str(corpus.resolve() / "sample" / name),)  # in a checkout, not by the link below src/


BEAM_OPTIONS_HELP: Final = """\
Runner: without --runner the job runs on this machine, in --workers processes. Any Beam runner can be
named instead, and all its own options follow as they are, for example
  --runner=DataflowRunner --project=P --region=R --temp_location=gs://BUCKET/tmp
  --runner=PortableRunner --job_endpoint=HOST:PORT --environment_type=EXTERNAL --environment_config=...
Options of Beam's file systems (--s3_endpoint_url ...) work with and without a runner."""

_MISSPELT_RATIO: Final = 0.85
"""Similarity from which a word without ``_`` is a misspelling of an option of ours.  No option of Beam is so
similar to one (tests/pipelines/dataflow/test_dataflow_settings.py)."""


_ADDRESS_OF_USER: Final = re.compile(r"(?:https?://|\w+://[^/@\s]*:)[^/@\s]*@", re.IGNORECASE)


class Parser(OptionParser, Generic[OptionsT]):
    """The parser of a command of ``beam``, which raises UsageError."""

    def __init__(self, prog: str, description: str, options_type: type[OptionsT]) -> None:
        super().__init__(
            prog=prog,
            description=description,
            epilog=BEAM_OPTIONS_HELP,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self._options_type = options_type
        self.add_options(options_type)

    def parse_known_options(self, argv: Sequence[str]) -> tuple[OptionsT, list[str]]:
        """Parse a command line into the command's options and the other arguments, Beam's.

        Raises:
            UsageError: a word belongs to no option, or an option is misspelt.  It is refused here if it is
                nearly one of the command's, and by :func:`parse_beam_options`, which imports Beam, if it is
                not.
        """
        for word in argv:
            if _ADDRESS_OF_USER.search(word):
                option = word.partition("=")[0] if word.startswith("--") else "an option"
                raise UsageError(
                    f"{option} has an address with a user's name or password, which manifests and reports "
                    "would show. Give the address without it, and credentials as the store's own tools take "
                    "them: S3's by --s3_access_key_id and --s3_secret_access_key, the environment or "
                    "~/.aws/credentials"
                )
        args, beam_args = self.parse_known_args(argv)
        for word, previous in zip(beam_args, ["", *beam_args], strict=False):
            if not word.startswith("-") and (not previous.startswith("-") or "=" in previous):
                hint = "; paths are given with --input and --output"
                raise UsageError(
                    f"{word} is no option{hint if '--output' in self._option_string_actions else ''}"
                )
        return from_args(self._options_type, args), beam_args

    def refuse_unknown(self, words: Sequence[str]) -> None:
        """Refuse words that are nearly an option of the command; others may be Beam's."""
        for name in (word.partition("=")[0] for word in words if word.startswith("--") and "_" not in word):
            if nearest := find_nearest(name, self._option_string_actions, _MISSPELT_RATIO):
                raise UsageError(f"unknown option {name} (did you mean {nearest}?)")

    def report(self, message: str) -> NoReturn:
        raise UsageError(message)


def parse_beam_options(beam_args: Sequence[str], parser: argparse.ArgumentParser) -> PipelineOptions:
    """Parse the options that are not the pipeline's own as Beam's PipelineOptions.

    Raises:
        UsageError: an option that neither the pipeline nor Beam knows, with the nearest one.
    """
    from apache_beam.options.pipeline_options import PipelineOptions

    logging.getLogger("apache_beam.options").setLevel(logging.ERROR)  # the errors below say it better
    usage = io.StringIO()  # which argparse prints, a hundred lines before the reason
    try:
        with contextlib.redirect_stderr(usage):
            options = PipelineOptions(list(beam_args))
            known_names = options.get_all_options().keys()
            unknown_names = options.get_all_options(retain_unknown_options=True).keys() - known_names
    except SystemExit as parse_exit:
        reason = usage.getvalue().strip().rpartition("error: ")[2]
        hint = " (did you mean --dry-run?)" if "--dry_run" in reason else ""
        raise UsageError(f"Beam does not take these options: {reason}{hint}") from parse_exit
    for word in (arg.partition("=")[0] for arg in beam_args):
        if word.lstrip("-").replace("-", "_") in unknown_names:
            options_of_both = [*parser._option_string_actions, *(f"--{name}" for name in known_names)]
            raise UsageError(f"unknown option {word}{suggest_nearest(word, options_of_both)}")
    return options
