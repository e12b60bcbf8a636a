"""Copy a finished directory from one store to another: ``beam copy``, of drivers/copy_driver.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from bioshards.corpus.ui.options import Argument
from bioshards.pipelines.options.parser import Parser

_DESCRIPTION: Final = """\
A finished directory (document shards, words, a vocabulary, a pretraining set) from one store to another:
local, gs://, s3:// or az://. Every file that its manifest lists is verified by SHA-256; what is at the target
already, and right, is not copied again; the manifest comes last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyOptions:
    """Options of ``beam copy``."""

    source: Annotated[str, Argument("a finished directory", metavar="SOURCE")]
    target: Annotated[
        str, Argument("a new folder, or an earlier copy, which is brought up to date", metavar="TARGET")
    ]


def make_parser() -> Parser[CopyOptions]:
    """Make the parser of ``beam copy``."""
    epilog = "Options of Beam's file systems (--s3_endpoint_url ..., --no_auth) follow as they are."
    return Parser("beam copy", _DESCRIPTION, CopyOptions, epilog)
