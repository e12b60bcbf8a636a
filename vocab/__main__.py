"""``python -m bioshards.vocab``: build a vocabulary, adopt a published one, or rewrite the report of one."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import signal
import sys
from collections.abc import Sequence

from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.exit_codes import INTERRUPTED, OK
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.ui.argument_parser import ExactArgumentParser
from bioshards.corpus.ui.error_report import report_error
from bioshards.corpus.ui.progress_line import ProgressLine

try:
    from bioshards.vocab.tokenizer.published_vocabulary import CasingOptions
    from bioshards.vocab.training.vocabulary_recipes import ALGORITHMS, PRESETS, VocabularyRecipe, get_preset

    from . import adopt, commands
    from .adopt import AdoptOptions
    from .commands import Baseline, BuildOptions, ReportOptions
except ImportError as error:
    print(f"vocab: a library is missing ({error}): pip install 'bioshards[vocab]'", file=sys.stderr)
    sys.exit(2)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return its exit code."""
    argv = list(sys.argv[1:] if arguments is None else arguments)
    args = _make_parser().parse_args(argv)
    progress = ProgressLine()
    try:
        return _print_result(progress, _run_command(args, argv, progress))
    except KeyboardInterrupt:
        message = "stopped. No partial output is left: run the same command again"
        return _print_result(progress, message, INTERRUPTED)
    except Exception as error:
        memory_hint = "give a higher --min-count, or a machine with more"
        return _print_result(progress, *report_error(error, memory_hint))


def _run_command(args: argparse.Namespace, argv: Sequence[str], progress: ProgressLine) -> str:
    report_options = ReportOptions(tuple(args.compare), args.benchmark_texts)
    if args.command == "report":
        return commands.run_report(LocalStorage(), args.folder, report_options, progress)
    if args.command == "adopt":
        adopt_options = AdoptOptions(
            path=args.path,
            output=args.output,
            casing=CasingOptions(None if args.cased is None else not args.cased, args.strip_accents),
            report=report_options,
            command=tuple(argv),
        )
        return adopt.run_adopt(LocalStorage(), adopt_options, progress)
    build_options = BuildOptions(
        folders=tuple(args.folders),
        output=args.output,
        recipe=_recipe_from_args(args),
        min_count=args.min_count,
        validation_fraction=args.validation_fraction,
        seed=args.seed,
        report=report_options,
        command=tuple(argv),
    )
    return commands.run_build(LocalStorage(), build_options, progress)


def _print_result(progress: ProgressLine, message: str, exit_code: int = OK) -> int:
    progress.clear()
    with contextlib.suppress(OSError):  # the reader of the pipe is gone
        if exit_code == OK:
            print(message, flush=True)
        else:
            print(f"vocab: {message}", file=sys.stderr)
    return exit_code


def _make_parser() -> argparse.ArgumentParser:
    parser = ExactArgumentParser(
        prog="python -m bioshards.vocab",
        description="Build a vocabulary from a corpus, adopt a published one, or report on one.",
    )
    subparsers = parser.add_subparsers(dest="command", required=True)
    build_parser = subparsers.add_parser("build", help="build a vocabulary from documents or counted words")
    build_parser.add_argument(
        "folders",
        nargs="+",
        metavar="DIR",
        help="finished output of pubmed_to_shards, pmc_to_shards or shards_to_words",
    )
    build_parser.add_argument("--output", required=True, metavar="VOCAB", help="directory to write")
    _add_recipe_options(build_parser.add_argument_group("vocabulary"))
    _add_word_options(build_parser.add_argument_group("words"))
    adopt_parser = subparsers.add_parser("adopt", help="make a vocabulary of a published one, with its ids")
    adopt_parser.add_argument(
        "path",
        metavar="PATH",
        help="a vocab.txt (BERT, ELECTRA), a spiece.model (ALBERT), a tokenizer.json, or the folder of a "
        "Hugging Face model with one of them",
    )
    adopt_parser.add_argument("--output", required=True, metavar="VOCAB", help="directory to write")
    adopt_parser.add_argument(
        "--cased",
        action=argparse.BooleanOptionalAction,
        help="keep case (default: what tokenizer_config.json or tokenizer.json says; else lower case for "
        "SentencePiece, and whether pieces have capitals for vocab.txt)",
    )
    adopt_parser.add_argument(
        "--strip-accents",
        action=argparse.BooleanOptionalAction,
        help="strip accents from letters (default: what those files say; else yes for SentencePiece, and "
        "for vocab.txt if it is lower case)",
    )
    report_parser = subparsers.add_parser("report", help="rewrite the report of a vocabulary")
    report_parser.add_argument("folder", metavar="VOCAB", help="finished vocabulary")
    for subparser in (build_parser, adopt_parser, report_parser):
        group = subparser.add_argument_group("report")
        group.add_argument(
            "--compare",
            action="append",
            type=_parse_baseline,
            metavar="NAME=PATH",
            default=[],
            help="another vocabulary: a vocab.txt, a tokenizer.json, a spiece.model or a folder with one of "
            "them; repeatable",
        )
        group.add_argument(
            "--benchmark-texts",
            metavar="DIR",
            help="texts of evaluation sets, by python -m bioshards.evaluate texts, to measure input lengths",
        )
    return parser


def _add_recipe_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--preset", choices=list(PRESETS), help="corrected recipe of a paper; other options override it"
    )
    group.add_argument(
        "--as-published", action="store_true", help="with --preset: the paper's recipe with its defects"
    )
    group.add_argument(
        "--algorithm",
        choices=ALGORITHMS,
        help="bpe (default) and unigram of SentencePiece, or wordpiece of tokenizers",
    )
    group.add_argument(
        "--size", type=int, metavar="N", help="number of pieces, special tokens included (default: 30522)"
    )
    group.add_argument("--cased", action="store_true", default=None, help="keep case (default: lower case)")
    group.add_argument(
        "--strip-accents",
        action=argparse.BooleanOptionalAction,
        help="strip accents from letters (default: yes, unless --cased)",
    )
    group.add_argument(
        "--sentencepiece",
        action="store_true",
        default=None,
        help="with --algorithm unigram: keep the SentencePiece model, for ALBERT",
    )
    group.add_argument(
        "--character-coverage",
        type=float,
        metavar="FRACTION",
        help="fraction of the characters of the text that get a piece (default: 0.99999)",
    )
    group.add_argument(
        "--num-unused-tokens", type=int, metavar="N", help="number of [unusedN] tokens (default: 0)"
    )
    group.add_argument(
        "--entity-placeholders",
        metavar="TOKENS",
        help="comma-separated tokens that are never split: '@GENE$,@CHEMICAL$,@DISEASE$'",
    )


def _add_word_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--min-count",
        type=int,
        metavar="N",
        help="leave out words with fewer occurrences, counted as written (default: keep the 4 million most "
        "frequent words)",
    )
    group.add_argument(
        "--validation-fraction",
        type=float,
        metavar="FRACTION",
        default=0.0,
        help="fraction of documents to measure on instead of training (default: 0)",
    )
    group.add_argument(
        "--seed", type=int, metavar="N", default=0, help="seed of the validation split (default: 0)"
    )


def _parse_baseline(text: str) -> Baseline:
    name, separator, path = text.partition("=")
    if not (name and separator and path):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=PATH, as in SciBERT=scivocab/vocab.txt")
    return Baseline(name, path)


def _recipe_from_args(args: argparse.Namespace) -> VocabularyRecipe:
    """Return the recipe of the command line.

    Raises:
        ValueError: options contradict each other or are out of range.
    """
    if args.as_published and not args.preset:
        raise InvalidValueError(f"--as-published needs a paper: give --preset, one of {', '.join(PRESETS)}")
    recipe = get_preset(args.preset, args.as_published) if args.preset else VocabularyRecipe()
    strip_accents = args.strip_accents
    if args.cased and strip_accents is None:
        strip_accents = False
    entity_placeholders = None
    if args.entity_placeholders is not None:
        entity_placeholders = tuple(filter(None, args.entity_placeholders.split(",")))
    overrides = {
        "algorithm": args.algorithm,
        "size": args.size,
        "lower_case": None if args.cased is None else not args.cased,
        "strip_accents": strip_accents,
        "sentencepiece": args.sentencepiece,
        "character_coverage": args.character_coverage,
        "num_unused_tokens": args.num_unused_tokens,
        "entity_placeholders": entity_placeholders,
    }
    return dataclasses.replace(
        recipe, **{name: value for name, value in overrides.items() if value is not None}
    )


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
