"""Card of a vocabulary: README.md, as Hugging Face's hub shows it, without inputs, paths and times.

The same words and recipe give the same card (https://huggingface.co/docs/hub/model-cards).
"""

from __future__ import annotations

from bioshards.corpus.manifest import VocabularyManifest
from bioshards.corpus.stats.dataset_card import format_settings, format_table

_FILES = (
    ("tokenizer.json", "the tokenizer, for Hugging Face's libraries"),
    ("tokenizer_config.json", "its class and casing"),
    ("vocab.txt", "a piece a line, by id"),
    ("spiece.model", "SentencePiece's model"),
    ("words.tsv", "words as written, with their counts"),
    ("validation-words.tsv", "those of documents that were held out"),
)
_REPORTS = (
    ("report.html", "pieces a word, words cut in pieces, alphabet: a page for a browser"),
    ("report.json", "its numbers"),
    ("manifest.json", "recipe, inputs, counts, files with SHA-256"),
)


def format_vocabulary_card(manifest: VocabularyManifest, files: set[str]) -> str:
    """Return the text of the card.

    Args:
        manifest: the vocabulary's manifest; its ``outputs`` are not read.
        files: names of the files of the tokenizer and of the lists of words.
    """
    recipe, counts = manifest.config.recipe, manifest.counts
    is_sentencepiece = "spiece.model" in files
    casing = "lower case" if recipe["lower_case"] else "cased"
    present = [(name, content) for name, content in _FILES if name in files]
    rows = [(f"`{name}`", content) for name, content in (*present, *_REPORTS)]
    origin, language = "A published vocabulary, with its ids", ""
    if recipe["algorithm"] != "adopted":
        origin = (
            f"Trained on {counts.trained_words:,} words, {counts.distinct_trained_words:,} of them distinct"
        )
        language = "language: en\n"
    return f"""\
---
license: other
{language}library_name: transformers
tags:
- biology
- medical
- tokenizer
---

# Vocabulary of {counts.pieces:,} pieces, {"SentencePiece" if is_sentencepiece else "WordPiece"}, {casing}

{origin}; written by bioshards.

```python
from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("this folder")  # or its name on the hub
```

## Files

{format_table(("file", "content"), rows)}

## How it was made

{format_settings({name: value for name, value in recipe.items() if value not in (None, [], ())})}
"""
