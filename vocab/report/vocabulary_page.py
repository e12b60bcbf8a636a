"""The report of a vocabulary as one HTML page, without scripts and external files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from bioshards.corpus.ui.html_page import escape_html, format_percent, render_html_page, render_table
from bioshards.vocab.tokenizer.wordpiece import MAX_WORD_LENGTH, UNK

from .fertility_chart import render_chart
from .piece_html import render_piece, render_pieces
from .vocabulary_report import DEFAULT_NAME, MAX_INPUT_LENGTH


def render_page(report: dict[str, Any], name: str | None = None) -> str:
    """Return the page of a report (vocabulary_report.py).

    Args:
        name: name to show for a vocabulary without one, for example that of its folder; ignored if a baseline
            has the same name.
    """
    if (
        name
        and report["name"] == DEFAULT_NAME
        and all(name != vocabulary["name"] for vocabulary in report["vocabularies"])
    ):
        own, *baselines = report["vocabularies"]
        report = {**report, "name": name, "vocabularies": [{**own, "name": name}, *baselines]}
    title = "Vocabulary report"
    if report["name"] != DEFAULT_NAME:
        title += f": {escape_html(report['name'])}"
    sections = [
        f"<h1>{title}</h1>",
        _render_about(report),
        _render_summary(report),
        _render_curve(report),
        _render_probes(report),
        _render_benchmarks(report),
        _render_alphabet(report),
        _render_unreachable(report),
        _render_overlap(report),
        _render_longest(report),
    ]
    return render_html_page(title, sections)


_WORD_DEFINITIONS: Final = {
    "bert": "A word is what BERT\u2019s pre-tokenisation gives: punctuation marks and ideographs are words "
    "of their own.",
    "white-space": "A word is what stands between white space, with the punctuation marks on it.",
}
"""Definition of a word by pretokenizer."""


def _render_names(report: dict[str, Any]) -> list[str]:
    own_name, *baseline_names = [escape_html(vocabulary["name"]) for vocabulary in report["vocabularies"]]
    return [f'<span class="ours">{own_name}</span>', *baseline_names]


def _render_about(report: dict[str, Any]) -> str:
    rows = [
        [_render_key(key), _render_value(value)] for key, value in report["about"].items() if key != "name"
    ]
    return render_table([], rows, left_aligned=[1]) if rows else ""


def _render_value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Mapping):
        return (
            "<br>".join(f"{_render_key(key)}: {_render_value(item)}" for key, item in value.items()) or "none"
        )
    if isinstance(value, list | tuple):
        separator = "<br><br>" if any(isinstance(item, Mapping) for item in value) else ", "
        return separator.join(map(_render_value, value)) or "none"
    return "none" if value is None else escape_html(value)


def _render_key(key: str) -> str:
    return escape_html(key.replace("_", " "))


def _render_summary(report: dict[str, Any]) -> str:
    words = report["words"]
    word_origin = (
        "documents held out from the training"
        if words["held_out"]
        else "the documents it was trained on (none were held out)"
    )
    unseen_note = (
        f"; {format_percent(words['not_in_training'])} of them never occur in the training"
        if words["held_out"]
        else ""
    )
    vocabularies = report["vocabularies"]

    def make_row(label: str, render_cell: Callable[[dict[str, Any]], str]) -> list[str]:
        return [label, *(render_cell(vocabulary) for vocabulary in vocabularies)]

    rows = [
        make_row("Model", lambda vocabulary: escape_html(vocabulary["model"])),
        make_row("Casing", _render_casing),
        make_row("Size (rows of the embedding)", lambda vocabulary: f"{vocabulary['size']:,}"),
        make_row("Pieces that are not special", lambda vocabulary: f"{vocabulary['pieces']:,}"),
        make_row(
            "Fertility (pieces a word)", lambda vocabulary: f"{vocabulary['on_words']['fertility']:.4f}"
        ),
        make_row(
            "Without words of punctuation only",
            lambda vocabulary: f"{vocabulary['on_words']['without_punctuation']:.4f}",
        ),
        make_row(
            "Pieces per 100 characters",
            lambda vocabulary: f"{vocabulary['on_words']['per_100_characters']:.3f}",
        ),
        make_row(
            "Words that are one piece", lambda vocabulary: format_percent(vocabulary["on_words"]["whole"])
        ),
        make_row(
            f"Words with an {UNK}", lambda vocabulary: format_percent(vocabulary["on_words"]["unknown_words"])
        ),
        make_row(
            f"Characters in an {UNK}",
            lambda vocabulary: format_percent(vocabulary["on_words"]["unknown_characters"]),
        ),
        make_row(
            "Occurrences of characters with a piece",
            lambda vocabulary: format_percent(vocabulary["alphabet"]["covered_share"]),
        ),
        make_row("Pieces used on these words", lambda vocabulary: f"{vocabulary['on_words']['used']:,}"),
        make_row("Pieces never used on them", lambda vocabulary: f"{vocabulary['on_words']['unused']:,}"),
        make_row("Pieces that no text can yield", lambda vocabulary: _render_unreachable_total(vocabulary)),
        make_row("Ids without a piece", lambda vocabulary: f"{vocabulary['ids_without_piece']:,}"),
    ]
    return (
        "<h2>At a glance</h2>"
        f"<p>Measured on {words['occurrences']:,} words ({words['distinct']:,} distinct) of "
        f"{word_origin}{unseen_note}. "
        f"{_WORD_DEFINITIONS[words['kind']]}</p>"
        + render_table(["", *_render_names(report)], rows)
        + '<p class="note">Every number weighs a word by its count. Do not compare fertility and '
        "shares of words with those of a report where a word is something else, but pieces per 100 "
        "characters (of the words as written). Fertility counts an "
        f"{UNK} (&lt;unk&gt; in SentencePiece\u2019s vocabularies) as one piece, "
        "so a vocabulary that lacks characters looks better by it than it is: read it with the share of "
        f"{UNK}. Vocabularies that are not WordPiece are given each word as if it stood between blanks, "
        "which takes more pieces than a text does where marks are words of their own: judge those by words "
        "between white space. Ids without a piece come from blank or repeated lines of a vocab.txt.</p>"
    )


def _render_casing(vocabulary: dict[str, Any]) -> str:
    letters = "lower case" if vocabulary["lower_case"] else "as written"
    return f"{letters}, accents {'stripped' if vocabulary['strip_accents'] else 'kept'}"


def _render_unreachable_total(vocabulary: dict[str, Any]) -> str:
    unreachable = vocabulary["unreachable"]
    return (
        "not looked for"
        if unreachable is None
        else f"{unreachable['all']:,} ({format_percent(unreachable['share'])})"
    )


def _render_curve(report: dict[str, Any]) -> str:
    if report["curve"] is None:
        return ""
    points = report["curve"]["points"]
    baselines = report["curve"]["vocabularies"][1:]
    rows = [
        [
            f"{point['size']:,}",
            f"{point['fertility']:.4f}",
            format_percent(point["whole"]),
            format_percent(point["unknown_words"]),
        ]
        for point in points
    ]
    return (
        "<h2>Size against fertility</h2><figure>"
        + render_chart(
            points,
            baselines,
            escape_html(report["name"]),
            [escape_html(baseline["name"]) for baseline in baselines],
        )
        + "<figcaption>Pieces a word of the first N entries of the vocabulary in the order of learning, "
        "special tokens and alphabet first, on the words above; other vocabularies at their own "
        "size.</figcaption></figure>"
        + render_table(["First N", "Pieces a word", "Words that are one piece", f"Words with an {UNK}"], rows)
    )


def _render_probes(report: dict[str, Any]) -> str:
    rows = [[escape_html(probe["word"]), *map(render_pieces, probe["pieces"])] for probe in report["probes"]]
    columns = range(1, len(report["vocabularies"]) + 1)
    num_whole = [
        sum(
            len(probe["pieces"][index]) == 1 and probe["pieces"][index] != [vocabulary["unknown"]]
            for probe in report["probes"]
        )
        for index, vocabulary in enumerate(report["vocabularies"])
    ]
    rows.append(["<b>Whole</b>", *(f"<b>{count}</b> of {len(report['probes'])}" for count in num_whole)])
    return (
        "<h2>Biomedical words, piece by piece</h2>"
        "<p>The words of table 1 of Gu et al. 2020 (PubMedBERT), all of which are whole in "
        "PubMedBERT\u2019s vocabulary. The mark ## stands before a piece that continues a word.</p>"
        + render_table(["Word", *_render_names(report)], rows, left_aligned=columns)
    )


def _render_benchmarks(report: dict[str, Any]) -> str:
    evaluation = report["evaluation"]
    if evaluation is None:
        return ""
    rows = [
        [
            escape_html(benchmark["name"]),
            f"{benchmark['inputs']:,}",
            format_percent(benchmark["too_long"][0]),
            f"{benchmark['lengths'][0]:.1f}",
            *(_render_length(length, benchmark["lengths"][0]) for length in benchmark["lengths"][1:]),
            *_render_published(benchmark["published"]),
        ]
        for benchmark in evaluation["sets"]
    ]
    own_name, *baseline_names = _render_names(report)
    header = [
        "Set",
        "Inputs",
        f"{own_name}, inputs over {MAX_INPUT_LENGTH}",
        own_name,
        *baseline_names,
        "BERT, published",
        "PubMedBERT, published",
    ]
    return (
        "<h2>Length of the evaluation sets\u2019 inputs</h2>"
        "<p>Mean length in pieces, over all splits, as the model sees an input: a dummy such as @GENE$ is "
        "one piece where the vocabulary reserves it, [CLS] first, [SEP] after each text. In brackets: how "
        "many times as long as with the first vocabulary, "
        "and in the published columns as PubMedBERT’s.</p>"
        + render_table(header, rows)
        + '<p class="note">The published columns are table 8 of Gu et al. 2020, which does not say whether '
        "[CLS] and [SEP] are counted, nor on which splits. Its texts were prepared by other code, and its "
        "BioASQ has questions that are not here: compare the ratios in brackets "
        "rather than lengths.</p>"
    )


def _render_length(length: float, reference: float) -> str:
    return f"{length:.1f} ({length / reference:.2f})"


def _render_published(published: dict[str, float] | None) -> list[str]:
    if published is None:
        return ["", ""]
    return [_render_length(published["bert"], published["pubmedbert"]), f"{published['pubmedbert']:.1f}"]


def _render_alphabet(report: dict[str, Any]) -> str:
    rows = []
    for name, vocabulary in zip(_render_names(report), report["vocabularies"], strict=True):
        alphabet = vocabulary["alphabet"]
        missing = [f"{render_piece(character)}\u00a0{count:,}" for character, count in alphabet["missing"]]
        rows.append(
            [
                name,
                f"{alphabet['covered']:,} of {alphabet['characters']:,}",
                format_percent(alphabet["covered_share"]),
                f"{len(alphabet['failing']):,}",
                ", ".join(missing) or "none",
            ]
        )
    header = [
        "Vocabulary",
        "Characters",
        "Of all occurrences",
        "Failing",
        "Most frequent without a piece (occurrences)",
    ]
    return (
        "<h2>Alphabet</h2>"
        "<p>A character is covered when it has a piece at the beginning of a word and one within: no word "
        f"of covered characters, up to the {MAX_WORD_LENGTH} that a word may have, becomes {UNK}. Failing "
        "are "
        f"covered ones that the encoder nevertheless makes {UNK}.</p>"
        + render_table(header, rows, left_aligned=[4])
    )


def _render_unreachable(report: dict[str, Any]) -> str:
    rows = []
    for name, vocabulary in zip(_render_names(report), report["vocabularies"], strict=True):
        unreachable = vocabulary["unreachable"]
        if unreachable is None:
            rows.append([name, "not looked for", "not looked for", "not looked for", ""])
        else:
            numbers = [f"{unreachable[key]:,}" for key in ("all", "several_characters", "with_punctuation")]
            rows.append([name, *numbers, render_pieces(unreachable["examples"]) or "none"])
    header = ["Vocabulary", "All", "Of several characters", "With punctuation", "Some of them, by id"]
    return (
        "<h2>Pieces that no text can yield</h2>"
        "<p>A piece counts as reachable only if a text was found that the encoder cuts into it. The others "
        "are rows of the embedding that are never trained: punctuation or ideographs inside a piece, which "
        "the pre-tokenisation splits off, and letters that the normaliser changes.</p>"
        + render_table(header, rows, left_aligned=[4])
        + '<p class="note">With punctuation: of two characters or more as written, ## counted, with a '
        "punctuation mark. Reachability is looked for in WordPiece vocabularies only.</p>"
    )


def _render_overlap(report: dict[str, Any]) -> str:
    if not report["overlap"]:
        return ""
    rows = []
    for baseline in report["overlap"]:
        cells = [escape_html(baseline["name"])]
        for comparison in ("as_written", "folded"):
            common = baseline[comparison]
            cells += [
                f"{common['pieces']:,}",
                format_percent(common["of_ours"]),
                format_percent(common["of_theirs"]),
            ]
        rows.append(cells)
    header = [
        "Vocabulary",
        "In common, as written",
        "of ours",
        "of theirs",
        "In common, folded",
        "of ours",
        "of theirs",
    ]
    return (
        "<h2>Overlap with other vocabularies</h2>"
        "<p>Special tokens left out. Folded: in lower case and without accents, each piece once, so that "
        "cased and uncased vocabularies compare.</p>" + render_table(header, rows)
    )


def _render_longest(report: dict[str, Any]) -> str:
    rows = [
        [name, render_pieces(vocabulary["longest"])]
        for name, vocabulary in zip(_render_names(report), report["vocabularies"], strict=True)
    ]
    return "<h2>Longest pieces</h2>" + render_table(["Vocabulary", "Longest first"], rows, left_aligned=[1])
