"""The ``beam`` command: list the pipelines, run one, make a template of one, copy what is made.

Beam is imported only when a pipeline runs, so that ``beam list`` and ``--help`` answer at once.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence

from bioshards.corpus.exit_codes import OK, USAGE_ERROR

PIPELINES = {
    "fetch": "PubMed, PMC and Europe PMC into a mirror of verified files",
    "pubmed_to_shards": "PubMed citation XML to sentence-split document shards",
    "pmc_to_shards": "full-text articles (JATS XML) to sentence-split document shards",
    "shards_to_words": "document shards to exact counts of their words, for a vocabulary",
    "shards_to_pretraining": "document shards and a vocabulary to pretraining examples",
}

USAGE = """\
usage: beam list
       beam run PIPELINE --output DIR [options]
       beam run PIPELINE --help
       beam template PIPELINE --out FILE [options]
       beam copy SOURCE TARGET

pipelines:
""" + "".join(f"  {name:21} {what}\n" for name, what in PIPELINES.items())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words in (["list"], ["--list"]):
        print("\n".join(f"{name:21} {what}" for name, what in PIPELINES.items()))
        return OK
    if not words or words[0] in ("-h", "--help", "help"):
        print(USAGE, end="")
        return OK if words else USAGE_ERROR
    if words[0] == "copy":
        from . import running

        return running.main("copy", words[1:])
    if words[0] not in ("run", "template"):
        return _wrong(f"unknown command {words[0]!r}", words[0], ["run", "list", "template", "copy"])
    if len(words) < 2 or words[1] in ("-h", "--help"):
        print(USAGE, end="")
        return OK if len(words) > 1 else USAGE_ERROR
    if words[1] not in PIPELINES:
        return _wrong(f"unknown pipeline {words[1]!r}", words[1], list(PIPELINES))
    if words[0] == "template":
        from . import template

        return template.main(words[1], words[2:])
    from . import running

    return running.main(words[1], words[2:])


def _wrong(what: str, given: str, known: list[str]) -> int:
    near = difflib.get_close_matches(given, known, 1, 0.4)
    hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(known)}"
    print(f"beam: {what}; {hint}", file=sys.stderr)
    return USAGE_ERROR


if __name__ == "__main__":
    sys.exit(main())
