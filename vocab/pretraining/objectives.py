"""Rows of the pretraining objectives, as the builders of ELECTRA, BERT, ALBERT and plain packing plan them.

Builders never handle token ids.  They see the ``edges`` of a document's sentences: the positions, among the
tokens of many documents, at which each sentence starts, and the end of the last one.  No sentence is empty.
Their random numbers depend on the seed, the pass and the document only, so that the rows of a document are
the same on every runner, in every order and after every restart.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from random import Random
from typing import Final, NamedTuple, Protocol

from bioshards.corpus.shards.pretraining_schema import NO_LABEL
from bioshards.vocab.pretraining.example_recipes import ExampleRecipe


class DocumentEdges(Protocol):
    """Sentence edges of several documents."""

    def __len__(self) -> int: ...

    def __getitem__(self, document: int) -> Sequence[int]: ...


TokenRange = tuple[int, int]
"""Start and end position of tokens."""

CLS_RANGE: Final[TokenRange] = (0, 1)
SEP_RANGE: Final[TokenRange] = (1, 2)
"""[CLS] and [SEP] are the first two tokens, before those of any document."""
NUM_PAIR_SPECIALS: Final = 3
"""Number of special tokens of a row with two segments."""


class ExampleRow(NamedTuple):
    """A row.

    Attributes:
        segment_a: token ranges of segment A.
        segment_b: token ranges of segment B; empty in a row of one segment.
        document: document with which the row begins.
        label: as in ``pretraining_schema.make_schema``.
        lost_tokens: tokens of the document that belonged to this row and are in none.
        other_document_tokens: tokens of another document.
    """

    segment_a: list[TokenRange]
    segment_b: list[TokenRange]
    document: int
    label: int = 0
    lost_tokens: int = 0
    other_document_tokens: int = 0


def count_tokens(ranges: Sequence[TokenRange]) -> int:
    """Return the number of tokens in ranges."""
    return sum(stop - start for start, stop in ranges)


class DocumentRng(Random):
    """Random numbers that are reseeded for each document.

    ``random()`` of the Mersenne Twister is the same in every version of Python.  ``randint()`` of the
    standard library is not, so it is derived from ``random()`` here.
    """

    def reseed(self, key: int) -> DocumentRng:
        """Restart with a key of :func:`derive_document_key`, and return this object."""
        super(Random, self).seed(key)  # of the C class: Random.seed() inspects the type of every key before
        return self

    def randint(self, a: int, b: int) -> int:
        return a + int(self.random() * (b - a + 1))


def derive_document_key(seed: int, pass_number: int, document_id: str) -> int:
    """Return 64 bits for one pass over one document."""
    digest = _hash_pass(seed, pass_number).copy()
    digest.update(document_id.encode())
    return int.from_bytes(digest.digest())


@lru_cache(maxsize=1)
def _hash_pass(seed: int, pass_number: int) -> hashlib.blake2b:
    """Return the hash of what the documents of a pass have in common; a copy is cheaper than a new hash."""
    return hashlib.blake2b(f"{seed} {pass_number} ".encode(), digest_size=8)


_MIN_ELECTRA_LENGTH: Final = 5
"""Lowest target length of a short row."""
_TO_SEGMENT_A_PROB: Final = 0.5
"""Probability that a sentence which crosses the middle of the row goes to segment A."""
_UNBOUNDED: Final = 100_000


def build_electra_rows(
    document: int, document_edges: DocumentEdges, rng: Random, recipe: ExampleRecipe
) -> Iterator[ExampleRow]:
    """Yield the rows of ELECTRA: two segments of one document, sometimes short or of one segment.

    The rules and the order of random draws are those of ``ExampleBuilder`` in build_pretraining_dataset.py of
    google-research/electra (commit 8a46635), with one difference.  There the target length of a row is drawn
    when the previous row is complete, even if that is of another document; here each document draws its own.

    Sentences are collected until they reach the target length.  Tokens that do not fit into the row are
    lost, or start the next row with ``recipe.keep_overflow``.
    """
    edges = document_edges[document]
    target_length = _draw_target_length(rng, recipe)
    pending: list[TokenRange] = []
    num_pending_tokens = 0
    for sentence in pairwise(edges):
        pending.append(sentence)
        num_pending_tokens += sentence[1] - sentence[0]
        is_last = sentence[1] == edges[-1]
        while num_pending_tokens >= target_length or (is_last and num_pending_tokens):
            row, pending = _build_electra_row(document, pending, target_length, rng, recipe)
            num_pending_tokens = count_tokens(pending)
            yield row
            target_length = _draw_target_length(rng, recipe)


def _draw_target_length(rng: Random, recipe: ExampleRecipe) -> int:
    if rng.random() < recipe.short_seq_prob:
        return rng.randint(_MIN_ELECTRA_LENGTH, recipe.max_seq_length)
    return recipe.max_seq_length


def _build_electra_row(
    document: int, pending: list[TokenRange], target_length: int, rng: Random, recipe: ExampleRecipe
) -> tuple[ExampleRow, list[TokenRange]]:
    """Return a row of the pending sentences, and the sentences that remain pending."""
    segment_a_target = (
        _UNBOUNDED if rng.random() < recipe.single_segment_prob else (target_length - NUM_PAIR_SPECIALS) // 2
    )
    segment_a: list[TokenRange] = []
    segment_b: list[TokenRange] = []
    num_tokens_a = num_tokens_b = 0
    for start, stop in pending:
        size = stop - start
        if (
            not num_tokens_a
            or num_tokens_a + size < segment_a_target
            or (not num_tokens_b and num_tokens_a < segment_a_target and rng.random() < _TO_SEGMENT_A_PROB)
        ):
            segment = segment_a
            num_tokens_a += size
        else:
            segment = segment_b
            num_tokens_b += size
        if segment and segment[-1][1] == start:  # the sentence follows the previous one
            segment[-1] = (segment[-1][0], stop)
        else:
            segment.append((start, stop))
    overflow: list[TokenRange] = []
    if num_tokens_a + num_tokens_b > recipe.max_seq_length - NUM_PAIR_SPECIALS:
        segment_a, overflow = _split_ranges(segment_a, recipe.max_seq_length - 2)
        segment_b, overflow_b = _split_ranges(
            segment_b, max(0, recipe.max_seq_length - NUM_PAIR_SPECIALS - count_tokens(segment_a))
        )
        overflow += overflow_b
    if recipe.keep_overflow:
        return ExampleRow(segment_a, segment_b, document), overflow
    return ExampleRow(segment_a, segment_b, document, lost_tokens=count_tokens(overflow)), []


def _split_ranges(ranges: list[TokenRange], max_tokens: int) -> tuple[list[TokenRange], list[TokenRange]]:
    """Split ranges after ``max_tokens`` tokens."""
    taken: list[TokenRange] = []
    overflow: list[TokenRange] = []
    for start, stop in ranges:
        cut = min(stop, start + max_tokens)
        max_tokens -= cut - start
        if cut > start:
            taken.append((start, cut))
        if cut < stop:
            overflow.append((cut, stop))
    return taken, overflow


_MIN_PAIR_LENGTH: Final = 2
_MAX_DRAWS: Final = 10
_RANDOM_NEXT_PROB: Final = 0.5
_SWAP_PROB: Final = 0.5
IN_ORDER: Final = 0
NOT_IN_ORDER: Final = 1


def build_pair_rows(
    document: int, document_edges: DocumentEdges, rng: Random, recipe: ExampleRecipe
) -> Iterator[ExampleRow]:
    """Yield the rows of BERT and ALBERT: pairs for next-sentence and sentence-order prediction.

    The rules and the order of random draws are those of ``create_instances_from_document`` in
    create_pretraining_data.py of google-research/bert (commit eedf571) and google-research/albert (b772393).
    The text of a document is used once per pass, in order.  The second segment of a random pair is of another
    document, and the sentences that it replaces are used for the next row.

    Two differences: the second segment of a random pair is never of the same document (the reference allows
    it after ten draws).  And a chunk of one sentence, of which nothing can be swapped, becomes an ALBERT row
    of one segment without a label.  The reference pairs it with the text of a random document, labelled as
    swapped (albert's issue 234); ``as_published`` reproduces this.

    Args:
        document_edges: sentence edges of all documents from which second segments may be drawn.
    """
    random, randint = rng.random, rng.randint
    edges: Sequence[int] = list(document_edges[document])  # an array would make its integers at each access
    sentences = len(edges) - 1
    num_documents = len(document_edges)
    is_bert = recipe.objective == "bert" and num_documents > 1
    should_pair_single_sentence = is_bert or (recipe.as_published and num_documents > 1)
    should_swap = recipe.objective == "albert"
    max_tokens = recipe.max_seq_length - NUM_PAIR_SPECIALS
    target_length = max_tokens
    if random() < recipe.short_seq_prob:
        target_length = randint(_MIN_PAIR_LENGTH, target_length)
    start = 0
    while start < sentences:
        start_a = edges[start]
        end = bisect_left(edges, start_a + target_length, start + 1, sentences)
        is_single_sentence = end - start == 1
        if is_single_sentence and not should_pair_single_sentence:
            sentence, no_sentence = (start_a, edges[end]), (edges[end], edges[end])
            truncated_a, _ = _truncate_pair(sentence, no_sentence, max_tokens + 1, random)
            lost_tokens = count_tokens([sentence]) - count_tokens([truncated_a])
            yield ExampleRow([truncated_a], [], document, NO_LABEL, lost_tokens)
            start = end
            continue
        middle = end if is_single_sentence else start + randint(1, end - start - 1)
        start_b = edges[middle]
        segment_a, segment_b = (start_a, start_b), (start_b, edges[end])
        next_document, label = document, IN_ORDER
        if is_single_sentence or (is_bert and random() < _RANDOM_NEXT_PROB):
            next_document = _draw_other_document(document, num_documents, randint)
            segment_b = _draw_segment(
                document_edges[next_document], target_length - (start_b - start_a), randint
            )
            label = NOT_IN_ORDER
            end = middle
        elif should_swap and random() < _SWAP_PROB:
            segment_a, segment_b = segment_b, segment_a
            label = NOT_IN_ORDER
        truncated_a, truncated_b = _truncate_pair(segment_a, segment_b, max_tokens, random)
        size_a, size_b = truncated_a[1] - truncated_a[0], truncated_b[1] - truncated_b[0]
        lost_tokens = segment_a[1] - segment_a[0] - size_a
        other_document_tokens = 0
        if next_document == document:
            lost_tokens += segment_b[1] - segment_b[0] - size_b
        else:
            other_document_tokens = size_b
        yield ExampleRow([truncated_a], [truncated_b], document, label, lost_tokens, other_document_tokens)
        start = end


def _draw_other_document(document: int, num_documents: int, randint: Callable[[int, int], int]) -> int:
    """Return a random document other than this one."""
    for _ in range(_MAX_DRAWS):
        other = randint(0, num_documents - 1)
        if other != document:
            return other
    return (document + 1) % num_documents


def _draw_segment(edges: Sequence[int], size: int, randint: Callable[[int, int], int]) -> TokenRange:
    """Return sentences from a random one on, until they reach the size or the document ends."""
    last = len(edges) - 1
    start = randint(0, last - 1)
    start_token = edges[start]
    return start_token, edges[bisect_left(edges, start_token + size, start + 1, last)]


def _truncate_pair(
    segment_a: TokenRange, segment_b: TokenRange, max_tokens: int, random: Callable[[], float]
) -> tuple[TokenRange, TokenRange]:
    """Remove tokens from a random end of the longer segment, B if both are equally long, until both fit."""
    (start_a, end_a), (start_b, end_b) = segment_a, segment_b
    size_a, size_b = end_a - start_a, end_b - start_b
    if size_a + size_b <= max_tokens:
        return segment_a, segment_b
    are_from_front = [random() < 0.5 for _ in range(size_a + size_b - max_tokens)]
    # the longer one alone until both are equally long, then B and A in turns
    num_alone = abs(size_a - size_b)
    from_a, from_b = are_from_front[num_alone + 1 :: 2], are_from_front[num_alone::2]
    if size_a > size_b:
        from_a += are_from_front[:num_alone]
    else:
        from_b += are_from_front[:num_alone]
    start_a += sum(from_a)
    start_b += sum(from_b)
    return (start_a, start_a + size_a - len(from_a)), (start_b, start_b + size_b - len(from_b))


_NUM_END_TOKENS: Final = 2
"""[CLS] and the last [SEP]."""
_MIN_FREE_TOKENS: Final = 2
"""Minimum room for another document: its [SEP] and one token."""


def pack_documents(
    order: Iterable[int], document_edges: DocumentEdges, recipe: ExampleRecipe
) -> Iterator[ExampleRow]:
    """Yield the rows of documents in this order, joined by [SEP] and cut where a row is full.

    No token is lost, and only the last row is short.  This is the format for masked language modelling
    without a pair objective: RoBERTa's FULL-SENTENCES (Liu et al. 2019), which cuts at sentences; here rows
    are full.  A row with room for one more token after the end of a document stays one token short, because a
    [SEP] would fill it.

    Args:
        order: numbers of the documents, each with a token or more.
    """
    max_tokens = recipe.max_seq_length - _NUM_END_TOKENS
    ranges: list[TokenRange] = []
    first_document = num_tokens = 0
    for document in order:
        edges = document_edges[document]
        start, end = edges[0], edges[-1]
        while start < end:
            if num_tokens and max_tokens - num_tokens < _MIN_FREE_TOKENS:
                yield ExampleRow(ranges, [], first_document)
                ranges, num_tokens = [], 0
            if not num_tokens:
                first_document = document
            else:
                ranges.append(SEP_RANGE)
                num_tokens += 1
            token_range = (start, min(end, start + max_tokens - num_tokens))
            ranges.append(token_range)
            num_tokens += token_range[1] - start
            start = token_range[1]
    if ranges:
        yield ExampleRow(ranges, [], first_document)


BUILDERS: Final = {"electra": build_electra_rows, "bert": build_pair_rows, "albert": build_pair_rows}
"""Builders by objective, of those whose rows begin with one document each; ``plain`` packs all documents."""


def build_rows(
    document_edges: DocumentEdges, document_keys: Sequence[int], recipe: ExampleRecipe
) -> Iterator[ExampleRow]:
    """Yield the rows of one pass over documents, given the edges and the key of each document.

    The rows that start with one document follow one another.
    """
    if recipe.objective == "plain":
        order = sorted(range(len(document_keys)), key=document_keys.__getitem__)
        yield from pack_documents(order, document_edges, recipe)
        return
    build_document_rows, rng = BUILDERS[recipe.objective], DocumentRng()
    for document, document_key in enumerate(document_keys):
        yield from build_document_rows(document, document_edges, rng.reseed(document_key), recipe)
