"""PIPELINES: to be described."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

from bioshards.corpus.errors import MissingExtraError
from bioshards.pipelines.options.parser import Parser

PIPELINES = {
    "fetch": "PubMed, PMC and Europe PMC into a mirror of verified files",
    "pubmed_to_shards": "PubMed citation XML to sentence-split document shards",
    "pmc_to_shards": "full-text articles (JATS XML) to sentence-split document shards",
    "shards_to_words": "document shards to exact counts of their words, for a vocabulary",
    "shards_to_pretraining": "document shards and a vocabulary to pretraining examples",
}


def load_command(name: str) -> tuple[Parser, Callable[..., int]]:
    """A pipeline's options, and what runs it.  Each imports only what it needs."""
    if name == "copy":
        from .drivers import copy as copying

        return copying.make_parser(), copying.run
    if name == "fetch":
        from . import fetch
        from .drivers import fetch_driver as fetch_job

        return fetch.make_parser(), fetch_job.run
    if name == "shards_to_words":
        from . import shards_to_words

        return shards_to_words.make_parser(), shards_to_words.run
    if name == "shards_to_pretraining":
        from . import shards_to_pretraining

        return shards_to_pretraining.make_parser(), shards_to_pretraining.run
    from .drivers import shards_driver as shards_job

    if name == "pmc_to_shards":
        from . import pmc_to_shards

        return pmc_to_shards.make_parser(), functools.partial(shards_job.run, pmc_to_shards)
    from . import pubmed_to_shards

    return pubmed_to_shards.make_parser(), functools.partial(shards_job.run, pubmed_to_shards)


def load_extra_module(pipeline: str, module: str) -> Any:
    """A module of this folder that needs libraries of the extra ``vocab``, which is loaded for a run only.

    Raises:
        MissingExtraError: one of them cannot be imported.
    """
    try:
        return importlib.import_module(f".{module}", __package__)
    except ImportError as error:
        raise MissingExtraError(
            f"{pipeline} needs a library that cannot be imported ({error}): pip install 'bioshards[vocab]'"
        ) from error
