"""Train a subword model in a process of its own: the libraries block signals for minutes, and a process can
be killed at any time.

The process runs ``python -m bioshards.vocab.training.trainer_process LIBRARY`` in a temporary folder with its
files, so that no path gets into a model.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from bioshards.corpus.errors import InvalidValueError, RunError
from bioshards.corpus.storage.locks import make_temporary_folder

CHARACTERS_PER_STRING: Final = 1 << 16
"""Characters of each string passed to the WordPiece trainer, which counts each string in one thread."""
NUM_THREADS: Final = 16
"""SentencePiece's default.  It is fixed because the rounding of sums depends on it."""

_COMMAND: Final = (sys.executable, "-P", "-m", "bioshards.vocab.training.trainer_process")
_WORDS, _OPTIONS, _MODEL, _ERROR = "words.tsv", "options.json", "model", "error.txt"

Library = Literal["sentencepiece", "tokenizers"]


def train_in_process(
    library: Library,
    words: Sequence[tuple[str, int]],
    options: Mapping[str, Any],
    seeds: Sequence[tuple[str, int]] = (),
) -> bytes:
    """Train a model on words with their counts.

    Args:
        library: ``sentencepiece`` gives the bytes of a ``.model`` file, ``tokenizers`` a JSON list of pieces.
        words: words without line breaks.
        options: options of the library's trainer.
        seeds: pieces with their counts for ``seed_sentencepieces_file``; none: the library's own.

    Raises:
        ValueError: the library rejects the words or the options; the message is its own.
        RunError: the process was killed.
    """
    with make_temporary_folder("vocab") as name:
        folder = Path(name)
        _write_counts(folder / _WORDS, words)
        if seeds:
            options = {**options, "seed_sentencepieces_file": "seeds.tsv"}
            _write_counts(folder / "seeds.tsv", seeds)
        (folder / _OPTIONS).write_text(json.dumps(options), encoding="utf-8")
        code = _run([*_COMMAND, library], folder)
        if code == 0:
            return (folder / _MODEL).read_bytes()
        if (folder / _ERROR).exists():
            reason = (folder / _ERROR).read_text(encoding="utf-8")
            raise InvalidValueError(f"{library} cannot train on these {len(words):,} words: {reason}")
        raise RunError(
            f"the training process ended with code {code} (out of memory?): give a higher --min-count, or a "
            "machine with more"
        )


def _run(command: Sequence[str], folder: Path) -> int:
    """Run a process and return its exit code; kill it if this one is interrupted.

    It is in a group of its own, so that Ctrl-C reaches this process alone.
    """
    process = subprocess.Popen(command, cwd=folder, process_group=0)
    try:
        return process.wait()
    finally:
        process.kill()
        process.wait()


def _write_counts(path: Path, counts: Iterable[tuple[str, int]]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{text}\t{count}\n" for text, count in counts)


def _read_lines() -> Iterator[str]:
    with open(_WORDS, encoding="utf-8", newline="\n") as file:
        for line in file:
            yield line[:-1]


def _train_sentencepiece(options: dict[str, Any]) -> bytes:
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=_read_lines(),
        input_format="tsv",
        model_writer=model,
        normalization_rule_name="identity",
        pad_id=0,
        unk_id=1,
        bos_id=-1,
        eos_id=-1,
        num_threads=NUM_THREADS,
        minloglevel=3,  # silent
        **options,
    )
    return model.getvalue()


def _train_wordpiece(options: dict[str, Any]) -> bytes:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.WordPiece())
    tokenizer.pre_tokenizer = pre_tokenizers.CharDelimiterSplit(" ")
    trainer = trainers.WordPieceTrainer(min_frequency=1, show_progress=False, **options)
    counts = (line.rpartition("\t") for line in _read_lines())
    tokenizer.train_from_iterator(repeat_words((word, int(count)) for word, _, count in counts), trainer)
    ids = tokenizer.get_vocab()
    return json.dumps(sorted(ids, key=ids.__getitem__)).encode()


def repeat_words(words: Iterable[tuple[str, int]]) -> Iterator[str]:
    """Yield each word as often as it occurs, in strings of about :data:`CHARACTERS_PER_STRING` characters."""
    strings: list[str] = []
    size = 0
    for word, count in words:
        while count:
            repetitions = min(count, 1 + (CHARACTERS_PER_STRING - size) // (len(word) + 1))
            strings.append(f"{word} " * repetitions)
            count, size = count - repetitions, size + repetitions * (len(word) + 1)
            if size > CHARACTERS_PER_STRING:
                yield "".join(strings)
                strings, size = [], 0
    yield "".join(strings)


_TRAINERS: Final[Mapping[str, Callable[[dict[str, Any]], bytes]]] = {
    "sentencepiece": _train_sentencepiece,
    "tokenizers": _train_wordpiece,
}


def main(library: str) -> int:
    """Train in the working directory and return the exit code."""
    options = json.loads(Path(_OPTIONS).read_text(encoding="utf-8"))
    try:
        Path(_MODEL).write_bytes(_TRAINERS[library](options))
    except (RuntimeError, OSError) as error:
        Path(_ERROR).write_text(str(error), encoding="utf-8")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
