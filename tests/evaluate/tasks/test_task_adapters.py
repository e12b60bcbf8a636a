"""Task adapters: records to model inputs and predictions to answers, at any sequence length."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal
from unittest import mock

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.evaluate.benchmarks.records import (
    Answer,
    LabelledText,
    Mention,
    Question,
    Relation,
    TaggedSentence,
    sample_records,
    split_off_dev,
)
from bioshards.evaluate.encoder import (
    EncodedBatch,
    Example,
    ModelError,
    ModelTokenizer,
    SpecialTokens,
    inspect_checkpoint,
    load_encoder,
    pad_rows,
)
from bioshards.evaluate.recipes import FineTuneRecipe
from bioshards.evaluate.tasks import question_answering
from bioshards.evaluate.tasks.classification import Classification, compute_class_weights, truncate_pair
from bioshards.evaluate.tasks.input_texts import ENTITY_MARKERS, find_window_start
from bioshards.evaluate.tasks.question_answering import QuestionAnswering, SpanHead
from bioshards.evaluate.tasks.tagging import Tagging, find_entity_types
from bioshards.evaluate.tasks.task_registry import make_adapter, plan_tasks
from tests.support.evaluate.tiny_checkpoints import Family, save_tiny_checkpoint
from tests.support.hypothesis_profiles import examples

FAMILIES: tuple[Family, ...] = ("bert", "electra", "albert", "roberta")
SHORT = FineTuneRecipe(max_seq_length=16)


@pytest.fixture(scope="module")
def checkpoint_dirs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    return {family: save_tiny_checkpoint(folder / family, family) for family in FAMILIES}


@pytest.fixture(scope="module")
def tokenizers(checkpoint_dirs: dict[str, Path]) -> dict[str, ModelTokenizer]:
    return {
        family: inspect_checkpoint(str(folder)).load_tokenizer() for family, folder in checkpoint_dirs.items()
    }


def make_batch(examples: Sequence[Example], hidden: torch.Tensor) -> EncodedBatch:
    """Return a batch with these vectors."""
    mask = pad_rows([[1] * len(example.input_ids) for example in examples], hidden.shape[1]).bool()
    return EncodedBatch(examples, hidden, hidden[:, 0], mask)


# Tokens


@pytest.mark.parametrize("family", FAMILIES)
def test_input_equals_the_hugging_face_tokenizers(tokenizers: dict[str, ModelTokenizer], family: str) -> None:
    tokenizer, hf_tokenizer = tokenizers[family], tokenizers[family].hf_tokenizer
    for texts in (("the protein",), ("is it a drug?", "no, the drug is in cells")):
        pieces = [ids for ids, _ in tokenizer.encode_texts(texts)]
        model_input = tokenizer.build_input(*pieces)
        expected = hf_tokenizer(*texts, return_token_type_ids=True)
        assert model_input.input_ids == expected["input_ids"]
        assert model_input.token_type_ids == expected["token_type_ids"]
        for start, ids in zip((model_input.first_start, model_input.second_start), pieces, strict=False):
            assert model_input.input_ids[start : start + len(ids)] == ids
        num_text_tokens = tokenizer.count_text_tokens(32, is_pair=len(texts) == 2)
        assert len(model_input.input_ids) - sum(map(len, pieces)) == 32 - num_text_tokens


@pytest.mark.parametrize("family", FAMILIES)
def test_every_word_has_a_token(tokenizers: dict[str, ModelTokenizer], family: str) -> None:
    words = ("the", "\u200b", "α", "x" * 300, "\x00", "é", "of")
    [pieces_by_word] = tokenizers[family].encode_words([words])
    assert len(pieces_by_word) == len(words)
    assert all(pieces_by_word)


@pytest.mark.parametrize("family", FAMILIES)
def test_words_are_encoded_as_in_running_text(tokenizers: dict[str, ModelTokenizer], family: str) -> None:
    tokenizer = tokenizers[family]
    words = ("the", "gene", ",", "(x)", "drug", "é")
    [pieces_by_word], [(ids, _)] = tokenizer.encode_words([words]), tokenizer.encode_texts([" ".join(words)])
    assert [piece for pieces in pieces_by_word for piece in pieces] == ids
    second = "".join(tokenizer.hf_tokenizer.convert_ids_to_tokens(pieces_by_word[1]))
    assert second == {"albert": "▁gene", "roberta": "Ġgene"}.get(family, "gene")


def test_offsets_refer_to_the_text(tokenizers: dict[str, ModelTokenizer]) -> None:
    text = "The  drug, é of cells"
    [(ids, offsets)] = tokenizers["bert"].encode_texts([text])
    assert len(ids) == len(offsets)
    assert [text[start:end] for start, end in offsets] == ["The", "drug", ",", "é", "of", "cells"]


def test_run_folder_is_told_which_checkpoint_is_meant(tmp_path: Path) -> None:
    folder = save_tiny_checkpoint(tmp_path / "run" / "step-0000001" / "hf")
    with pytest.raises(ModelError, match=r"step-0000001/hf is meant\?"):
        inspect_checkpoint(str(tmp_path / "run"))
    assert inspect_checkpoint(str(folder)).name == "run/step-0000001"


def test_entity_markers_get_distinct_embeddings(checkpoint_dirs: dict[str, Path]) -> None:
    checkpoint = inspect_checkpoint(str(checkpoint_dirs["bert"]), "ours")
    assert checkpoint.name == "ours"
    tokenizer = checkpoint.load_tokenizer()
    tokenizer.hf_tokenizer.add_tokens(list(ENTITY_MARKERS))
    torch.manual_seed(0)
    vectors = load_encoder(checkpoint, tokenizer).model.get_input_embeddings().weight
    assert torch.corrcoef(vectors[-4:]).fill_diagonal_(0).abs().max() < 0.95
    assert 0.5 < vectors[-4:].std() / vectors[:-4].std() < 2


def test_checkpoint_without_a_layer_is_refused(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = save_tiny_checkpoint(tmp_path / "m", "bert")
    weights = load_file(folder / "model.safetensors")
    cut = {name: weight for name, weight in weights.items() if "layer.0.attention" not in name}
    save_file(cut, folder / "model.safetensors", {"format": "pt"})
    checkpoint = inspect_checkpoint(str(folder))
    with pytest.raises(ModelError, match="which would be random"):
        load_encoder(checkpoint, checkpoint.load_tokenizer())


def test_pretrained_pooler_is_used(checkpoint_dirs: dict[str, Path]) -> None:
    for family, has_pooler in (("bert", True), ("electra", False)):
        checkpoint = inspect_checkpoint(str(checkpoint_dirs[family]))
        model = load_encoder(checkpoint, checkpoint.load_tokenizer()).eval()
        example = Example(0, [2, 7, 8, 3], [0, 0, 0, 0])
        output = model([example])
        assert torch.equal(output.pooled, output.hidden[:, 0]) is not has_pooler


# Tags

WORD = st.sampled_from(["the", "gene", "p53", "BRCA1-related", "x", "(", "\u200b", "immunohistochemistry"])
TAG = st.sampled_from(["O", "B-Gene", "I-Gene", "B-Cell"])


def make_tagged_sentence(tagged: Sequence[tuple[str, str]]) -> TaggedSentence:
    return TaggedSentence("1", tuple(word for word, _ in tagged), tuple(tag for _, tag in tagged))


@given(st.lists(st.lists(st.tuples(WORD, TAG), min_size=1, max_size=25), min_size=1, max_size=3))
@settings(max_examples=examples(60))
def test_tagging_windows_cover_every_word_once(
    tokenizers: dict[str, ModelTokenizer], tagged_words: Any
) -> None:
    sentences = [make_tagged_sentence(sentence) for sentence in tagged_words]
    adapter = Tagging(tokenizers["electra"], SHORT, find_entity_types(sentences))
    examples = adapter.make_examples(sentences, is_training=True)
    assert all(len(example.input_ids) <= SHORT.max_seq_length for example in examples)
    word_positions = [
        (example.record_index, example.first_word + offset)
        for example in examples
        for offset in range(len(example.positions))
    ]
    assert word_positions == [
        (record, offset) for record, sentence in enumerate(sentences) for offset in range(len(sentence.words))
    ]
    for example in examples:
        assert [example.input_ids[position] for position in example.positions] == [
            tokenizers["electra"].encode_words(
                [[sentences[example.record_index].words[example.first_word + offset]]]
            )[0][0][0]
            for offset in range(len(example.positions))
        ]
    gold_labels = [[adapter.labels[number] for number in example.target] for example in examples]
    predictions = adapter.merge_predictions(sentences, examples, gold_labels)
    from bioshards.evaluate.metrics.tags import extract_spans

    assert [extract_spans(tags) for tags in predictions] == [
        extract_spans(sentence.tags) for sentence in sentences
    ]


@pytest.mark.parametrize(
    ("scheme", "head"),
    [
        *itertools.product(["BIO", "BIOUL", "IO"], ["linear", "crf"]),
        ("BIO", "bilstm"),
        ("BIO", "bilstm-crf"),
    ],
)
def test_tagger_learns_a_batch_with_each_scheme_and_head(
    tokenizers: dict[str, ModelTokenizer], scheme: Any, head: Any
) -> None:
    sentences = [
        make_tagged_sentence([("the", "O"), ("gene", "B-Gene"), ("p53", "I-Gene")]),
        make_tagged_sentence([("x", "B-Gene")]),
    ]
    adapter = Tagging(tokenizers["electra"], replace(SHORT, tag_scheme=scheme, head=head), ("Gene",))
    examples = adapter.make_examples(sentences, is_training=True)
    hidden = torch.randn(2, 16, 8, generator=torch.Generator().manual_seed(1))
    batch = make_batch(examples, hidden)
    torch.manual_seed(1)
    tagger = adapter.build_head(8)
    optimiser = torch.optim.Adam(tagger.parameters(), 0.05)
    for _ in range(80):
        optimiser.zero_grad()
        adapter.loss(tagger, batch).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    tagger.eval()
    predictions = adapter.merge_predictions(sentences, examples, adapter.predict(tagger, batch))
    assert [list(labels) for labels in predictions] == adapter.gold_labels(sentences)


# Texts


@given(st.integers(0, 40), st.integers(0, 40), st.integers(2, 40))
def test_longer_text_is_truncated_first(first: int, second: int, room: int) -> None:
    first_part, second_part = truncate_pair(list(range(first)), list(range(second)), room)
    assert len(first_part) + len(second_part) == min(room, first + second)
    assert first_part == list(range(len(first_part)))
    assert second_part == list(range(len(second_part)))
    # As Hugging Face's longest_first: the shorter one stays whole as long as it has no more than half.
    if first + second > room:
        assert len(first_part) == first if first <= room // 2 else len(first_part) >= room // 2
        assert len(second_part) == second if second <= room // 2 else len(second_part) >= room // 2


@given(st.integers(1, 60), st.integers(1, 30), st.data())
def test_window_contains_the_entities(size: int, room: int, data: st.DataObject) -> None:
    low = data.draw(st.integers(0, size - 1))
    high = data.draw(st.integers(low + 1, size))
    start = find_window_start(size, room, low, high)
    assert 0 <= start <= max(0, size - room)
    assert start <= low
    if high - low <= room:
        assert high <= start + room
    if high <= room:
        assert start == 0


def make_relation(before: int, between: int, after: int) -> Relation:
    text = f"{'the ' * before}drug {'of ' * between}gene {'is ' * after}".strip()
    first, second = text.index("drug"), text.index("gene")
    return Relation(
        *("r", text, Mention(first, first + 4, "CHEMICAL"), Mention(second, second + 4, "GENE"), "CPR:3")
    )


@pytest.mark.parametrize(("entity_format", "added"), [("markers", 4), ("placeholders", 0), ("original", 0)])
def test_only_markers_are_added_to_the_vocabulary(
    checkpoint_dirs: dict[str, Path], entity_format: str, added: int
) -> None:
    [task] = plan_tasks(["blurb/chemprot"], {"entity_format": entity_format})
    tokenizer = inspect_checkpoint(str(checkpoint_dirs["bert"])).load_tokenizer()
    before = len(tokenizer.hf_tokenizer)
    make_adapter(task, tokenizer, [make_relation(0, 0, 0)])
    assert len(tokenizer.hf_tokenizer) == before + added
    pieces = tokenizer.hf_tokenizer.tokenize("the [E1] drug")
    assert len(pieces) == (3 if added else 6)


@pytest.mark.parametrize("feature", ["mention", "start"])
@pytest.mark.parametrize("entity_format", ["markers", "original", "placeholders"])
@pytest.mark.parametrize("sizes", [(0, 0, 0), (40, 1, 0), (0, 1, 40), (30, 2, 30), (5, 40, 5)])
def test_entity_positions_point_to_the_entities(
    tokenizers: dict[str, ModelTokenizer], feature: Any, entity_format: Any, sizes: Any
) -> None:
    recipe = FineTuneRecipe(max_seq_length=48, relation_feature=feature, entity_format=entity_format)
    labels = ("false", "CPR:3")
    adapter = Classification(tokenizers["bert"], recipe, "single_label", labels)
    [example] = adapter.make_examples([make_relation(*sizes)], is_training=True)
    assert len(example.input_ids) <= 48
    assert example.target == 1
    tokens = tokenizers["bert"].hf_tokenizer.convert_ids_to_tokens(example.input_ids)
    spans = ["".join(tokens[low:high]) for low, high in (example.positions[:2], example.positions[2:])]
    starts = {"original": ("drug", "gene"), "markers": ("[", "["), "placeholders": ("@", "@")}[entity_format]
    inside = {"original": ("drug", "gene"), "markers": ("drug", "gene"), "placeholders": ("chemical", "gene")}
    if sizes != (5, 40, 5):  # its second entity is outside of the window
        for span, start, name in zip(spans, starts, inside[entity_format], strict=True):
            assert name in span.replace("##", "")
            if feature == "start":
                assert span.startswith(start)


def test_class_weights() -> None:
    texts = [LabelledText(str(index), "x", "yes" if index < 3 else "no") for index in range(12)]
    labels = ("yes", "no")
    for setting, classes, expected in (
        ("balanced", labels, [12 / (2 * 3), 12 / (2 * 9)]),
        ("balanced", ("yes", "maybe", "no"), [12 / (2 * 3), 0, 12 / (2 * 9)]),
        ("1,99", labels, [1, 99]),
    ):
        weights = compute_class_weights(setting, classes, texts)
        assert weights is not None
        assert weights.tolist() == pytest.approx(expected)
    assert compute_class_weights("none", labels, texts) is None


class LetterTokenizer(ModelTokenizer):
    """A tokenizer whose tokens are characters."""

    def __init__(self) -> None:
        super().__init__(None, 64)

    def encode_texts(self, texts: Sequence[str]) -> list[tuple[list[int], list[tuple[int, int]]]]:
        return [
            ([ord(letter) for letter in text], [(index, index + 1) for index in range(len(text))])
            for text in texts
        ]

    def _find_special_tokens(self, is_pair: bool) -> SpecialTokens:
        return SpecialTokens([1], [2] if is_pair else [], [2], (0, int(is_pair)))


# Questions


def make_question(context: str, answer: str, group: str = "q", accepted: tuple[str, ...] = ()) -> Question:
    return Question(group, "what?", context, (Answer(answer, context.find(answer)),), group, accepted)


@given(st.integers(0, 80), st.integers(1, 12), st.integers(0, 80), st.integers(1, 40))
@settings(max_examples=examples(150))
def test_windows_cover_the_passage_and_mark_the_answer(
    before: int, size: int, after: int, stride: int
) -> None:
    context = "a" * before + "X" * size + "b" * after
    recipe = FineTuneRecipe(max_seq_length=32, stride=stride)
    adapter = QuestionAnswering(LetterTokenizer(), recipe, is_per_question=False)
    question = make_question(context, "X" * size)
    windows = adapter.make_examples([question], is_training=False)
    assert all(len(window.input_ids) <= 32 for window in windows)
    covered_positions = {start for window in windows for start, end in window.offsets if end}
    assert covered_positions == set(range(len(context)))
    starts = [window.offsets[place][0] for window in windows for place in window.positions]
    assert sorted(starts) == list(range(len(context)))  # each position is scored in one window
    room = 32 - 3 - len("what?")
    training_windows = adapter.make_examples([question], is_training=True)
    assert [window.input_ids for window in training_windows] == [window.input_ids for window in windows]
    if size <= min(room, 1 + room - min(stride, room)):  # the overlap of two windows
        assert any(window.target != (0, 0) for window in training_windows)
    for window in training_windows:
        first, last = window.target
        has_answer = {before, before + size - 1} <= {start for start, end in window.offsets if end}
        answer = context[window.offsets[first][0] : window.offsets[last][1]]
        assert answer == ("X" * size if has_answer else "")


@pytest.mark.parametrize("answer_head", ["independent", "joint"])
def test_head_learns_windows_without_an_answer(
    tokenizers: dict[str, ModelTokenizer], answer_head: Literal["independent", "joint"]
) -> None:
    recipe = FineTuneRecipe(max_seq_length=16, stride=8, answer_head=answer_head)
    adapter = QuestionAnswering(tokenizers["bert"], recipe, is_per_question=False)
    windows = adapter.make_examples(
        [make_question("of the drug in the cells " + "the " * 20, "drug")], is_training=True
    )
    assert {window.target == (0, 0) for window in windows} == {True, False}
    torch.manual_seed(0)
    hidden = torch.eye(16).repeat(len(windows), 1, 1)
    hidden[:, 0, 1] = torch.tensor([window.target == (0, 0) for window in windows])
    batch = make_batch(windows, hidden)
    head: Any = adapter.build_head(16)
    optimiser = torch.optim.SGD(head.parameters(), lr=1.0)
    for _ in range(200):
        loss = adapter.loss(head, batch)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    assert float(loss.detach()) < 0.2
    with_answer = [index for index, window in enumerate(windows) if window.target != (0, 0)]
    predictions = adapter.predict(head, batch)
    for index in with_answer:
        first, last = windows[index].target
        offsets = windows[index].offsets
        assert predictions[index][0][:2] == (offsets[first][0], offsets[last][1])


def test_answer_is_scored_in_the_window_with_most_context() -> None:
    adapter = QuestionAnswering(
        LetterTokenizer(), FineTuneRecipe(max_seq_length=16, stride=4), is_per_question=False
    )
    windows = adapter.make_examples([make_question("abcdefghijkl", "a")], is_training=False)  # of 8 letters
    scored_letters = [
        "".join("abcdefghijkl"[window.offsets[position][0]] for position in window.positions)
        for window in windows
    ]
    assert scored_letters == ["abcdef", "ghijkl"]  # with two letters of context, except at the ends
    logits = torch.zeros(len(windows), 16, 2)
    logits[0, windows[0].offsets.index((7, 8)), 0] = 9.0  # h, at the edge of the first window

    def return_logits(hidden: torch.Tensor, allowed: torch.Tensor) -> torch.Tensor:
        return logits.masked_fill(~allowed[:, :, None], torch.finfo(torch.float32).min)

    head = SpanHead(2)
    with mock.patch.object(head, "forward", return_logits):
        first, second = adapter.predict(head, make_batch(windows, logits))
    assert max(score for _, _, score in [*first, *second]) == 0
    assert {start for start, _, _ in first} <= set(range(6))


def test_leading_space_is_not_part_of_the_answer(tokenizers: dict[str, ModelTokenizer]) -> None:
    for family in ("albert", "roberta"):
        adapter = QuestionAnswering(
            tokenizers[family], FineTuneRecipe(max_seq_length=32), is_per_question=False
        )
        context = "the drug is of cells"
        [window] = adapter.make_examples([make_question(context, "drug")], is_training=True)
        first, last = window.target
        span = (window.offsets[first][0], window.offsets[last][1], 1.0)
        assert question_answering.rank_passage_answers(context, [span]) == [("drug", 1.0)]
    assert question_answering.rank_passage_answers("a b", [(1, 2, 3.0)]) == []


def test_passage_without_the_answer_is_not_used_for_training() -> None:
    adapter = QuestionAnswering(LetterTokenizer(), FineTuneRecipe(max_seq_length=32), is_per_question=False)
    assert adapter.make_examples([make_question("nothing here", "X")], is_training=True) == []


def test_answers_are_merged_over_windows_and_passages() -> None:
    adapter = QuestionAnswering(
        LetterTokenizer(), FineTuneRecipe(max_seq_length=16, stride=4), is_per_question=True
    )
    records = [
        make_question("alpha beta", "alpha", "q1", ("Alpha",)),
        make_question("beta alpha", "alpha", "q1", ("Alpha",)),
        make_question("gamma", "gamma", "q2", ("gamma",)),
    ]
    windows = adapter.make_examples(records, is_training=False)
    spans_by_window: list[list[tuple[int, int, float]]] = [[] for _ in windows]
    first_window = {window.record_index: index for index, window in reversed(list(enumerate(windows)))}
    spans_by_window[first_window[0]] = [(0, 5, 2.0), (6, 10, 2.5)]  # "beta" is the better one here ...
    spans_by_window[first_window[1]] = [(5, 10, 9.0), (0, 4, 0.0)]  # ... and "alpha" by far here
    assert adapter.merge_predictions(records, windows, spans_by_window) == [["alpha", "beta"], []]
    assert adapter.gold_labels(records) == [("Alpha",), ("gamma",)]
    by_passage = replace(adapter, is_per_question=False)
    assert by_passage.merge_predictions(records, windows, spans_by_window) == ["beta", "alpha", ""]
    assert by_passage.gold_labels(records) == [["alpha"], ["alpha"], ["gamma"]]


def test_answer_probabilities_are_a_softmax_over_texts() -> None:
    answers = question_answering.rank_passage_answers("ab ab c", [(0, 2, 1.0), (3, 5, 2.0), (6, 7, 2.0)])
    assert [text for text, _ in answers] == ["ab", "c"]
    assert [probability for _, probability in answers] == pytest.approx([0.5, 0.5])


# Splits


@given(st.lists(st.integers(0, 30), min_size=2, max_size=80), st.integers(1, 60))
def test_samples_and_dev_sets_keep_groups_together(groups: list[int], limit: int) -> None:
    records = [LabelledText(str(index), "x", "0", group_id=f"q{group}") for index, group in enumerate(groups)]
    sample = sample_records(records, limit)
    group_ids = {record.group_id for record in sample}
    assert sample
    assert [
        record for record in sorted(records, key=records.index) if record.group_id in group_ids
    ] == sorted(sample, key=records.index)
    largest = max(groups.count(group) for group in groups)
    assert len(sample) <= max(limit, largest)
    train, dev = split_off_dev(records)
    assert dev
    assert {record.group_id for record in train}.isdisjoint(record.group_id for record in dev)
    assert sorted([*train, *dev], key=records.index) == records
    assert {record.id for record in split_off_dev(records[::-1])[1]} == {record.id for record in dev}
