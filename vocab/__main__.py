"""``python -m bioshards.vocab``: build a vocabulary, or report on one again.

build DIR... --output VOCAB     from finished directories of documents, or of words counted by
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

from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.exit_codes import INTERRUPTED, OK
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.ui.error_report import report_error
from bioshards.corpus.ui.progress_line import ProgressLine

try:
    from bioshards.vocab.training.vocabulary_recipes import ALGORITHMS, PRESETS, VocabularyRecipe, get_preset

    from . import commands
except ImportError as error:
    print(f"vocab: a library is missing ({error}): pip install 'bioshards[vocab]'", file=sys.stderr)
    sys.exit(2)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    argv = list(sys.argv[1:] if arguments is None else arguments)
    args = _make_parser().parse_args(argv)
    progress = ProgressLine()

    def run_command() -> str:
        if args.command == "report":
            return commands.run_report(LocalStorage(), args.folder, args.compare, args.benchmarks, progress)
        return commands.run_build(
            LocalStorage(),
            args.folders,
            args.output,
            _recipe_from_args(args),
            min_count=args.min_count,
            validation_fraction=args.validation_fraction,
            seed=args.seed,
            baseline_paths=args.compare,
            benchmark_folder=args.benchmarks,
            command=argv,
            progress=progress,
        )

    try:
        return _print_result(progress, _run_interruptibly(run_command))
    except KeyboardInterrupt:
        _print_result(progress, "stopped. Nothing half-made is left: run the same command again", INTERRUPTED)
        os._exit(INTERRUPTED)  # a library that trains would go on to its end
    except Exception as error:
        memory_hint = "give a higher --min-count, or a machine with more"
        return _print_result(progress, *report_error(error, memory_hint))


def _run_interruptibly(function: Callable[[], str]) -> str:
    """What the work returns or raises.  It is done in a thread: in the main one a library that trains for
    minutes would not let Ctrl-C through."""
    future: Future[str] = Future()

    def run_in_thread() -> None:
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run_in_thread, daemon=True).start()
    return future.result()


def _print_result(progress: ProgressLine, message: str, exit_code: int = OK) -> int:
    progress.clear()
    with contextlib.suppress(OSError):  # nobody reads it: what was done is done
        if exit_code == OK:
            print(message, flush=True)
        else:
            print(f"vocab: {message}", file=sys.stderr)
    return exit_code


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bioshards.vocab", description="Build a vocabulary from a corpus, or report on one."
    )
    subparsers = parser.add_subparsers(dest="command", required=True)
    build_parser = subparsers.add_parser("build", help="build one from documents or from counted words")
    build_parser.add_argument(
        "folders",
        nargs="+",
        metavar="DIR",
        help="finished outputs of pubmed_to_shards, pmc_to_shards or shards_to_words",
    )
    build_parser.add_argument("--output", required=True, metavar="VOCAB", help="the folder to write")
    _add_recipe_options(build_parser.add_argument_group("which vocabulary"))
    _add_word_options(build_parser.add_argument_group("of which words"))
    report_parser = subparsers.add_parser("report", help="report on one again")
    report_parser.add_argument("folder", metavar="VOCAB", help="a finished vocabulary")
    for subparser in (build_parser, report_parser):
        group = subparser.add_argument_group("what the report has beside it")
        group.add_argument(
            "--compare",
            action="append",
            type=_parse_named_path,
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


def _add_recipe_options(group: Any) -> None:
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
        "--strip-accents",
        action=argparse.BooleanOptionalAction,
        help="strip accents from letters (default: as BERT, if not --cased)",
    )
    group.add_argument(
        "--sentencepiece",
        action="store_true",
        default=None,
        help="with --algorithm unigram: keep the model, for Albert",
    )
    group.add_argument(
        "--character-coverage",
        type=float,
        metavar="SHARE",
        help="of all characters, those to have a piece (default: 0.99999)",
    )
    group.add_argument(
        "--num-unused-tokens", type=int, metavar="N", help="reserve [unused0] and on (default: 0)"
    )
    group.add_argument(
        "--entity-placeholders",
        metavar="TOKENS",
        help="reserve tokens that are never split: '@GENE$,@CHEMICAL$,@DISEASE$'",
    )


def _add_word_options(group: Any) -> None:
    group.add_argument(
        "--min-count",
        type=int,
        metavar="N",
        help="leave out words that, as they are written, occur less often (default: so many that 4 million "
        "distinct ones are left)",
    )
    group.add_argument(
        "--validation-fraction",
        type=float,
        metavar="SHARE",
        default=0.0,
        help="do not train on this share of the documents: the report measures on them (default: 0)",
    )
    group.add_argument("--seed", type=int, metavar="N", default=0, help="decides which documents those are")


def _parse_named_path(text: str) -> tuple[str, str]:
    name, separator, path = text.partition("=")
    if not (name and separator and path):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=PATH, as in SciBERT=scivocab/vocab.txt")
    return name, path


def _recipe_from_args(args: Any) -> VocabularyRecipe:
    """The recipe that the command line asks for.

    Raises:
        ValueError: it makes no sense.
    """
    if args.as_published and not args.preset:
        raise InvalidValueError(f"--as-published says whose: give --preset, one of {', '.join(PRESETS)}")
    recipe = get_preset(args.preset, args.as_published) if args.preset else VocabularyRecipe()
    overrides: dict[str, Any] = {
        "algorithm": args.algorithm,
        "size": args.size,
        "lower_case": None if args.cased is None else not args.cased,
        "strip_accents": args.strip_accents,
        "sentencepiece": args.sentencepiece,
        "character_coverage": args.character_coverage,
        "num_unused_tokens": args.num_unused_tokens,
        "entity_placeholders": None
        if args.entity_placeholders is None
        else tuple(filter(None, args.entity_placeholders.split(","))),
    }
    if args.cased and args.strip_accents is None:
        overrides["strip_accents"] = False
    return dataclasses.replace(
        recipe, **{name: value for name, value in overrides.items() if value is not None}
    )


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
