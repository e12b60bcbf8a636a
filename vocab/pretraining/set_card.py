"""Dataset card of a pretraining set: README.md, as Hugging Face's hub shows it.

It has neither paths nor times, so that the same run gives the same bytes.
"""

from __future__ import annotations

import msgspec

from bioshards.corpus.lifecycle.dataset_card import NOTICE_BY_PIPELINE, format_settings, format_table
from bioshards.corpus.manifest import PretrainingManifest
from bioshards.corpus.output.output_layout import SPLITS


def format_set_card(manifest: PretrainingManifest) -> str:
    """Return the text of the card."""
    config, counts = manifest.config, manifest.counts
    totals = {"train": counts.train, "validation": counts.validation}
    splits = [split for split in SPLITS if totals[split].rows]
    settings = msgspec.to_builtins(config)
    for name in ("pipeline", "format", "vocabulary", "library_versions"):
        del settings[name]
    inputs = [
        (f"`{one.pipeline}`", f"{one.documents:,}", f"`{one.shards_sha256}`") for one in manifest.inputs
    ]
    rows = [(split, f"{totals[split].rows:,}", f"{totals[split].tokens:,}") for split in splits]
    notices = dict.fromkeys(NOTICE_BY_PIPELINE[one.pipeline] for one in manifest.inputs)
    data_files = "\n".join(f"  - split: {split}\n    path: {split}/data-*.arrow" for split in splits)
    return f"""\
---
license: other
task_categories:
- fill-mask
tags:
- biology
- medical
configs:
- config_name: default
  data_files:
{data_files}
---

# Pretraining rows for {config.objective.upper()}

Rows of up to {config.max_seq_length} token ids, of {counts.documents:,} documents, made by bioshards
(`beam run {manifest.pipeline}`). The vocabulary has {config.vocabulary.size:,} entries and SHA-256
`{config.vocabulary.sha256}`.

{format_table(("split", "rows", "tokens"), rows)}

## How it was made

{format_table(("documents of", "number", "SHA-256 of their shards"), inputs)}

{format_settings(settings)}

`manifest.json` has the shards with SHA-256, and what became of every token.

## Rights

{" ".join(notices)}
"""
