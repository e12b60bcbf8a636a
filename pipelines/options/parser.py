"""The parser of command lines, and the errors on misspelt options.

argparse parses the pipeline's own options.  The others go to Beam, which must know them: Beam's own parser
would drop a misspelt option with a warning.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Generic, NoReturn

from bioshards.corpus.errors import UsageError, find_nearest, suggest_nearest
from bioshards.corpus.ui.options import OptionParser, OptionsT, from_args

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions

BEAM_OPTIONS_HELP: Final = """\
Runner: without --runner the job runs on this machine, in --workers processes. Any Beam runner can be
named instead, and all its own options follow as they are, for example
  --runner=DataflowRunner --project=P --region=R --temp_location=gs://BUCKET/tmp
  --runner=PortableRunner --job_endpoint=HOST:PORT --environment_type=EXTERNAL --environment_config=...
Options of Beam's file systems (--s3_endpoint_url ...) work with and without a runner."""

_MISSPELT_RATIO: Final = 0.85
"""Similarity from which a word without ``_`` is a misspelling of an option of ours.  No option of Beam is so
similar to one (tests/pipelines/dataflow/test_dataflow_settings.py)."""


class Parser(OptionParser, Generic[OptionsT]):
    """The parser of a command of ``beam``, which raises UsageError."""

    def __init__(
        self, prog: str, description: str, options_type: type[OptionsT], epilog: str = BEAM_OPTIONS_HELP
    ) -> None:
        super().__init__(
            prog=prog,
            description=description,
            epilog=epilog,
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
        args, beam_args = self.parse_known_args(argv)
        for word, previous in zip(beam_args, ["", *beam_args], strict=False):
            if not word.startswith("-") and (not previous.startswith("-") or "=" in previous):
                hint = "; paths are given with --input and --output"
                raise UsageError(
                    f"{word} is no option{hint if '--output' in self._option_string_actions else ''}"
                )
        for name in (arg.partition("=")[0] for arg in beam_args if arg.startswith("--") and "_" not in arg):
            if nearest := find_nearest(name, self._option_string_actions, _MISSPELT_RATIO):
                raise UsageError(f"unknown option {name} (did you mean {nearest}?)")
        return from_args(self._options_type, args), beam_args

    def error(self, message: str) -> NoReturn:
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
