"""``python -m bioshards.vocab``: from the sample's shards to a vocabulary, and its errors."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.pipelines import cli
from bioshards.vocab import __main__ as vocab
from bioshards.vocab import vocabulary_dir
from bioshards.vocab.counting import count_inputs, word_counts
from bioshards.vocab.encode import Encoder
from bioshards.vocab.tokenizer import alphabet
from bioshards.vocab.tokenizer.pretokenizer import Casing, Pretokenizer
from bioshards.vocab.training import subword_trainers
from bioshards.vocab.training.vocabulary_recipes import PRESETS
from tests.support.corpus.manifests import put_documents
from tests.support.outputs import load_manifest, published_digests

SIZE = 900


@pytest.fixture(scope="module")
def shards(reference: Path, full_text: Path) -> list[str]:
    return [str(reference), str(full_text)]


@pytest.fixture(scope="module")
def built(shards: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("vocabulary") / "out"
    assert (
        vocab.main(
            ["build", *shards, "--output", str(out), "--size", str(SIZE), "--validation-fraction", "0.1"]
        )
        == 0
    )
    return out


def build(*arguments: object) -> int:
    return vocab.main(["build", *map(str, arguments)])


def pieces(folder: Path) -> list[str]:
    return (folder / "vocab.txt").read_text().split("\n")[:-1]


# What is made


def test_the_files_of_a_vocabulary(built: Path) -> None:
    names = {path.name for path in built.iterdir()} - {".bioshards"}
    files = {"tokenizer.json", "tokenizer_config.json", "vocab.txt", "words.tsv", "validation-words.tsv"}
    assert names == files | {"report.json", "report.html", "manifest.json"}
    listed = {output["file"]: output["bytes"] for output in load_manifest(built)["outputs"]}
    assert listed == {name: (built / name).stat().st_size for name in names - {"manifest.json"}}


def test_a_vocabulary_is_of_its_size_without_a_piece_twice(built: Path) -> None:
    found = pieces(built)
    assert len(found) == len(set(found)) == SIZE
    assert found[:5] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = Tokenizer.from_file(str(built / "tokenizer.json"))
    assert [tokenizer.id_to_token(number) for number in range(SIZE)] == found


def test_no_piece_is_unreachable_and_no_character_of_the_alphabet_unknown(built: Path) -> None:
    [ours] = json.loads((built / "report.json").read_text())["vocabularies"]
    assert ours["unreachable"]["all"] == 0
    assert ours["alphabet"]["failing"] == []
    tokenizer = Tokenizer.from_file(str(built / "tokenizer.json"))
    for character in (*alphabet.ASCII, *alphabet.GREEK):
        for text in (character, f"a{character}", f"{character}a", f"a{character}a"):
            assert "[UNK]" not in tokenizer.encode(text).tokens, text


def test_the_words_are_those_of_the_documents(built: Path, shards: list[str]) -> None:
    found = count_inputs.load_corpus_inputs(LocalStorage(), shards)
    text = count_inputs.read_training_counts(
        LocalStorage(), found, word_counts.CountConfig(validation_fraction=0.1), None, lambda line: None
    )
    for name, words in (("words.tsv", text.words), ("validation-words.tsv", text.validation_words)):
        with open(built / name, "rb") as file:
            assert word_counts.read_counts(file) == words
    totals = load_manifest(built)["counts"]
    assert totals["words"] == text.words.total()
    assert totals["validation_words"] == text.validation_words.total() > 0


def test_the_encoder_reads_it(built: Path) -> None:
    tokenizer = Tokenizer.from_file(str(built / "tokenizer.json"))
    text = "IL-6 (p < 0.05) binds α-synuclein."
    assert Encoder(str(built)).encode(text) == tokenizer.encode(text, add_special_tokens=False).ids


def test_transformers_reads_it(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    from transformers import AutoTokenizer

    loaded: Any = AutoTokenizer.from_pretrained(str(built))
    tokenizer = Tokenizer.from_file(str(built / "tokenizer.json"))
    with open(built / "words.tsv", "rb") as file:
        words = list(word_counts.read_counts(file))
    assert loaded(words, add_special_tokens=False)["input_ids"] == [
        encoded.ids for encoded in tokenizer.encode_batch(words, add_special_tokens=False)
    ]
    assert loaded.vocab_size == SIZE


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("as_published", [False, True])
def test_the_papers_vocabularies(name: str, as_published: bool, shards: list[str], tmp_path: Path) -> None:
    flags = ["--as-published"] if as_published else []
    assert build(*shards, "--output", tmp_path / "v", "--preset", name, "--size", SIZE, *flags) == 0
    tokenizer = Tokenizer.from_file(str(tmp_path / "v" / "tokenizer.json"))
    assert tokenizer.get_vocab_size() == SIZE
    text = "Insulin binds 12.5% of it."
    assert Encoder(str(tmp_path / "v")).encode(text) == tokenizer.encode(text, add_special_tokens=False).ids
    [ours] = json.loads((tmp_path / "v" / "report.json").read_text())["vocabularies"]
    if name == "bioalbert":
        assert (tmp_path / "v" / "spiece.model").exists()
        assert subword_trainers.read_pieces((tmp_path / "v" / "spiece.model").read_bytes())[:5] == [
            (special, 0.0) for special in ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")
        ]
        return
    if not as_published:
        assert ours["unreachable"]["all"] == 0
    elif name != "pubmedbert":
        assert ours["unreachable"]["with_punctuation"] > 0
    found = pieces(tmp_path / "v")
    cased = any(piece != piece.lower() for piece in found if not piece.startswith("["))
    assert cased is (name == "bio-electra")
    if name == "electramed":
        assert found[:2] == ["[PAD]", "[unused0]"]
        assert found[101:105] == ["[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    if name == "bio-electra":
        plain = [piece.removeprefix("##").casefold() for piece in found[5:]]
        assert plain == sorted(plain)


def test_a_kept_sentencepiece_model_and_its_tokenizer_say_the_same(shards: list[str], tmp_path: Path) -> None:
    import sentencepiece

    out = tmp_path / "v"
    assert build(*shards, "--output", out, "--algorithm", "unigram", "--sentencepiece", "--size", SIZE) == 0
    model = sentencepiece.SentencePieceProcessor(model_file=str(out / "spiece.model"))
    tokenizer = Tokenizer.from_file(str(out / "tokenizer.json"))
    with open(out / "words.tsv", "rb") as file:
        for word in word_counts.read_counts(file):
            text = tokenizer.normalizer.normalize_str(word)
            assert tokenizer.encode(word, add_special_tokens=False).ids == model.encode(text), word


@pytest.mark.parametrize("algorithm", ["bpe", "unigram", "wordpiece"])
def test_dummies_and_unused_tokens_have_ids_of_their_own(
    algorithm: str, shards: list[str], tmp_path: Path
) -> None:
    extra = ["--entity-placeholders", "@GENE$,@CHEMICAL$", "--num-unused-tokens", 3, "--algorithm", algorithm]
    assert build(*shards, "--output", tmp_path / "v", "--size", SIZE, *extra) == 0
    found = pieces(tmp_path / "v")
    assert found[:10] == [
        *("[PAD]", "[unused0]", "[unused1]", "[unused2]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
        *("@GENE$", "@CHEMICAL$"),
    ]
    tokenizer = Tokenizer.from_file(str(tmp_path / "v" / "tokenizer.json"))
    assert tokenizer.encode("x@GENE$ @CHEMICAL$", add_special_tokens=False).ids[1:] == [8, 9]


@pytest.mark.parametrize(
    ("flags", "casing"),
    [
        ([], Casing(True, True)),
        (["--cased"], Casing(False, False)),
        (["--no-strip-accents"], Casing(True, False)),
        (["--cased", "--strip-accents"], Casing(False, True)),
    ],
)
def test_casings(flags: list[str], casing: Casing, shards: list[str], tmp_path: Path) -> None:
    assert build(*shards, "--output", tmp_path / "v", "--size", SIZE, *flags) == 0
    split = Pretokenizer(casing)
    for piece in pieces(tmp_path / "v")[5:]:
        text = piece.removeprefix("##") if len(piece) > 2 else piece
        assert split(text) in ([text], [])
    settings = json.loads((tmp_path / "v" / "tokenizer_config.json").read_text())
    assert (settings["do_lower_case"], settings["strip_accents"]) == (casing.lower_case, casing.strip_accents)


def test_the_same_input_in_any_order_gives_the_same_bytes(
    built: Path, shards: list[str], tmp_path: Path
) -> None:
    assert (
        build(*reversed(shards), "--output", tmp_path / "v", "--size", SIZE, "--validation-fraction", 0.1)
        == 0
    )
    assert published_digests(tmp_path / "v") == published_digests(built)


def test_another_process_gives_the_same_bytes(built: Path, shards: list[str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bioshards.vocab", "build", *shards, "--output", str(tmp_path / "v")]
    environment = {**os.environ, "PYTHONHASHSEED": "7", "RAYON_NUM_THREADS": "1"}
    subprocess.run(
        [*command, "--size", str(SIZE), "--validation-fraction", "0.1"], check=True, env=environment
    )
    assert published_digests(tmp_path / "v") == published_digests(built)


def test_words_counted_by_the_pipeline_give_the_same_vocabulary(
    built: Path, shards: list[str], tmp_path: Path
) -> None:
    words = str(tmp_path / "words")
    inputs = [part for folder in shards for part in ("--input", folder)]
    assert (
        cli.main(
            [
                "run",
                "shards_to_words",
                *inputs,
                "--output",
                words,
                "--validation-fraction",
                "0.1",
                "--workers",
                "1",
            ]
        )
        == 0
    )
    assert build(words, "--output", tmp_path / "v", "--size", SIZE) == 0
    ours, theirs = published_digests(tmp_path / "v"), published_digests(built)
    told = {"manifest.json", "report.json", "report.html"}  # they say what it was made of
    assert {name: ours[name] for name in ours.keys() - told} == {
        name: theirs[name] for name in theirs.keys() - told
    }
    reports = [json.loads((folder / "report.json").read_text()) for folder in (tmp_path / "v", built)]
    for report in reports:
        del report["about"]
    assert reports[0] == reports[1]


def test_words_between_white_space_serve_every_vocabulary(
    built: Path, shards: list[str], tmp_path: Path
) -> None:
    words = str(tmp_path / "words")
    inputs = [part for folder in shards for part in ("--input", folder)]
    run = [
        "run",
        "shards_to_words",
        *inputs,
        "--output",
        words,
        "--workers",
        "1",
        "--validation-fraction",
        "0.1",
    ]
    assert cli.main([*run, "--pretokenizer", "white-space"]) == 0
    assert build(words, "--output", tmp_path / "v", "--size", SIZE) == 0
    assert pieces(tmp_path / "v") == pieces(built)
    assert build(words, "--output", tmp_path / "a", "--preset", "bioalbert", "--size", SIZE) == 0


def test_rare_words_are_left_out_if_asked_for(shards: list[str], tmp_path: Path) -> None:
    assert build(*shards, "--output", tmp_path / "v", "--size", 500, "--min-count", 5) == 0
    with open(tmp_path / "v" / "words.tsv", "rb") as file:
        assert min(word_counts.read_counts(file).values()) >= 5
    assert load_manifest(tmp_path / "v")["counts"]["min_count"] == 5


def test_of_very_many_words_the_most_frequent_are_taken(
    shards: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(count_inputs, "MAX_WORDS", 300)
    assert build(*shards, "--output", tmp_path / "v", "--size", 500) == 0
    totals = load_manifest(tmp_path / "v")["counts"]
    assert 100 < totals["distinct_words"] <= 300
    assert totals["min_count"] > 1


# Again, and another report


def test_a_finished_vocabulary_is_left_alone(
    built: Path, shards: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.stat().st_mtime_ns for path in built.iterdir()}
    assert build(*shards, "--output", built, "--size", SIZE, "--validation-fraction", 0.1) == 0
    assert "nothing to do" in capsys.readouterr().out
    assert {path: path.stat().st_mtime_ns for path in built.iterdir()} == before


def test_a_report_beside_others_changes_nothing_else(built: Path, tmp_path: Path) -> None:
    folder = tmp_path / "v"
    shutil.copytree(built, folder)
    shutil.rmtree(folder / ".bioshards")
    assert vocab.main(["report", str(folder), "--compare", f"Itself={built}"]) == 0
    report = json.loads((folder / "report.json").read_text())
    first, second = report["vocabularies"]
    assert {**first, "name": ""} == {**second, "name": ""}
    assert report["overlap"][0]["name"] == "Itself"
    assert report["curve"]["points"] == json.loads((built / "report.json").read_text())["curve"]["points"]
    same = {"report.json", "report.html", "manifest.json"}
    ours, theirs = published_digests(folder), published_digests(built)
    assert {name for name in ours if ours[name] != theirs[name]} == same
    assert vocabulary_dir.is_up_to_date(LocalStorage(), OutputDir(str(folder)))
    assert vocab.main(["report", str(folder)]) == 0
    assert published_digests(folder) == theirs


def test_a_report_that_was_stopped_half_way_is_made_again_and_nothing_else_is_lost(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "v"
    shutil.copytree(built, folder)
    write = vocabulary_dir._write_file

    def stops(storage: LocalStorage, folder: str, name: str, data: Any) -> Any:
        if name == "report.html":
            raise OSError(28, os.strerror(28))
        return write(storage, folder, name, data)

    with monkeypatch.context() as patch:
        patch.setattr(vocabulary_dir, "_write_file", stops)
        assert vocab.main(["report", str(folder), "--compare", f"Itself={built}"]) == 1
    assert load_manifest(folder) == load_manifest(built)
    assert vocab.main(["report", str(folder)]) == 0
    assert published_digests(folder) == published_digests(built)


def test_a_lost_file_is_made_again(built: Path, shards: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "v"
    shutil.copytree(built, folder)
    (folder / "vocab.txt").unlink()
    assert build(*shards, "--output", folder, "--size", SIZE, "--validation-fraction", 0.1) == 0
    assert published_digests(folder) == published_digests(built)


# What can go wrong

Fail = Callable[..., str]


@pytest.fixture
def fails(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Fail:
    """Build with these arguments; what is said of the failure, which leaves nothing behind."""

    def call(*arguments: object, code: int = 2) -> str:
        capsys.readouterr()
        assert build(*arguments, "--output", tmp_path / "failed") == code
        said = capsys.readouterr().err.splitlines()[-1]
        assert said.startswith("vocab: ")
        assert not (tmp_path / "failed" / "manifest.json").exists()
        return said

    return call


def test_a_folder_that_is_not_there_or_not_finished(fails: Fail, tmp_path: Path, shards: list[str]) -> None:
    assert "no manifest.json" in fails(tmp_path / "nowhere")
    unfinished = tmp_path / "unfinished"
    shutil.copytree(shards[0], unfinished)
    (unfinished / "manifest.json").unlink()
    assert "rerun the command to complete it" in fails(unfinished)


def test_a_folder_of_something_else(fails: Fail, built: Path, tmp_path: Path) -> None:
    assert "does not hold documents" in fails(built)
    other = tmp_path / "other"
    other.mkdir()
    (other / "manifest.json").write_text("[]")
    assert "does not hold documents" in fails(other)
    (other / "manifest.json").write_text("{")
    assert str(other) in fails(other)


def test_the_same_folder_twice(fails: Fail, shards: list[str]) -> None:
    assert "counted twice" in fails(shards[0], shards[0] + "/")


def test_a_size_smaller_than_the_alphabet_says_what_is_needed(fails: Fail, shards: list[str]) -> None:
    said = fails(*shards, "--size", 100)
    assert "no room" in said
    least = said.split("give ")[1].split(" ")[0]
    assert "larger --size or a smaller --character-coverage" in fails(*shards, "--size", least)


def test_a_corpus_too_small_says_how_large_a_vocabulary_it_gives(
    fails: Fail, shards: list[str], tmp_path: Path
) -> None:
    for number, flags in enumerate(([], ["--algorithm", "wordpiece"], ["--preset", "bioalbert"])):
        said = fails(*shards, "--size", 30_522, *flags)
        assert "or less, or more text" in said
        largest = said.split("give --size ")[1].split(" ")[0]
        assert build(*shards, "--output", tmp_path / f"v{number}", *flags, "--size", largest) == 0


def test_after_a_failure_another_size_can_be_built_in_the_same_place(
    fails: Fail, shards: list[str], tmp_path: Path
) -> None:
    fails(*shards, "--size", 100)
    assert build(*shards, "--size", SIZE, "--output", tmp_path / "failed") == 0


def test_one_sentence(fails: Fail, tmp_path: Path) -> None:
    folder = documents(tmp_path, ["Insulin binds its receptor."])
    assert "or less, or more text" in fails(folder)
    assert "no word to train on" in fails(folder, "--validation-fraction", 0.999999)
    assert "give a lower --min-count" in fails(folder, "--min-count", 2)
    assert build(folder, "--output", tmp_path / "v", "--size", 190) == 0


def test_no_words_at_all(fails: Fail, tmp_path: Path) -> None:
    assert "no word to train on" in fails(documents(tmp_path, [" "]))


def documents(folder: Path, sentences: list[str]) -> Path:
    """A finished directory of one document."""
    from bioshards.corpus.document import DOCUMENT_SCHEMA, Document
    from bioshards.corpus.shards import arrow_io as shards

    out = folder / "documents"
    storage = LocalStorage()
    nothing = dict.fromkeys(("pmcid", "doi", "journal", "article_type", "licence"))
    zero: dict[str, Any] = {"num_words": 0, "num_characters": 0, "removed_characters": []}
    document = Document(
        id="pubmed:1",
        source="pubmed",
        pmid=1,
        version=1,
        year=2020,
        language="eng",
        retracted=False,
        flags=[],
        title="",
        sentences=sentences,
        sections=[],
        file="x",
        position=0,
        **nothing,  # type: ignore[arg-type]
        **zero,
    )
    [shard] = shards.write_shards(
        storage, str(out), "x", [shards.record_batch_from_documents([document])], DOCUMENT_SCHEMA, 1 << 20
    )
    put_documents(out, [shard])
    return out


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--as-published"], "give --preset"),
        (["--sentencepiece"], "--algorithm unigram"),
        (["--character-coverage", 0.5], "not from 0.98 to 1"),
        (["--num-unused-tokens", -1], "below 0"),
        (["--entity-placeholders", "@a b"], "invalid"),
        (["--entity-placeholders", "[UNK]"], "invalid"),
        (["--entity-placeholders", "[unused0]"], "invalid"),
        (["--entity-placeholders", "gene"], "invalid"),
        (["--entity-placeholders", "@GENE$,@GENE$"], "repeated"),
        (["--min-count", 0], "below 1"),
        (["--validation-fraction", 1], "validation_fraction 1.0 is not in [0, 1)"),
        (["--size", 0], "no room"),
        (["--size", -5], "no room"),
        (["--preset", "bioalbert", "--size", 50], "no room"),
        (["--compare", "X=/nowhere/vocab.txt"], "/nowhere/vocab.txt"),
        (["--benchmarks", "/nowhere"], "/nowhere"),
    ],
)
def test_options_that_make_no_sense(fails: Fail, shards: list[str], flags: list[str], said: str) -> None:
    assert said in fails(*shards, *flags)


@pytest.mark.parametrize(
    "flags", [["--algorithm", "bpf"], ["--preset", "x"], ["--compare", "x"], ["--sise", "3"]]
)
def test_misspelt_options(flags: list[str], shards: list[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as left:
        build(*shards, "--output", tmp_path / "v", *flags)
    assert left.value.code == 2


def test_a_folder_that_holds_something_else_is_not_written_to(
    shards: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "thesis.txt").write_text("precious")
    assert build(*shards, "--output", tmp_path, "--size", SIZE) == 2
    assert "thesis.txt" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["thesis.txt"]


def test_another_vocabulary_is_not_written_over(
    built: Path, shards: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    before = published_digests(built)
    assert build(*shards, "--output", built, "--size", SIZE + 1) == 2
    assert "size was 900, now 901" in capsys.readouterr().err
    assert published_digests(built) == before


def test_words_without_marks_do_not_serve_albert(shards: list[str], tmp_path: Path, fails: Fail) -> None:
    words = str(tmp_path / "words")
    assert (
        cli.main(["run", "shards_to_words", "--input", shards[0], "--output", words, "--workers", "1"]) == 0
    )
    assert "--pretokenizer white-space" in fails(words, "--preset", "bioalbert")
    assert "shards_to_words --validation-fraction" in fails(words, "--validation-fraction", 0.1)
    assert "the same" in fails(words, words)
    Path(words, "words.tsv").write_text("a\tb\n")
    assert "words.tsv is damaged" in fails(words)


@pytest.mark.parametrize("inside", [".", "vocabulary"])
def test_an_input_is_not_written_into(
    inside: str, shards: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    before = published_digests(Path(shards[0]))
    assert build(*shards, "--output", f"{shards[0]}/{inside}", "--size", SIZE) == 2
    assert shards[0] in capsys.readouterr().err
    assert published_digests(Path(shards[0])) == before


@pytest.mark.parametrize("out", ["", "gs://bucket/vocabulary"])
def test_a_place_to_write_that_is_none(
    out: str, shards: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert build(*shards, "--output", out, "--size", SIZE) == 2
    assert "not a local directory" in capsys.readouterr().err


def test_a_file_where_the_folder_should_be(
    shards: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert build(*shards, "--output", tmp_path / "file", "--size", SIZE) == 1
    assert str(tmp_path / "file") in capsys.readouterr().err


def test_a_report_on_a_vocabulary_that_has_lost_a_file(
    built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "v"
    shutil.copytree(built, folder)
    (folder / "words.tsv").unlink()
    before = (folder / "report.json").read_bytes()
    assert vocab.main(["report", str(folder)]) == 2
    assert "lacks files" in capsys.readouterr().err
    assert (folder / "report.json").read_bytes() == before


def test_a_report_on_what_is_no_vocabulary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert vocab.main(["report", str(tmp_path)]) == 2
    assert "not a finished vocabulary" in capsys.readouterr().err


def test_a_full_disk_is_said_and_the_next_run_is_whole(
    built: Path, shards: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: Fail
) -> None:
    write = vocabulary_dir._write_file

    def full(storage: LocalStorage, folder: str, name: str, data: Any) -> Any:
        if name == "vocab.txt":
            raise OSError(28, os.strerror(28))
        return write(storage, folder, name, data)

    with monkeypatch.context() as patch:
        patch.setattr(vocabulary_dir, "_write_file", full)
        assert "the disk is full" in fails(*shards, "--size", SIZE, "--validation-fraction", 0.1, code=1)
    assert build(*shards, "--output", tmp_path / "failed", "--size", SIZE, "--validation-fraction", 0.1) == 0
    assert published_digests(tmp_path / "failed") == published_digests(built)


@pytest.mark.parametrize(
    ("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -9)]
)
def test_stopped_and_run_again(
    sent: signal.Signals, code: int, built: Path, shards: list[str], tmp_path: Path
) -> None:
    arguments = [
        "build",
        *shards,
        "--output",
        str(tmp_path / "v"),
        "--size",
        str(SIZE),
        "--validation-fraction",
        "0.1",
    ]
    running = subprocess.Popen(
        [sys.executable, "-m", "bioshards.vocab", *arguments], stderr=subprocess.PIPE, text=True
    )
    assert running.stderr is not None
    assert "counting" in running.stderr.readline()
    running.send_signal(sent)
    said = running.communicate()[1]
    assert running.returncode == code
    assert "Traceback" not in said
    assert not (tmp_path / "v" / "manifest.json").exists()
    assert vocab.main(arguments) == 0
    assert published_digests(tmp_path / "v") == published_digests(built)


def test_ctrl_c_is_obeyed_while_a_library_trains(shards: list[str], tmp_path: Path) -> None:
    """The library is played by a minute of hashing, which does not look for signals either."""
    script = (
        "import hashlib, sys; from bioshards.vocab import __main__ as vocab; "
        "from bioshards.vocab import commands;"
        "commands.build_vocabulary = lambda *_: (print('training', flush=True),"
        " hashlib.pbkdf2_hmac('sha256', b'', b'', 500_000_000));"
        "sys.exit(vocab.main(sys.argv[1:]))"
    )
    running = subprocess.Popen(
        [sys.executable, "-c", script, "build", shards[0], "--output", str(tmp_path / "v")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stdout is not None
    assert running.stdout.readline() == "training\n"
    running.send_signal(signal.SIGINT)
    said = running.communicate(timeout=30)[1]
    assert running.returncode == 130
    assert "run the same command again" in said


def test_without_the_libraries_of_its_extra_it_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "sentencepiece.py").write_text("raise ImportError('No module named sentencepiece')")
    command = [sys.executable, "-m", "bioshards.vocab", "build", "x", "--output", "y"]
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 2
    assert "pip install 'bioshards[vocab]'" in done.stderr
    assert "Traceback" not in done.stderr
