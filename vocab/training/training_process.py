"""The process in which :mod:`.subword_trainers` trains: it imports one library alone."""

from __future__ import annotations

import io
import json
import pickle
import sys
from collections.abc import Iterable, Iterator
from typing import Any, Final

from bioshards.corpus.parent_process import end_with_parent

CHARACTERS_PER_STRING: Final = 1 << 16
"""Characters of each string passed to the WordPiece trainer, which counts each string in one thread."""
_NUM_THREADS: Final = 16
"""SentencePiece's default.  It is fixed because the rounding of sums depends on it."""


def main() -> None:
    """Read a pickled job, and write the pickled model and the message of the library's error."""
    end_with_parent(int(sys.argv[1]))
    library, lines, options = pickle.load(sys.stdin.buffer)
    train = _train_sentencepiece if library == "sentencepiece" else _train_wordpiece
    model, error = None, None
    try:
        model = train(lines, options)
    except (RuntimeError, OSError) as caught:
        error = str(caught)
    sys.stdout.buffer.write(pickle.dumps((model, error)))


def _train_sentencepiece(lines: str, options: dict[str, Any]) -> bytes:
    import sentencepiece  # here, so that no training waits for the library of the other

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(line[:-1] for line in io.StringIO(lines, newline="\n")),
        input_format="tsv",
        model_writer=model,
        normalization_rule_name="identity",
        character_coverage=1.0,
        hard_vocab_limit=False,  # fewer pieces are reported by the caller
        pad_id=0,
        unk_id=1,
        bos_id=-1,
        eos_id=-1,
        num_threads=_NUM_THREADS,
        minloglevel=3,  # silent
        **options,
    )
    return model.getvalue()


def _train_wordpiece(lines: str, options: dict[str, Any]) -> bytes:
    import tokenizers

    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.CharDelimiterSplit(" ")
    trainer = tokenizers.trainers.WordPieceTrainer(min_frequency=1, show_progress=False, **options)
    counts = (line.rpartition("\t") for line in io.StringIO(lines, newline="\n"))
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


if __name__ == "__main__":
    main()
