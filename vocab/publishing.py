"""A vocabulary's directory: its files, each whole or not there, and the manifest last.

No manifest, not finished.  Everything in it but the part called ``run`` is the same for the same words and
recipe, as are all other files.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import sentencepiece
import tokenizers

from bioshards.corpus.files import Checked, LocalFiles
from bioshards.corpus.manifest import (
    OutputFile,
    VocabularyConfig,
    VocabularyCounts,
    VocabularyManifest,
    VocabularyRun,
    decode,
    find_manifest,
    is_complete,
    utc_now,
    write_manifest,
)
from bioshards.corpus.workspace import Workspace

from . import counts, hugging_face, report_page
from .build import Vocabulary
from .counting import HELD_OUT, WORDS
from .counts import Counting
from .inputs import Documents
from .recipes import Recipe
from .sources import Source, Text

REPORTS: Final = ("report.json", "report.html")
FORMAT: Final = 2
"""Raised whenever the same words and recipe give other files than before."""


def config(
    recipe: Recipe, counting: Counting, min_count: int | None, sources: Sequence[Source]
) -> dict[str, Any]:
    """What must be the same for a directory to be gone on with."""
    return {
        "pipeline": "vocab",
        "format": FORMAT,
        "recipe": recipe.as_dict(),
        "counting": counting.as_dict() if any(isinstance(source, Documents) for source in sources) else None,
        "min_count": min_count,
        "inputs": [source.as_dict() for source in sources],
        "library_versions": {
            "sentencepiece": sentencepiece.__version__,
            "tokenizers": tokenizers.__version__,
        },
    }


def finished(files: LocalFiles, work: Workspace, rewritten: Collection[str] = ()) -> bool:
    """Is the manifest there, and every file that it lists, of its size?

    Args:
        rewritten: files that a stopped run may have written anew, so that they need only be there.
    """
    manifest = find_manifest(files, work.output, VocabularyManifest)
    return manifest is not None and is_complete(files, work.output, manifest, any_size=rewritten)


def publish(
    files: LocalFiles,
    work: Workspace,
    vocabulary: Vocabulary,
    recipe: Recipe,
    text: Text,
    totals: VocabularyCounts,
    report: Mapping[str, Any],
    config: Mapping[str, Any],
    run: VocabularyRun,
) -> None:
    """Write everything, the manifest last."""
    settings = hugging_face.config(recipe.casing, recipe.sentencepiece)
    contents: dict[str, Iterable[bytes]] = {
        name: [data] for name, data in hugging_face.files(vocabulary.tokenizer, settings).items()
    }
    if vocabulary.model:
        contents["spiece.model"] = [vocabulary.model]
    contents[WORDS] = counts.as_lines(text.words)
    if text.held_out:
        contents[HELD_OUT] = counts.as_lines(text.held_out)
    contents.update(_report(report))
    manifest = VocabularyManifest(
        config=decode(VocabularyConfig, config),
        outputs=tuple(_write(files, work.output, name, data) for name, data in contents.items()),
        counts=totals,
        run=dataclasses.replace(run, finished=utc_now()),
    )
    write_manifest(files, work.manifest, manifest)


def totals(vocabulary: Vocabulary, text: Text) -> VocabularyCounts:
    """What the vocabulary was made of, in numbers."""
    letters = vocabulary.alphabet
    return VocabularyCounts(
        pieces=vocabulary.tokenizer.get_vocab_size(),
        words=text.words.total(),
        distinct_words=len(text.words),
        min_count=text.min_count,
        validation_words=text.held_out.total(),
        trained_words=vocabulary.tokens,
        distinct_trained_words=vocabulary.distinct,
        alphabet=len(letters.characters) if letters else None,
        alphabet_rarest=letters.rarest if letters else None,
        alphabet_coverage=round(letters.coverage, 7) if letters else None,
    )


def rewrite_report(
    files: LocalFiles, work: Workspace, manifest: VocabularyManifest, report: Mapping[str, Any]
) -> None:
    """Put another report in the place of the one that is there; stopped half-way, it can be done again."""
    new = {name: _write(files, work.output, name, data) for name, data in _report(report).items()}
    outputs = tuple(new.get(output.file, output) for output in manifest.outputs)
    write_manifest(files, work.manifest, dataclasses.replace(manifest, outputs=outputs))


def run_of(command: Sequence[str], sources: Sequence[Source]) -> VocabularyRun:
    """What is true of this run only."""
    return VocabularyRun(
        command=("python", "-m", "bioshards.vocab", *command),
        inputs=tuple(source.folder for source in sources),
    )


def _report(report: Mapping[str, Any]) -> dict[str, Iterable[bytes]]:
    text = json.dumps(report, indent=1, ensure_ascii=False) + "\n"
    page = report_page.page(dict(report))
    return dict(zip(REPORTS, ([text.encode()], [page.encode()]), strict=True))


def _write(files: LocalFiles, folder: str, name: str, data: Iterable[bytes]) -> OutputFile:
    with files.write(f"{folder}/{name}") as file:
        checked = Checked(file)
        for part in data:
            checked.write(part)
    return OutputFile(name, checked.size, checked.sha256)
