"""From records to what a model reads, and back: nothing is lost, whatever a model can read at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.evaluate.benchmarks import subsets
from bioshards.evaluate.benchmarks.record_types import (
    Answer,
    LabelledText,
    Mention,
    Question,
    Relation,
    TaggedSentence,
)
from bioshards.evaluate.config.fine_tune_recipe import FineTuneRecipe
from bioshards.evaluate.modeling import batches, pretrained
from bioshards.evaluate.modeling.batches import EncoderOutput, TokenizedExample
from bioshards.evaluate.modeling.tokenization import ModelError, ModelTokenizer
from bioshards.evaluate.tasks import question_answering
from bioshards.evaluate.tasks.classification import Classification, find_window_start, truncate_pair
from bioshards.evaluate.tasks.question_answering import QuestionAnswering
from bioshards.evaluate.tasks.token_classification import TokenClassification, find_entity_types
from tests.support.evaluate.tiny_checkpoints import Family, save_tiny_checkpoint

FAMILIES: tuple[Family, ...] = ("bert", "electra", "albert", "roberta")
SHORT = FineTuneRecipe(max_seq_length=16)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    return {family: save_tiny_checkpoint(folder / family, family) for family in FAMILIES}


@pytest.fixture(scope="module")
def tokens(folders: dict[str, Path]) -> dict[str, ModelTokenizer]:
    return {
        family: pretrained.inspect_checkpoint(str(folder)).load_tokenizer()
        for family, folder in folders.items()
    }


# Tokens


@pytest.mark.parametrize("family", FAMILIES)
def test_an_input_is_what_the_tokenizer_itself_would_make(
    tokens: dict[str, ModelTokenizer], family: str
) -> None:
    ours, theirs = tokens[family], tokens[family].hf_tokenizer
    for texts in (("the protein",), ("is it a drug?", "no, the drug is in cells")):
        pieces = [ids for ids, _ in ours.encode_texts(texts)]
        read = ours.build_input(*pieces)
        whole = theirs(*texts, return_token_type_ids=True)
        assert read.input_ids == whole["input_ids"]
        assert read.token_type_ids == whole["token_type_ids"]
        assert read.input_ids[read.first_start : read.first_start + len(pieces[0])] == pieces[0]
        if len(texts) == 2:
            assert read.input_ids[read.second_start : read.second_start + len(pieces[1])] == pieces[1]
        assert len(read.input_ids) == sum(map(len, pieces)) + ours.count_special_tokens(
            is_pair=len(texts) == 2
        )


@pytest.mark.parametrize("family", FAMILIES)
def test_every_word_has_a_piece(tokens: dict[str, ModelTokenizer], family: str) -> None:
    words = ("the", "\u200b", "α", "x" * 300, "\x00", "é", "of")
    [found] = tokens[family].encode_words([words])
    assert len(found) == len(words)
    assert all(found)


@pytest.mark.parametrize("family", FAMILIES)
def test_words_are_read_as_in_a_text(tokens: dict[str, ModelTokenizer], family: str) -> None:
    ours = tokens[family]
    words = ("the", "gene", ",", "(x)", "drug", "é")
    [found], [(ids, _)] = ours.encode_words([words]), ours.encode_texts([" ".join(words)])
    assert [piece for pieces in found for piece in pieces] == ids
    second = "".join(ours.hf_tokenizer.convert_ids_to_tokens(found[1]))
    assert second == {"albert": "▁gene", "roberta": "Ġgene"}.get(family, "gene")


def test_places_are_those_of_the_text(tokens: dict[str, ModelTokenizer]) -> None:
    text = "The  drug, é of cells"
    [(ids, offsets)] = tokens["bert"].encode_texts([text])
    assert len(ids) == len(offsets)
    assert [text[start:end] for start, end in offsets] == ["The", "drug", ",", "é", "of", "cells"]


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="there is no folder"):
        pretrained.inspect_checkpoint(str(tmp_path / "nowhere"))
    with pytest.raises(ModelError, match=r"holds no config\.json"):
        pretrained.inspect_checkpoint(str(tmp_path))
    run = tmp_path / "run"
    save_tiny_checkpoint(run / "step-0000001" / "hf")
    with pytest.raises(ModelError, match=r"step-0000001/hf is meant\?"):
        pretrained.inspect_checkpoint(str(run))
    found = pretrained.inspect_checkpoint(str(run / "step-0000001" / "hf"))
    assert found.name == "run/step-0000001"
    (run / "step-0000001" / "hf" / "tokenizer.json").write_text("{")
    with pytest.raises(ModelError, match="no usable tokenizer"):
        pretrained.inspect_checkpoint(str(run / "step-0000001" / "hf"))
    (run / "step-0000001" / "hf" / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="holds no weights"):
        pretrained.inspect_checkpoint(str(run / "step-0000001" / "hf"))


def test_tags_of_entities_begin_as_vectors_of_their_own(folders: dict[str, Path]) -> None:
    look = pretrained.inspect_checkpoint(str(folders["bert"]))
    torch.manual_seed(0)
    vectors = (
        pretrained.load_encoder(look, len(look.load_tokenizer().hf_tokenizer) + 4)
        .model.get_input_embeddings()
        .weight
    )
    assert torch.corrcoef(vectors[-4:]).fill_diagonal_(0).abs().max() < 0.95
    assert 0.5 < vectors[-4:].std() / vectors[:-4].std() < 2


def test_a_checkpoint_that_lacks_a_layer_is_refused(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = save_tiny_checkpoint(tmp_path / "m", "bert")
    weights = load_file(folder / "model.safetensors")
    cut = {name: one for name, one in weights.items() if "layer.0.attention" not in name}
    save_file(cut, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(ModelError, match="which would be random"):
        pretrained.load_encoder(pretrained.inspect_checkpoint(str(folder)))


def test_a_pooler_is_used_if_it_was_trained(folders: dict[str, Path]) -> None:
    for family, has_one in (("bert", True), ("electra", False)):
        model = pretrained.load_encoder(pretrained.inspect_checkpoint(str(folders[family]))).eval()
        one = TokenizedExample(0, [2, 7, 8, 3], [0, 0, 0, 0])
        found = model(batches.collate([one], 0, torch.device("cpu")))
        assert torch.equal(found.pooled, found.hidden[:, 0]) is not has_one


# Tags

WORD = st.sampled_from(["the", "gene", "p53", "BRCA1-related", "x", "(", "\u200b", "immunohistochemistry"])
TAG = st.sampled_from(["O", "B-Gene", "I-Gene", "B-Cell"])


def _sentence(tagged: Sequence[tuple[str, str]]) -> TaggedSentence:
    return TaggedSentence("1", tuple(word for word, _ in tagged), tuple(tag for _, tag in tagged))


@given(st.lists(st.lists(st.tuples(WORD, TAG), min_size=1, max_size=25), min_size=1, max_size=3))
@settings(max_examples=60, deadline=None)
def test_no_word_is_left_out_however_short_the_input(tokens: dict[str, ModelTokenizer], written: Any) -> None:
    sentences = [_sentence(one) for one in written]
    problem = TokenClassification(tokens["electra"], SHORT, find_entity_types(sentences))
    found = problem.make_examples(sentences, is_training=True)
    assert all(len(one.input_ids) <= SHORT.max_seq_length for one in found)
    read = [(one.record_index, one.first_word + at) for one in found for at in range(len(one.positions))]
    assert read == [(record, at) for record, one in enumerate(sentences) for at in range(len(one.words))]
    for one in found:
        assert [one.input_ids[place] for place in one.positions] == [
            tokens["electra"].encode_words([[sentences[one.record_index].words[one.first_word + at]]])[0][0][
                0
            ]
            for at in range(len(one.positions))
        ]
    perfect = [[problem.labels[number] for number in one.target] for one in found]
    again = problem.merge_predictions(sentences, found, perfect)
    from bioshards.evaluate.metrics.tag_schemes import extract_spans

    assert [extract_spans(one) for one in again] == [extract_spans(one.tags) for one in sentences]


@pytest.mark.parametrize("scheme", ["BIO", "BIOUL", "IO"])
@pytest.mark.parametrize("head", ["linear", "bilstm", "crf", "bilstm-crf"])
def test_a_tagger_of_each_kind_learns_from_a_batch(
    tokens: dict[str, ModelTokenizer], scheme: Any, head: Any
) -> None:
    sentences = [
        _sentence([("the", "O"), ("gene", "B-Gene"), ("p53", "I-Gene")]),
        _sentence([("x", "B-Gene")]),
    ]
    problem = TokenClassification(tokens["electra"], replace(SHORT, tag_scheme=scheme, head=head), ("Gene",))
    read = problem.make_examples(sentences, is_training=True)
    batch = batches.collate(read, 0, torch.device("cpu"))
    hidden = torch.randn(*batch.input_ids.shape, 8, generator=torch.Generator().manual_seed(1))
    torch.manual_seed(1)
    tagger = problem.build_head(8)
    encoded = EncoderOutput(hidden, hidden[:, 0])
    optimiser = torch.optim.Adam(tagger.parameters(), 0.05)
    for _ in range(80):
        optimiser.zero_grad()
        problem.loss(tagger, encoded, batch).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    tagger.eval()
    found = problem.merge_predictions(sentences, read, problem.predict(tagger, encoded, batch))
    assert [list(one) for one in found] == problem.gold_labels(sentences)


# Texts


@given(st.integers(0, 40), st.integers(0, 40), st.integers(2, 40))
def test_the_longer_text_is_cut_first(first: int, second: int, room: int) -> None:
    one, other = truncate_pair(list(range(first)), list(range(second)), room)
    assert len(one) + len(other) == min(room, first + second)
    assert one == list(range(len(one)))
    assert other == list(range(len(other)))
    # As Hugging Face's longest_first: the shorter one stays whole as long as it has no more than half.
    if first + second > room:
        assert len(one) == first if first <= room // 2 else len(one) >= room // 2
        assert len(other) == second if second <= room // 2 else len(other) >= room // 2


@given(st.integers(1, 60), st.integers(1, 30), st.data())
def test_a_window_has_the_entities_in_it(size: int, room: int, data: st.DataObject) -> None:
    low = data.draw(st.integers(0, size - 1))
    high = data.draw(st.integers(low + 1, size))
    begin = find_window_start(size, room, low, high)
    assert 0 <= begin <= max(0, size - room)
    assert begin <= low
    if high - low <= room:
        assert high <= begin + room
    if high <= room:
        assert begin == 0


def _relation(before: int, between: int, after: int) -> Relation:
    text = f"{'the ' * before}drug {'of ' * between}gene {'is ' * after}".strip()
    first, second = text.index("drug"), text.index("gene")
    return Relation(
        *("r", text, Mention(first, first + 4, "CHEMICAL"), Mention(second, second + 4, "GENE"), "CPR:3")
    )


@pytest.mark.parametrize("feature", ["mention", "start"])
@pytest.mark.parametrize("entities", ["markers", "original", "placeholders"])
@pytest.mark.parametrize("sizes", [(0, 0, 0), (40, 1, 0), (0, 1, 40), (30, 2, 30), (5, 40, 5)])
def test_entities_are_where_they_are_said_to_be(
    tokens: dict[str, ModelTokenizer], feature: Any, entities: Any, sizes: Any
) -> None:
    recipe = FineTuneRecipe(max_seq_length=48, relation_feature=feature, entity_format=entities)
    labels = ("false", "CPR:3")
    problem = Classification(tokens["bert"], recipe, "single_label", labels)
    [one] = problem.make_examples([_relation(*sizes)], is_training=True)
    assert len(one.input_ids) <= 48
    assert one.target == 1
    read = tokens["bert"].hf_tokenizer.convert_ids_to_tokens(one.input_ids)
    spans = ["".join(read[low:high]) for low, high in (one.positions[:2], one.positions[2:])]
    starts = {"original": ("drug", "gene"), "markers": ("[", "["), "placeholders": ("@", "@")}[entities]
    inside = {"original": ("drug", "gene"), "markers": ("drug", "gene"), "placeholders": ("chemical", "gene")}
    if sizes != (5, 40, 5):  # there the second entity is farther away than what is read
        for span, start, name in zip(spans, starts, inside[entities], strict=True):
            assert name in span.replace("##", "")
            if feature == "start":
                assert span.startswith(start)


def test_class_weights() -> None:
    texts = [LabelledText(str(at), "x", "yes" if at < 3 else "no") for at in range(12)]
    tokens = _Letters()
    balanced = Classification(tokens, FineTuneRecipe(class_weights="balanced"), "single_label", ("yes", "no"))
    balanced.make_examples(texts, is_training=True)
    assert balanced.class_weights is not None
    assert balanced.class_weights.tolist() == pytest.approx([12 / (2 * 3), 12 / (2 * 9)])
    given_ = Classification(tokens, FineTuneRecipe(class_weights="1,99"), "ranking", ("yes", "no"))
    given_.make_examples(texts, is_training=True)
    assert given_.class_weights is not None
    assert given_.class_weights.tolist() == [1, 99]
    with pytest.raises(ValueError, match="has 3 numbers, and there are 2 classes: yes, no"):
        Classification(
            tokens, FineTuneRecipe(class_weights="1,2,3"), "single_label", ("yes", "no")
        ).make_examples(texts, is_training=True)
    with pytest.raises(ValueError, match="not none, balanced"):
        FineTuneRecipe(class_weights="1,x")


class _Letters(ModelTokenizer):
    """A tokenizer of letters, without a library."""

    def __init__(self) -> None:
        super().__init__(None, 64)

    def encode_texts(self, texts: Sequence[str]) -> list[tuple[list[int], list[tuple[int, int]]]]:
        return [([ord(one) for one in text], [(at, at + 1) for at in range(len(text))]) for text in texts]

    def _find_special_tokens(self, is_pair: bool) -> tuple[list[int], list[int], list[int], list[int]]:
        return [1], [2] if is_pair else [], [2], [0, 1 if is_pair else 0]


# Questions


def _question(context: str, answer: str, group: str = "q", accepted: tuple[str, ...] = ()) -> Question:
    return Question(group, "what?", context, (Answer(answer, context.find(answer)),), group, accepted)


@given(st.integers(0, 80), st.integers(1, 12), st.integers(0, 80), st.integers(1, 40))
@settings(max_examples=150, deadline=None)
def test_windows_cover_a_passage_and_learn_where_the_answer_is_and_where_not(
    before: int, size: int, after: int, stride: int
) -> None:
    context = "a" * before + "X" * size + "b" * after
    recipe = FineTuneRecipe(max_seq_length=32, stride=stride)
    problem = QuestionAnswering(_Letters(), recipe, is_per_question=False)
    one = _question(context, "X" * size)
    read = problem.make_examples([one], is_training=False)
    assert all(len(part.input_ids) <= 32 for part in read)
    covered = {at for part in read for at, end in part.offsets if end}
    assert covered == set(range(len(context)))
    starts = [part.offsets[place][0] for part in read for place in part.positions]
    assert sorted(starts) == list(range(len(context)))  # an answer is looked for in one window alone
    room = 32 - 3 - len("what?")
    learned = problem.make_examples([one], is_training=True)
    assert [part.input_ids for part in learned] == [part.input_ids for part in read]
    if size <= min(room, 1 + room - min(stride, room)):  # two windows share so much
        assert any(part.target != (0, 0) for part in learned)
    for part in learned:
        first, last = part.target
        whole = {before, before + size - 1} <= {at for at, end in part.offsets if end}
        said = context[part.offsets[first][0] : part.offsets[last][1]]
        assert said == ("X" * size if whole else "")


def test_that_a_window_has_no_answer_can_be_learned(tokens: dict[str, ModelTokenizer]) -> None:
    problem = QuestionAnswering(
        tokens["bert"], FineTuneRecipe(max_seq_length=16, stride=8), is_per_question=False
    )
    windows = problem.make_examples(
        [_question("of the drug in the cells " + "the " * 20, "drug")], is_training=True
    )
    assert {part.target == (0, 0) for part in windows} == {True, False}
    batch = batches.collate(windows, 0, torch.device("cpu"))
    torch.manual_seed(0)
    hidden = torch.eye(16).repeat(len(windows), 1, 1)
    hidden[:, 0, 1] = torch.tensor([part.target == (0, 0) for part in windows])
    head: Any = problem.build_head(16)
    optimiser = torch.optim.SGD(head.parameters(), lr=1.0)
    for _ in range(200):
        loss = problem.loss(head, EncoderOutput(hidden, hidden[:, 0]), batch)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    assert float(loss.detach()) < 0.2


def test_an_answer_is_taken_from_the_window_that_shows_most_around_it() -> None:
    problem = QuestionAnswering(
        _Letters(), FineTuneRecipe(max_seq_length=16, stride=4), is_per_question=False
    )
    windows = problem.make_examples([_question("abcdefghijkl", "a")], is_training=False)  # of eight letters
    seen = [["abcdefghijkl"[part.offsets[at][0]] for at in part.positions] for part in windows]
    assert seen == [list("abcdef"), list("ghijkl")]  # at least two letters on either side, but at the ends
    batch = batches.collate(windows, 0, torch.device("cpu"))
    flat = torch.zeros(*batch.input_ids.shape, 2)
    flat[0, windows[0].offsets.index((7, 8)), 0] = 9.0  # h, at the edge of the first window

    def head(hidden: torch.Tensor, allowed: torch.Tensor) -> torch.Tensor:
        return flat.masked_fill(~allowed[:, :, None], torch.finfo(torch.float32).min)

    first, second = problem.predict(head, EncoderOutput(flat, flat[:, 0]), batch)
    assert max(score for _, _, score in [*first, *second]) == 0
    assert {start for start, _, _ in first} <= set(range(6))


def test_a_blank_before_a_word_is_not_of_the_answer(tokens: dict[str, ModelTokenizer]) -> None:
    for family in ("albert", "roberta"):
        problem = QuestionAnswering(tokens[family], FineTuneRecipe(max_seq_length=32), is_per_question=False)
        context = "the drug is of cells"
        [window] = problem.make_examples([_question(context, "drug")], is_training=True)
        first, last = window.target
        span = (window.offsets[first][0], window.offsets[last][1], 1.0)
        assert question_answering.rank_passage_answers(context, [span]) == [("drug", 1.0)]
    assert question_answering.rank_passage_answers("a b", [(1, 2, 3.0)]) == []


def test_an_answer_that_is_not_in_the_passage_is_not_learned() -> None:
    problem = QuestionAnswering(_Letters(), FineTuneRecipe(max_seq_length=32), is_per_question=False)
    assert problem.make_examples([_question("nothing here", "X")], is_training=True) == []


def test_the_best_answer_of_all_windows_and_of_all_passages() -> None:
    problem = QuestionAnswering(_Letters(), FineTuneRecipe(max_seq_length=16, stride=4), is_per_question=True)
    records = [
        _question("alpha beta", "alpha", "q1", ("Alpha",)),
        _question("beta alpha", "alpha", "q1", ("Alpha",)),
        _question("gamma", "gamma", "q2", ("gamma",)),
    ]
    read = problem.make_examples(records, is_training=False)
    found: list[list[tuple[int, int, float]]] = [[] for _ in read]
    first = {one.record_index: at for at, one in reversed(list(enumerate(read)))}
    found[first[0]] = [(0, 5, 2.0), (6, 10, 2.5)]  # "beta" is the better one here ...
    found[first[1]] = [(5, 10, 9.0), (0, 4, 0.0)]  # ... and "alpha" by far here
    assert problem.merge_predictions(records, read, found) == [["alpha", "beta"], []]
    assert problem.gold_labels(records) == [("Alpha",), ("gamma",)]
    by_passage = replace(problem, is_per_question=False)
    assert by_passage.merge_predictions(records, read, found) == ["beta", "alpha", ""]
    assert by_passage.gold_labels(records) == [["alpha"], ["alpha"], ["gamma"]]


def test_probabilities_of_a_passage_are_a_softmax_over_its_texts() -> None:
    found = question_answering.rank_passage_answers("ab ab c", [(0, 2, 1.0), (3, 5, 2.0), (6, 7, 2.0)])
    assert [text for text, _ in found] == ["ab", "c"]
    assert [share for _, share in found] == pytest.approx([0.5, 0.5])


# Splits


@given(st.lists(st.integers(0, 30), min_size=2, max_size=80), st.integers(1, 60))
def test_a_sample_and_a_dev_set_keep_questions_whole(groups: list[int], most: int) -> None:
    records = [LabelledText(str(at), "x", "0", group_id=f"q{group}") for at, group in enumerate(groups)]
    chosen = subsets.sample_records(records, most)
    names = {one.group_id for one in chosen}
    assert chosen
    assert [one for one in sorted(records, key=records.index) if one.group_id in names] == sorted(
        chosen, key=records.index
    )
    largest = max(groups.count(group) for group in groups)
    assert len(chosen) <= max(most, largest)
    train, dev = subsets.split_off_dev(records)
    assert dev
    assert {one.group_id for one in train}.isdisjoint(one.group_id for one in dev)
    assert sorted([*train, *dev], key=records.index) == records
    assert {one.id for one in subsets.split_off_dev(records[::-1])[1]} == {one.id for one in dev}
