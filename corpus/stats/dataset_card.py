"""Dataset card of a directory of documents: README.md, as Hugging Face's hub shows it.

It has neither paths nor times, so that the same run gives the same bytes
(https://huggingface.co/docs/hub/datasets-cards).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from bioshards.corpus.manifest import DocumentsManifest
from bioshards.corpus.text_config import TextConfig

FILE: Final = "README.md"
_NLM_NOTICE: Final = (
    "Courtesy of the U.S. National Library of Medicine. NLM neither endorses this product nor "
    "guarantees its content; it does not reflect the most current data available from NLM."
)
NOTICE_BY_PIPELINE: Final = {
    "pubmed_to_shards": f"{_NLM_NOTICE} Abstracts may be their publishers' copyright.",
    "pmc_to_shards": f"{_NLM_NOTICE} Each article is under the licence in its row.",
    "text_to_shards": "The rights in these documents are those of the text files that they were made from.",
}
"""Rights in the documents, by the pipeline that made them."""
_SUBJECT_BY_PIPELINE: Final = {
    "pubmed_to_shards": "PubMed citations: titles and abstracts",
    "pmc_to_shards": "PMC open-access articles",
    "text_to_shards": "Documents of text files",
}
_SIZES: Final = ((1e3, "n<1K"), (1e4, "1K<n<10K"), (1e5, "10K<n<100K"), (1e6, "100K<n<1M"), (1e7, "1M<n<10M"))
_LARGEST_SIZE: Final = "10M<n<100M"


def format_dataset_card(manifest: DocumentsManifest, document_config: TextConfig) -> str:
    """Return the text of the card.

    Args:
        manifest: the directory's manifest.
        document_config: filters and text processing; those that are not at their defaults are listed.
    """
    defaults = type(document_config)().to_dict()
    settings = {name: value for name, value in document_config.to_dict().items() if value != defaults[name]}
    if manifest.config.dedup != "none":
        settings["dedup"] = manifest.config.dedup
    counts = manifest.counts
    is_english = manifest.pipeline == "pubmed_to_shards" or manifest.languages.keys() <= {"eng"}
    extra_files = [
        ("`rejected/`", "records that could not be read, with reasons") if counts.rejected else None,
        ("`dropped/`", "documents that a filter dropped, with reasons") if manifest.dropped else None,
        ("`duplicates.tsv`", "ids of duplicates and of their originals") if manifest.duplicates else None,
    ]
    files = [
        ("`data/*.parquet`", "the documents, one a row"),
        ("`report.html`", "funnel, years, journals, lengths, cleaning: a page for a browser"),
        ("`manifest.json`", "inputs with MD5, shards with SHA-256, options, counts"),
        *filter(None, extra_files),
        ("`.bioshards/`", "work files, by which the next run does only what is new; readers need none"),
    ]
    licence_rows = [(name, f"{count:,}") for name, count in manifest.licences.items()]
    return (
        f"""\
---
license: {_choose_hub_licence(manifest.licences)}
{"language: en" if is_english else "multilinguality: multilingual"}
size_categories:
- {choose_size(counts.documents)}
task_categories:
- fill-mask
tags:
- biology
- medical
configs:
- config_name: default
  data_files: data/*.parquet
---

# {_SUBJECT_BY_PIPELINE[manifest.pipeline]}

{counts.documents:,} documents of {counts.sentences:,} sentences and {counts.words:,} words, cleaned and split
into sentences by bioshards (`beam run {manifest.pipeline}`).

```python
import datasets

documents = datasets.load_dataset("this folder", split="train")  # or its name on the hub
```

## Files

{format_table(("file", "content"), files)}

## How it was made

{format_settings(settings) if settings else "All settings are the defaults."}

{format_table(("records", "number"), [(name, f"{count:,}") for name, count in manifest.funnel.items()])}

## Rights

{manifest.notice}

{format_table(("licence", "documents"), licence_rows) if set(manifest.licences) - {"unknown"} else ""}
""".rstrip()
        + "\n"
    )


def choose_size(rows: int) -> str:
    """Return the hub's name of a number of rows."""
    return next((name for limit, name in _SIZES if rows < limit), _LARGEST_SIZE)


def _choose_hub_licence(licences: Collection[str]) -> str:
    """Return the hub's name of what all documents are under; ``cc`` is any Creative Commons licence.

    The codes have no version ("CC-BY"), which most of the hub's names have.
    """
    if set(licences) == {"CC0"}:
        return "cc0-1.0"
    return "cc" if licences and all(name.startswith("CC") for name in licences) else "other"


def format_settings(settings: Mapping[str, object]) -> str:
    """Return settings as a table in Markdown."""
    rows = [(f"`{name}`", f"`{json.dumps(value)}`") for name, value in settings.items()]
    return format_table(("setting", "value"), rows)


def format_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines)
