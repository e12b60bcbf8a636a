"""``python -m bioshards.vocab``: build a vocabulary, or report on one again.

build DIR... --out VOCAB     from finished directories of documents, or of words counted by
                             beam run shards_to_words
report VOCAB                 its report anew, beside other vocabularies or with other evaluation sets
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from bioshards.corpus.command import report_error
from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.exit_codes import INTERRUPTED, OK
from bioshards.corpus.files import LocalFiles
from bioshards.corpus.live_line import LiveLine

try:
    from . import commands
    from .recipes import ALGORITHMS, PRESETS, Recipe, preset
except ImportError as error:
    print(f"vocab: a library is missing ({error}): pip install 'bioshards[vocab]'", file=sys.stderr)
    sys.exit(2)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(words)
    say = LiveLine()

    def work() -> str:
        if options.command == "report":
            return commands.report(LocalFiles(), options.folder, options.beside, options.benchmarks, say)
        return commands.build(
            LocalFiles(),
            options.folders,
            options.out,
            _recipe(options),
            min_count=options.min_count,
            hold_out=options.hold_out,
            seed=options.seed,
            beside=options.beside,
            benchmarks=options.benchmarks,
            command=words,
            say=say,
        )

    try:
        return _end(say, _interruptible(work))
    except KeyboardInterrupt:
        _end(say, "stopped. Nothing half-made is left: run the same command again", INTERRUPTED)
        os._exit(INTERRUPTED)  # a library that trains would go on to its end
    except Exception as error:
        memory = "give a higher --min-count, or a machine with more"
        return _end(say, *report_error(error, memory))


def _interruptible(work: Callable[[], str]) -> str:
    """What the work returns or raises.  It is done in a thread: in the main one a library that trains for
    minutes would not let Ctrl-C through."""
    done: Future[str] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return done.result()


def _end(say: LiveLine, message: str, code: int = OK) -> int:
    say.end()
    with contextlib.suppress(OSError):  # nobody reads it: what was done is done
        if code == OK:
            print(message, flush=True)
        else:
            print(f"vocab: {message}", file=sys.stderr)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bioshards.vocab", description="Build a vocabulary from a corpus, or report on one."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    building = commands.add_parser("build", help="build one from documents or from counted words")
    building.add_argument(
        "folders",
        nargs="+",
        metavar="DIR",
        help="finished outputs of pubmed_to_shards, pmc_to_shards or shards_to_words",
    )
    building.add_argument("--out", required=True, metavar="VOCAB", help="the folder to write")
    _add_recipe(building.add_argument_group("which vocabulary"))
    _add_words(building.add_argument_group("of which words"))
    reporting = commands.add_parser("report", help="report on one again")
    reporting.add_argument("folder", metavar="VOCAB", help="a finished vocabulary")
    for parsing in (building, reporting):
        group = parsing.add_argument_group("what the report has beside it")
        group.add_argument(
            "--beside",
            action="append",
            type=_named,
            metavar="NAME=PATH",
            default=[],
            help="another vocabulary: a vocab.txt, a tokenizer.json or a folder that has one; several times",
        )
        group.add_argument(
            "--benchmarks",
            metavar="DIR",
            help="evaluation sets as their authors distribute them, for lengths of inputs",
        )
    return parser


def _add_recipe(group: Any) -> None:
    group.add_argument(
        "--preset", choices=list(PRESETS), help="that of a paper, mended; options given beside it win over it"
    )
    group.add_argument(
        "--as-published", action="store_true", help="with --preset: as its authors did it, with the faults"
    )
    group.add_argument(
        "--algorithm",
        choices=ALGORITHMS,
        help="bpe (default) and unigram are SentencePiece's, wordpiece is tokenizers'",
    )
    group.add_argument(
        "--size", type=int, metavar="N", help="pieces, special ones among them (default: 30522)"
    )
    group.add_argument(
        "--cased", action="store_true", default=None, help="letters as they are written (default: lower case)"
    )
    group.add_argument(
        "--accents",
        choices=["keep", "strip"],
        help="(default: as BERT, stripped in lower case and kept if --cased)",
    )
    group.add_argument(
        "--sentencepiece",
        action="store_true",
        default=None,
        help="with --algorithm unigram: keep the model, for Albert",
    )
    group.add_argument(
        "--coverage",
        type=float,
        metavar="SHARE",
        help="of all characters, those to have a piece (default: 0.99999)",
    )
    group.add_argument("--unused", type=int, metavar="N", help="reserve [unused0] and on (default: 0)")
    group.add_argument(
        "--dummies",
        metavar="TOKENS",
        help="reserve tokens that are never split: '@GENE$,@CHEMICAL$,@DISEASE$'",
    )


def _add_words(group: Any) -> None:
    group.add_argument(
        "--min-count",
        type=int,
        metavar="N",
        help="leave out words that, as they are written, occur less often (default: so many that 4 million "
        "distinct ones are left)",
    )
    group.add_argument(
        "--hold-out",
        type=float,
        metavar="SHARE",
        default=0.0,
        help="do not train on this share of the documents: the report measures on them (default: 0)",
    )
    group.add_argument("--seed", type=int, metavar="N", default=0, help="decides which documents those are")


def _named(text: str) -> tuple[str, str]:
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=PATH, as in SciBERT=scivocab/vocab.txt")
    return name, path


def _recipe(options: Any) -> Recipe:
    """The recipe that the command line asks for.

    Raises:
        ValueError: it makes no sense.
    """
    if options.as_published and not options.preset:
        raise InvalidValueError(f"--as-published says whose: give --preset, one of {', '.join(PRESETS)}")
    recipe = preset(options.preset, options.as_published) if options.preset else Recipe()
    given: dict[str, Any] = {
        "algorithm": options.algorithm,
        "size": options.size,
        "lower_case": None if options.cased is None else not options.cased,
        "strip_accents": None if options.accents is None else options.accents == "strip",
        "sentencepiece": options.sentencepiece,
        "coverage": options.coverage,
        "unused": options.unused,
        "dummies": None if options.dummies is None else tuple(filter(None, options.dummies.split(","))),
    }
    if options.cased and options.accents is None:
        given["strip_accents"] = False
    return dataclasses.replace(recipe, **{name: value for name, value in given.items() if value is not None})


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
