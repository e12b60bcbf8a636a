"""The report (report.py) as one HTML page: no script, nothing from elsewhere, for light, dark and paper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bioshards.corpus.page import document, percent, table, text

from .report import MAX_LENGTH, UNNAMED
from .report_chart import chart
from .report_html import piece, pieces
from .wordpiece import LONGEST_WORD, UNK


def page(report: dict[str, Any], name: str | None = None) -> str:
    """The page of a report (report.py).

    Args:
        name: what to call the vocabulary on the page, its folder's name for example, where the report has no
            name for it and none beside it is called so.
    """
    if name and report["name"] == UNNAMED and all(name != one["name"] for one in report["vocabularies"]):
        ours, *others = report["vocabularies"]
        report = {**report, "name": name, "vocabularies": [{**ours, "name": name}, *others]}
    title = "Vocabulary report"
    if report["name"] != UNNAMED:
        title += f": {text(report['name'])}"
    parts = [
        f"<h1>{title}</h1>",
        _about(report),
        _glance(report),
        _curve(report),
        _probes(report),
        _evaluation(report),
        _alphabet(report),
        _unreachable(report),
        _overlap(report),
        _longest(report),
    ]
    return document(title, parts)


_WORD: Final = {
    "bert": "A word is what BERT\u2019s pre-tokenisation gives: punctuation marks and ideographs are words "
    "of their own.",
    "white-space": "A word is what stands between white space, with the punctuation marks on it.",
}
"""What a word is, by kind of words."""


def _names(report: dict[str, Any]) -> list[str]:
    ours, *others = [text(one["name"]) for one in report["vocabularies"]]
    return [f'<span class="ours">{ours}</span>', *others]


def _about(report: dict[str, Any]) -> str:
    rows = [[_key(key), _value(value)] for key, value in report["about"].items() if key != "name"]
    return table([], rows, left=[1]) if rows else ""


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Mapping):
        return "<br>".join(f"{_key(key)}: {_value(one)}" for key, one in value.items()) or "none"
    if isinstance(value, list | tuple):
        apart = "<br><br>" if any(isinstance(one, Mapping) for one in value) else ", "
        return apart.join(map(_value, value)) or "none"
    return "none" if value is None else text(value)


def _key(key: str) -> str:
    return text(key.replace("_", " "))


def _glance(report: dict[str, Any]) -> str:
    words = report["words"]
    source = (
        "documents held out from the training"
        if words["held_out"]
        else "the documents it was trained on (none were held out)"
    )
    new = (
        f"; {percent(words['not_in_training'])} of them never occur in the training"
        if words["held_out"]
        else ""
    )
    vocabularies = report["vocabularies"]

    def row(label: str, cell: Any) -> list[str]:
        return [label, *(cell(one) for one in vocabularies)]

    rows = [
        row("Model", lambda one: text(one["model"])),
        row("Casing", _casing),
        row("Size (rows of the embedding)", lambda one: f"{one['size']:,}"),
        row("Pieces that are not special", lambda one: f"{one['pieces']:,}"),
        row("Fertility (pieces a word)", lambda one: f"{one['on_words']['fertility']:.4f}"),
        row("Without words of punctuation only", lambda one: f"{one['on_words']['without_punctuation']:.4f}"),
        row("Pieces per 100 characters", lambda one: f"{one['on_words']['per_100_characters']:.3f}"),
        row("Words that are one piece", lambda one: percent(one["on_words"]["whole"])),
        row(f"Words with an {UNK}", lambda one: percent(one["on_words"]["unknown_words"])),
        row(f"Characters in an {UNK}", lambda one: percent(one["on_words"]["unknown_characters"])),
        row("Occurrences of characters with a piece", lambda one: percent(one["alphabet"]["covered_share"])),
        row("Pieces used on these words", lambda one: f"{one['on_words']['used']:,}"),
        row("Pieces never used on them", lambda one: f"{one['on_words']['unused']:,}"),
        row("Pieces that no text can yield", lambda one: _dead(one)),
        row("Ids without a piece", lambda one: f"{one['ids_without_piece']:,}"),
    ]
    return (
        "<h2>At a glance</h2>"
        f"<p>Measured on {words['occurrences']:,} words ({words['distinct']:,} distinct) of {source}{new}. "
        f"{_WORD[words['kind']]}</p>"
        + table(["", *_names(report)], rows)
        + '<p class="note">Every number weighs a word by its count. Do not compare fertility and '
        "shares of words with those of a report where a word is something else, but pieces per 100 "
        "characters (of the words as written). Fertility counts an "
        f"{UNK} (&lt;unk&gt; in SentencePiece\u2019s vocabularies) as one piece, "
        "so a vocabulary that lacks characters looks better by it than it is: read it with the share of "
        f"{UNK}. Vocabularies that are not WordPiece are given each word as if it stood between blanks, "
        "which takes more pieces than a text does where marks are words of their own: judge those by words "
        "between white space. Ids without a piece come from blank or repeated lines of a vocab.txt.</p>"
    )


def _casing(one: dict[str, Any]) -> str:
    letters = "lower case" if one["lower_case"] else "as written"
    return f"{letters}, accents {'stripped' if one['strip_accents'] else 'kept'}"


def _dead(one: dict[str, Any]) -> str:
    found = one["unreachable"]
    return "not looked for" if found is None else f"{found['all']:,} ({percent(found['share'])})"


def _curve(report: dict[str, Any]) -> str:
    if report["curve"] is None:
        return ""
    points = report["curve"]["points"]
    others = report["curve"]["vocabularies"][1:]
    rows = [
        [
            f"{point['size']:,}",
            f"{point['fertility']:.4f}",
            percent(point["whole"]),
            percent(point["unknown_words"]),
        ]
        for point in points
    ]
    return (
        "<h2>Size against fertility</h2><figure>"
        + chart(points, others, text(report["name"]), [text(one["name"]) for one in others])
        + "<figcaption>Pieces a word of the first N entries of the vocabulary in the order of learning, "
        "special tokens and alphabet first, on the words above; other vocabularies at their own "
        "size.</figcaption></figure>"
        + table(["First N", "Pieces a word", "Words that are one piece", f"Words with an {UNK}"], rows)
    )


def _probes(report: dict[str, Any]) -> str:
    rows = [[text(one["word"]), *map(pieces, one["pieces"])] for one in report["probes"]]
    columns = range(1, len(report["vocabularies"]) + 1)
    whole = [
        sum(
            len(one["pieces"][at]) == 1 and one["pieces"][at] != [vocabulary["unknown"]]
            for one in report["probes"]
        )
        for at, vocabulary in enumerate(report["vocabularies"])
    ]
    rows.append(["<b>Whole</b>", *(f"<b>{count}</b> of {len(report['probes'])}" for count in whole)])
    return (
        "<h2>Biomedical words, piece by piece</h2>"
        "<p>The words of table 1 of Gu et al. 2020 (PubMedBERT), all of which are whole in "
        "PubMedBERT\u2019s vocabulary. The mark ## stands before a piece that continues a word.</p>"
        + table(["Word", *_names(report)], rows, left=columns)
    )


def _evaluation(report: dict[str, Any]) -> str:
    evaluation = report["evaluation"]
    if evaluation is None:
        return ""
    rows = [
        [
            text(one["name"]),
            text(one["input"]),
            f"{one['inputs']:,}",
            percent(one["too_long"][0]),
            f"{one['lengths'][0]:.1f}",
            *(_length(length, one["lengths"][0]) for length in one["lengths"][1:]),
            *_published(one["published"]),
        ]
        for one in evaluation["sets"]
    ]
    absent = "".join(
        f" Of {text(one['name'])} there is no {text(', '.join(one['absent']))}."
        for one in evaluation["sets"]
        if one["absent"]
    )
    missing = (
        f" Sets without files: {text(', '.join(evaluation['missing']))}." if evaluation["missing"] else ""
    )
    ours, *others = _names(report)
    head = [
        *("Set", "Input", "Inputs", f"{ours}, inputs over {MAX_LENGTH}", ours),
        *others,
        *("BERT, published", "PubMedBERT, published"),
    ]
    return (
        "<h2>Length of the evaluation sets\u2019 inputs</h2>"
        "<p>Mean length in pieces, over all splits, as the model sees an input: a dummy such as @GENE$ is "
        "one piece where the vocabulary reserves it, [CLS] first, [SEP] after each text. In brackets: how "
        "many times as long as with the first vocabulary, "
        "and in the published columns as PubMedBERT’s.</p>"
        + table(head, rows, left=[1])
        + '<p class="note">The published columns are table 8 of Gu et al. 2020, which does not say whether '
        "[CLS] and [SEP] are counted, nor on which splits. Its texts were prepared by other code, and its "
        f"BioASQ has questions that are not here: compare the ratios in brackets "
        f"rather than lengths.{absent}{missing}</p>"
    )


def _length(length: float, than: float) -> str:
    return f"{length:.1f} ({length / than:.2f})"


def _published(found: dict[str, float] | None) -> list[str]:
    if found is None:
        return ["", ""]
    return [_length(found["bert"], found["pubmedbert"]), f"{found['pubmedbert']:.1f}"]


def _alphabet(report: dict[str, Any]) -> str:
    rows = []
    for name, one in zip(_names(report), report["vocabularies"], strict=True):
        found = one["alphabet"]
        missing = [f"{piece(character)}\u00a0{count:,}" for character, count in found["missing"]]
        rows.append(
            [
                name,
                f"{found['covered']:,} of {found['characters']:,}",
                percent(found["covered_share"]),
                f"{len(found['failing']):,}",
                ", ".join(missing) or "none",
            ]
        )
    head = [
        "Vocabulary",
        "Characters",
        "Of all occurrences",
        "Failing",
        "Most frequent without a piece (occurrences)",
    ]
    return (
        "<h2>Alphabet</h2>"
        "<p>A character is covered when it has a piece at the beginning of a word and one within: no word "
        f"of covered characters, up to the {LONGEST_WORD} that a word may have, becomes {UNK}. Failing are "
        f"covered ones that the encoder nevertheless makes {UNK}.</p>" + table(head, rows, left=[4])
    )


def _unreachable(report: dict[str, Any]) -> str:
    rows = []
    for name, one in zip(_names(report), report["vocabularies"], strict=True):
        found = one["unreachable"]
        if found is None:
            rows.append([name, *["not looked for"] * 3, ""])
        else:
            numbers = [f"{found[key]:,}" for key in ("all", "several_characters", "with_punctuation")]
            rows.append([name, *numbers, pieces(found["examples"]) or "none"])
    head = ["Vocabulary", "All", "Of several characters", "With punctuation", "Some of them, by id"]
    return (
        "<h2>Pieces that no text can yield</h2>"
        "<p>A piece counts as reachable only if a text was found that the encoder cuts into it. The others "
        "are rows of the embedding that are never trained: punctuation or ideographs inside a piece, which "
        "the pre-tokenisation splits off, and letters that the normaliser changes.</p>"
        + table(head, rows, left=[4])
        + '<p class="note">With punctuation: of two characters or more as written, ## counted, with a '
        "punctuation mark. Reachability is looked for in WordPiece vocabularies only.</p>"
    )


def _overlap(report: dict[str, Any]) -> str:
    if not report["overlap"]:
        return ""
    rows = []
    for one in report["overlap"]:
        cells = [text(one["name"])]
        for way in ("as_written", "folded"):
            found = one[way]
            cells += [f"{found['pieces']:,}", percent(found["of_ours"]), percent(found["of_theirs"])]
        rows.append(cells)
    head = [
        "Vocabulary",
        *("In common, as written", "of ours", "of theirs"),
        *("In common, folded", "of ours", "of theirs"),
    ]
    return (
        "<h2>Overlap with other vocabularies</h2>"
        "<p>Special tokens left out. Folded: in lower case and without accents, each piece once, so that "
        "cased and uncased vocabularies compare.</p>" + table(head, rows)
    )


def _longest(report: dict[str, Any]) -> str:
    rows = [
        [name, pieces(one["longest"])]
        for name, one in zip(_names(report), report["vocabularies"], strict=True)
    ]
    return "<h2>Longest pieces</h2>" + table(["Vocabulary", "Longest first"], rows, left=[1])
