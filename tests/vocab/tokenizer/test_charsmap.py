"""Rules of a SentencePiece normaliser: damage is found before a text meets it."""

from __future__ import annotations

import base64
import json
import random
import struct
import sys
from pathlib import Path
from typing import Any

import pytest
from tokenizers.normalizers import Precompiled

from bioshards.corpus.errors import FAILED, InvalidValueError
from bioshards.corpus.ui.command_line import CommandResult, run_command
from bioshards.vocab.encode import Encoder
from bioshards.vocab.tokenizer.charsmap import find_charsmap_damage, has_rule_of
from bioshards.vocab.tokenizer.hugging_face import make_unigram_tokenizer
from bioshards.vocab.tokenizer.pretokenizer import Casing
from bioshards.vocab.tokenizer.published_vocabulary import load_published_vocabulary
from bioshards.vocab.tokenizer.sentencepiece_model import parse_model
from tests.support.vocab.published_files import make_spiece_model

ALL_CHARACTERS = "x".join(chr(code) for code in range(1, sys.maxunicode // 17) if not 0xD800 <= code < 0xE000)


@pytest.fixture(scope="module")
def charsmap() -> bytes:
    return parse_model(make_spiece_model()).charsmap


def test_rules_of_sentencepiece_are_sound(charsmap: bytes) -> None:
    assert find_charsmap_damage(charsmap) is None
    assert not has_rule_of(charsmap, " ")
    assert has_rule_of(charsmap, "\t")
    assert Precompiled(charsmap).normalize_str("\t") == " "


@pytest.mark.parametrize("seed", range(8))
def test_damaged_rules_are_found_or_can_be_applied(
    charsmap: bytes, seed: int, capfd: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(seed)
    damaged = bytearray(charsmap)
    for _ in range(rng.choice([1, 3, 30])):
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    if find_charsmap_damage(bytes(damaged)) is None:
        Precompiled(bytes(damaged)).normalize_str(ALL_CHARACTERS)
        assert "panicked" not in capfd.readouterr().err


def _set_unit(charsmap: bytes, position: int, unit: int) -> bytes:
    return charsmap[: 4 + 4 * position] + struct.pack("<I", unit) + charsmap[8 + 4 * position :]


def test_place_outside_of_the_rules_is_found(charsmap: bytes) -> None:
    damage = find_charsmap_damage(_set_unit(charsmap, 0, 1023 << 18))
    assert damage == "unit 0 has children at 261888 of 44800 units"
    [trie_size] = struct.unpack_from("<I", charsmap)
    damage = find_charsmap_damage(charsmap[: 4 + trie_size + 16])
    assert damage is not None
    assert damage.endswith(" of 16")


def test_rules_that_are_cut_are_found(charsmap: bytes) -> None:
    assert find_charsmap_damage(b"") is not None
    assert find_charsmap_damage(charsmap[:1000]) is not None
    assert find_charsmap_damage(struct.pack("<II", 4, 0)) == "a trie of 1 units"
    assert find_charsmap_damage(charsmap + b"\xff") is not None


def test_tokenizer_json_with_damaged_rules_is_refused(charsmap: bytes, tmp_path: Path) -> None:
    pieces = [("<pad>", 0.0), ("<unk>", 0.0), ("[CLS]", 0.0), ("[SEP]", 0.0), ("[MASK]", 0.0), ("▁a", -1.0)]
    content = json.loads(make_unigram_tokenizer(pieces, Casing(True, True), charsmap=charsmap).to_str())
    [step] = [each for each in content["normalizer"]["normalizers"] if each["type"] == "Precompiled"]
    step["precompiled_charsmap"] = base64.b64encode(_set_unit(charsmap, 0, 1023 << 18)).decode()
    content["normalizer"] = {"type": "Sequence", "normalizers": [content["normalizer"]]}
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    message = f"{path}.*the rules of its normaliser are damaged"
    with pytest.raises(InvalidValueError, match=message):
        load_published_vocabulary(str(tmp_path))
    with pytest.raises(InvalidValueError, match=message):
        Encoder(str(tmp_path))


def test_panic_of_a_library_ends_a_command_with_a_message(charsmap: bytes, capsys: Any) -> None:
    normalizer = Precompiled(_set_unit(charsmap, 0, 1023 << 18))

    def encode() -> CommandResult:
        return CommandResult(normalizer.normalize_str("a"))

    assert run_command("evaluate", encode, "", "") == FAILED
    message = capsys.readouterr().err.splitlines()[-1]
    assert message.startswith("evaluate: PanicException: index out of bounds")
    assert message.endswith("BIOSHARDS_TRACEBACK=1 shows where it failed")
