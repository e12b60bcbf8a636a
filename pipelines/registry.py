"""The commands of ``beam``, loaded when they are asked for.

``beam list`` and ``--help`` answer at once, because neither Beam nor the libraries of an extra are imported.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Final, Protocol

from bioshards.corpus.errors import MissingExtraError
from bioshards.pipelines.options.parser import Parser

if TYPE_CHECKING:
    from bioshards.pipelines.options.pipeline_options import RunOptions


class RunnableCommand(Protocol):
    """A command whose options are parsed."""

    def run(self) -> int:
        """Run the command and return its exit code."""
        ...


class DriverFactory(Protocol):
    """Makes a command of what the command line says; a class of drivers/."""

    def __call__(
        self,
        parser: Parser[RunOptions],
        options: RunOptions,
        beam_args: Sequence[str],
        argv: Sequence[str],
    ) -> RunnableCommand: ...


@dataclass(frozen=True, slots=True)
class Command:
    """A command and the modules that implement it.

    Attributes:
        description: one line for ``beam list``.
        parser_module: module of this folder whose ``make_parser`` returns the options.
        driver_module: module of this folder with the driver.
        driver_class: name of the driver's class.
        extra: extra of the package that the driver needs; '' if it needs none.
    """

    description: str
    parser_module: str
    driver_module: str
    driver_class: str
    extra: str = ""

    def load_parser(self) -> Parser[RunOptions]:
        """Return the options of the command."""
        parser: Parser[RunOptions] = _import_module(self.parser_module).make_parser()
        return parser

    def load_driver(self) -> DriverFactory:
        """Import and return the driver's class.

        Raises:
            MissingExtraError: a library of the extra cannot be imported.
        """
        try:
            driver: DriverFactory = getattr(_import_module(self.driver_module), self.driver_class)
        except ImportError as error:
            if not self.extra:
                raise
            raise MissingExtraError(
                f"{self.parser_module} needs a library that cannot be imported ({error}): "
                f"pip install 'bioshards[{self.extra}]'"
            ) from error
        return driver


PIPELINES: Final = {
    "fetch": Command(
        "PubMed, PMC and Europe PMC into a mirror of verified files",
        parser_module="fetch",
        driver_module="drivers.fetch_driver",
        driver_class="FetchDriver",
    ),
    "pubmed_to_shards": Command(
        "PubMed citation XML to sentence-split document shards",
        parser_module="pubmed_to_shards",
        driver_module="drivers.shards_driver",
        driver_class="PubMedDriver",
    ),
    "pmc_to_shards": Command(
        "full-text articles (JATS XML) to sentence-split document shards",
        parser_module="pmc_to_shards",
        driver_module="drivers.shards_driver",
        driver_class="PmcDriver",
    ),
    "text_to_shards": Command(
        "text files of your own (JSON Lines, Parquet, plain text) to sentence-split document shards",
        parser_module="text_to_shards",
        driver_module="drivers.shards_driver",
        driver_class="TextDriver",
    ),
    "shards_to_words": Command(
        "document shards to exact counts of their words, for a vocabulary",
        parser_module="shards_to_words",
        driver_module="drivers.words_driver",
        driver_class="WordsDriver",
        extra="vocab",
    ),
    "shards_to_pretraining": Command(
        "document shards and a vocabulary to pretraining examples",
        parser_module="shards_to_pretraining",
        driver_module="drivers.pretraining_driver",
        driver_class="PretrainingDriver",
        extra="vocab",
    ),
}
"""The pipelines of ``beam run``, by name."""


def _import_module(name: str) -> ModuleType:
    return importlib.import_module(f".{name}", __package__)
