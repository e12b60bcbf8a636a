"""The kinds of finished directories: one module for the types of each.

The docstring below a field is its documentation: docs/manifest.md and docs/manifest.schema.json are generated
from these modules (``python -m bioshards.corpus.manifest docs``).  Raise ``SCHEMA_VERSION`` when a field is
added, renamed or removed.
"""

from __future__ import annotations

from typing import TypeAlias

from bioshards.corpus.manifest.documents_types import DocumentsManifest, OverlapFile
from bioshards.corpus.manifest.mirror_types import MirrorManifest
from bioshards.corpus.manifest.pretraining_types import PretrainingManifest
from bioshards.corpus.manifest.shared_types import OutputFile, Shard
from bioshards.corpus.manifest.training_types import TrainingManifest
from bioshards.corpus.manifest.vocabulary_types import VocabularyManifest
from bioshards.corpus.manifest.words_types import WordsManifest

Listed: TypeAlias = OutputFile | Shard | OverlapFile
"""A file that a manifest lists with its SHA-256."""

OutputManifest: TypeAlias = (
    DocumentsManifest | WordsManifest | VocabularyManifest | PretrainingManifest | TrainingManifest
)
"""The manifest of a finished directory that lists ``outputs``."""

Manifest: TypeAlias = OutputManifest | MirrorManifest
"""The manifest of any finished directory; ``pipeline`` identifies the kind."""
