"""``bioshards vocab``: vocabularies of the sample's shards, repeated builds and errors."""

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
import yaml  # type: ignore[import-untyped]
from tokenizers import Tokenizer

from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.ui.progress import Progress
from bioshards.pipelines import cli
from bioshards.vocab import __main__ as vocab
from bioshards.vocab import commands
from bioshards.vocab.counting import count_inputs, word_counts
from bioshards.vocab.encode import Encoder
from bioshards.vocab.options import PRESETS
from bioshards.vocab.tokenizer import wordpiece
from bioshards.vocab.tokenizer.pretokenizer import Casing, Pretokenizer
from bioshards.vocab.training import subword_trainers
from tests.support.corpus.synthetic_documents import make_document, write_document_dir
from tests.support.outputs import load_manifest, published_digests

SIZE = 900
HELD_OUT = ("--size", SIZE, "--validation-fraction", 0.1)


@pytest.fixture(scope="module")
def shards(reference: Path, full_text: Path) -> list[str]:
    return [str(reference), str(full_text)]


@pytest.fixture(scope="module")
def vocabulary(shards: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("vocabulary") / "out"
    assert run_build(*shards, "--output", out, *HELD_OUT) == 0
    return out


def run_build(*arguments: object) -> int:
    return vocab.main(["build", *map(str, arguments)])


def run_shards_to_words(output: Path, shards: list[str], *options: str) -> Path:
    inputs = [word for folder in shards for word in ("--input", folder)]
    words = ["run", "shards_to_words", *inputs, "--output", str(output), "--workers", "1", *options]
    assert cli.main(words) == 0
    return output


def read_pieces(folder: Path) -> list[str]:
    return (folder / "vocab.txt").read_text().split("\n")[:-1]


def fill_disk_at(patch: pytest.MonkeyPatch, file: str) -> None:
    """Let the disk be full when a file is written."""
    write = commands._write_file

    def write_or_fail(storage: LocalStorage, folder: str, name: str, data: Any) -> Any:
        if name == file:
            raise OSError(28, os.strerror(28))
        return write(storage, folder, name, data)

    patch.setattr(commands, "_write_file", write_or_fail)


# Built files


def test_vocabulary_directory_has_the_listed_files(vocabulary: Path) -> None:
    names = {path.name for path in vocabulary.iterdir()} - {".bioshards"}
    files = {"tokenizer.json", "tokenizer_config.json", "vocab.txt", "words.tsv", "validation-words.tsv"}
    assert names == files | {"README.md", "report.json", "report.html", "manifest.json"}
    listed = {output["file"]: output["bytes"] for output in load_manifest(vocabulary)["outputs"]}
    assert listed == {name: (vocabulary / name).stat().st_size for name in names - {"manifest.json"}}


def test_card_has_the_header_of_the_hub_and_names_the_files(vocabulary: Path) -> None:
    card = (vocabulary / "README.md").read_text()
    assert yaml.safe_load(card.split("---\n")[1]) == {
        "license": "other",
        "language": "en",
        "library_name": "transformers",
        "tags": ["biology", "medical", "tokenizer"],
    }
    assert f"# Vocabulary of {SIZE:,} pieces, WordPiece, lower case" in card
    for name in {path.name for path in vocabulary.iterdir()} - {".bioshards", "README.md"}:
        assert f"| `{name}` | " in card
    assert "spiece.model" not in card
    assert '| `algorithm` | `"bpe"` |' in card


def test_vocabulary_has_its_size_without_repeated_pieces(vocabulary: Path) -> None:
    piece_list = read_pieces(vocabulary)
    assert len(piece_list) == len(set(piece_list)) == SIZE
    assert piece_list[:5] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = Tokenizer.from_file(str(vocabulary / "tokenizer.json"))
    assert [tokenizer.id_to_token(number) for number in range(SIZE)] == piece_list


def test_every_piece_is_reachable_and_every_alphabet_character_known(vocabulary: Path) -> None:
    [ours] = json.loads((vocabulary / "report.json").read_text())["vocabularies"]
    assert ours["unreachable"]["all"] == 0
    tokenizer = Tokenizer.from_file(str(vocabulary / "tokenizer.json"))
    for character in (*wordpiece.ASCII, *wordpiece.GREEK):
        for text in (character, f"a{character}", f"{character}a", f"a{character}a"):
            assert "[UNK]" not in tokenizer.encode(text).tokens, text


def test_word_files_equal_counts_of_the_documents(vocabulary: Path, shards: list[str]) -> None:
    corpus_inputs = count_inputs.load_corpus_inputs(LocalStorage(), shards)
    counts = count_inputs.read_training_counts(
        LocalStorage(),
        corpus_inputs,
        word_counts.CountConfig(validation_fraction=0.1),
        None,
        Progress(None),
    )
    for name, words in (("words.tsv", counts.words), ("validation-words.tsv", counts.validation_words)):
        with open(vocabulary / name, "rb") as file:
            assert word_counts.read_counts(file) == words
    totals = load_manifest(vocabulary)["counts"]
    assert totals["words"] == counts.words.total()
    assert totals["validation_words"] == counts.validation_words.total() > 0


@pytest.mark.parametrize("name", PRESETS)
def test_presets_of_the_papers(name: str, shards: list[str], tmp_path: Path) -> None:
    assert run_build(*shards, "--output", tmp_path / "v", "--preset", name, "--size", SIZE) == 0
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
    assert ours["unreachable"]["all"] == 0
    piece_list = read_pieces(tmp_path / "v")
    cased = any(piece != piece.lower() for piece in piece_list if not piece.startswith("["))
    assert cased is (name == "bio-electra")
    if name == "electramed":
        assert piece_list[:2] == ["[PAD]", "[unused0]"]
        assert piece_list[101:105] == ["[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    if name == "bio-electra":
        plain = [piece.removeprefix("##").casefold() for piece in piece_list[5:]]
        assert plain == sorted(plain)


def test_sentencepiece_model_and_tokenizer_give_the_same_ids(shards: list[str], tmp_path: Path) -> None:
    import sentencepiece

    out = tmp_path / "v"
    assert run_build(*shards, "--output", out, "--algorithm", "unigram", "--size", SIZE) == 0
    model = sentencepiece.SentencePieceProcessor(model_file=str(out / "spiece.model"))
    tokenizer = Tokenizer.from_file(str(out / "tokenizer.json"))
    with open(out / "words.tsv", "rb") as file:
        for word in word_counts.read_counts(file):
            text = tokenizer.normalizer.normalize_str(word)
            assert tokenizer.encode(word, add_special_tokens=False).ids == model.encode(text), word


@pytest.mark.parametrize("algorithm", ["bpe", "unigram", "wordpiece"])
def test_placeholders_and_unused_tokens_have_their_own_ids(
    algorithm: str, shards: list[str], tmp_path: Path
) -> None:
    extra = ["--entity-placeholders", "@GENE$,@CHEMICAL$", "--num-unused-tokens", 3, "--algorithm", algorithm]
    assert run_build(*shards, "--output", tmp_path / "v", "--size", SIZE, *extra) == 0
    unused = ["[unused0]", "[unused1]", "[unused2]"]
    special_tokens = ["[PAD]", *unused, "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    if algorithm == "unigram":
        special_tokens = ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]", *unused]
    tokenizer = Tokenizer.from_file(str(tmp_path / "v" / "tokenizer.json"))
    first_pieces = [tokenizer.id_to_token(piece_id) for piece_id in range(10)]
    assert first_pieces == [*special_tokens, "@GENE$", "@CHEMICAL$"]
    assert tokenizer.encode("x@GENE$ @CHEMICAL$", add_special_tokens=False).ids[-2:] == [8, 9]


@pytest.mark.parametrize(
    ("flags", "casing"),
    [
        ([], Casing(True, True)),
        (["--cased"], Casing(False, False)),
        (["--no-strip-accents"], Casing(True, False)),
        (["--cased", "--strip-accents"], Casing(False, True)),
    ],
)
def test_casing_options(flags: list[str], casing: Casing, shards: list[str], tmp_path: Path) -> None:
    assert run_build(*shards, "--output", tmp_path / "v", "--size", SIZE, *flags) == 0
    split = Pretokenizer(casing)
    for piece in read_pieces(tmp_path / "v")[5:]:
        text = piece.removeprefix("##") if len(piece) > 2 else piece
        assert split(text) in ([text], [])
    settings = json.loads((tmp_path / "v" / "tokenizer_config.json").read_text())
    assert (settings["do_lower_case"], settings["strip_accents"]) == (casing.lower_case, casing.strip_accents)


def test_inputs_in_another_order_give_the_same_bytes_in_another_process(
    vocabulary: Path, shards: list[str], tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "bioshards.vocab", "build", *reversed(shards)]
    environment = {**os.environ, "PYTHONHASHSEED": "7", "RAYON_NUM_THREADS": "1"}
    options = ["--output", str(tmp_path / "v"), *map(str, HELD_OUT)]
    subprocess.run([*command, *options], check=True, env=environment)
    assert published_digests(tmp_path / "v") == published_digests(vocabulary)


def test_words_counted_by_the_pipeline_give_the_same_vocabulary(
    vocabulary: Path, shards: list[str], tmp_path: Path
) -> None:
    words = run_shards_to_words(tmp_path / "words", shards, "--validation-fraction", "0.1")
    assert run_build(words, "--output", tmp_path / "v", "--size", SIZE) == 0
    ours, theirs = published_digests(tmp_path / "v"), published_digests(vocabulary)
    differing = {"manifest.json", "report.json", "report.html"}  # these name the inputs
    assert {name: ours[name] for name in ours.keys() - differing} == {
        name: theirs[name] for name in theirs.keys() - differing
    }
    reports = [json.loads((folder / "report.json").read_text()) for folder in (tmp_path / "v", vocabulary)]
    for report in reports:
        del report["about"]
    assert reports[0] == reports[1]


def test_white_space_words_serve_every_vocabulary(
    vocabulary: Path, shards: list[str], tmp_path: Path
) -> None:
    options = ("--validation-fraction", "0.1", "--pretokenizer", "white-space")
    words = run_shards_to_words(tmp_path / "words", shards, *options)
    assert run_build(words, "--output", tmp_path / "v", "--size", SIZE) == 0
    assert read_pieces(tmp_path / "v") == read_pieces(vocabulary)
    assert run_build(words, "--output", tmp_path / "a", "--preset", "bioalbert", "--size", SIZE) == 0


# Repeated builds and reports


def test_finished_vocabulary_is_not_rebuilt(
    vocabulary: Path, shards: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.stat().st_mtime_ns for path in vocabulary.iterdir()}
    assert run_build(*shards, "--output", vocabulary, *HELD_OUT) == 0
    assert "nothing to do" in capsys.readouterr().out
    assert {path: path.stat().st_mtime_ns for path in vocabulary.iterdir()} == before


def test_report_with_comparison_rewrites_only_report_and_manifest(vocabulary: Path, tmp_path: Path) -> None:
    folder = tmp_path / "v"
    shutil.copytree(vocabulary, folder)
    shutil.rmtree(folder / ".bioshards")
    assert vocab.main(["report", str(folder), "--compare", f"Itself={vocabulary}"]) == 0
    report = json.loads((folder / "report.json").read_text())
    first, second = report["vocabularies"]
    assert {**first, "name": ""} == {**second, "name": ""}
    assert (first["name"], second["name"]) == ("this vocabulary", "Itself")
    same = {"report.json", "report.html", "manifest.json"}
    ours, theirs = published_digests(folder), published_digests(vocabulary)
    assert {name for name in ours if ours[name] != theirs[name]} == same
    assert commands._is_up_to_date(LocalStorage(), OutputDir(str(folder)))
    assert vocab.main(["report", str(folder)]) == 0
    assert published_digests(folder) == theirs


def test_interrupted_report_can_be_repeated(
    vocabulary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "v"
    shutil.copytree(vocabulary, folder)
    with monkeypatch.context() as patch:
        fill_disk_at(patch, "report.html")
        assert vocab.main(["report", str(folder), "--compare", f"Itself={vocabulary}"]) == 1
    assert load_manifest(folder) == load_manifest(vocabulary)
    assert vocab.main(["report", str(folder)]) == 0
    assert published_digests(folder) == published_digests(vocabulary)


def test_missing_file_is_rebuilt(vocabulary: Path, shards: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "v"
    shutil.copytree(vocabulary, folder)
    (folder / "vocab.txt").unlink()
    assert run_build(*shards, "--output", folder, *HELD_OUT) == 0
    assert published_digests(folder) == published_digests(vocabulary)


# Errors

ReadBuildError = Callable[..., str]


@pytest.fixture
def read_build_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> ReadBuildError:
    """Run a build that fails without a manifest, and return its error message."""

    def call(*arguments: object, code: int = 2) -> str:
        capsys.readouterr()
        assert run_build(*arguments, "--output", tmp_path / "failed") == code
        message = capsys.readouterr().err.splitlines()[-1]
        assert message.startswith("vocab: ")
        assert not (tmp_path / "failed" / "manifest.json").exists()
        return message

    return call


def test_unusable_inputs_are_refused(
    read_build_error: ReadBuildError, tmp_path: Path, shards: list[str], vocabulary: Path
) -> None:
    """counting/test_count_inputs.py has the directories of other kinds."""
    assert "does not hold documents" in read_build_error(vocabulary)
    assert "counted twice" in read_build_error(shards[0], shards[0] + "/")
    assert "nowhere does not exist: it is not a finished output" in read_build_error(tmp_path / "nowhere")
    unfinished = tmp_path / "unfinished"
    shutil.copytree(shards[0], unfinished)
    (unfinished / "manifest.json").unlink()
    assert "rerun the command to complete it" in read_build_error(unfinished)


@pytest.mark.parametrize("flags", [[], ["--algorithm", "wordpiece"], ["--preset", "bioalbert"]])
def test_error_of_a_too_small_size_names_the_smallest_size(
    flags: list[str], read_build_error: ReadBuildError, shards: list[str], tmp_path: Path
) -> None:
    message = read_build_error(*shards, *flags, "--size", 50)
    assert "no room" in message
    smallest = message.split("give --size ")[1].split(" ")[0]
    message = read_build_error(*shards, *flags, "--size", smallest)
    assert "or a smaller --character-coverage" in message
    smallest = message.split("give --size ")[1].split(" ")[0]
    assert run_build(*shards, *flags, "--size", smallest, "--output", tmp_path / "v") == 0


@pytest.mark.thorough
def test_error_of_a_too_small_corpus_names_the_largest_size(
    read_build_error: ReadBuildError, shards: list[str], tmp_path: Path
) -> None:
    for number, flags in enumerate(([], ["--algorithm", "wordpiece"], ["--preset", "bioalbert"])):
        message = read_build_error(*shards, "--size", 30_522, *flags)
        assert "or less, or more text" in message
        largest = message.split("give --size ")[1].split(" ")[0]
        assert run_build(*shards, "--output", tmp_path / f"v{number}", *flags, "--size", largest) == 0


def test_corpus_of_one_sentence(read_build_error: ReadBuildError, tmp_path: Path) -> None:
    nothing = write_document_dir(tmp_path / "nothing", {"x": [make_document("pubmed:1", [" "])]})
    assert "no word to train on" in read_build_error(nothing)
    sentence = make_document("pubmed:1", ["Insulin binds its receptor."])
    folder = write_document_dir(tmp_path / "documents", {"x": [sentence]})
    assert "or less, or more text" in read_build_error(folder)
    assert "no word to train on" in read_build_error(folder, "--validation-fraction", 0.999999)
    assert "give a lower --min-count" in read_build_error(folder, "--min-count", 2)
    assert run_build(folder, "--output", tmp_path / "failed", "--size", 190) == 0


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--character-coverage", 0.5], "not from 0.98 to 1"),
        (["--num-unused-tokens", -1], "below 0"),
        (["--entity-placeholders", "@a b"], "invalid"),
        (["--entity-placeholders", "[UNK]"], "invalid"),
        (["--entity-placeholders", "[unused0]"], "invalid"),
        (["--entity-placeholders", "gene"], "invalid"),
        (["--entity-placeholders", "@GENE$,@GENE$"], "repeated"),
        (["--validation-fraction", 1], "validation_fraction 1.0 is not in [0, 1)"),
        (["--size", 0], "no room"),
        (["--size", -5], "no room"),
        (["--preset", "bioalbert", "--size", 50], "no room"),
        (["--compare", "X=/nowhere/vocab.txt"], "/nowhere/vocab.txt"),
        (["--compare", "this vocabulary=x"], "names must differ from each other and from"),
        (["--compare", "X=x", "--compare", "X=y"], "names must differ from each other and from"),
        (["--benchmark-texts", "/nowhere"], "/nowhere"),
    ],
)
def test_invalid_options_are_refused(
    read_build_error: ReadBuildError, shards: list[str], flags: list[str], expected: str
) -> None:
    assert expected in read_build_error(*shards, *flags)


@pytest.mark.parametrize(
    ("out", "code", "message"),
    [
        ("", 2, "not a local directory"),
        ("gs://bucket/vocabulary", 2, "not a local directory"),
        ("mine", 2, "thesis.txt"),
        ("mine/thesis.txt", 1, "mine/thesis.txt"),
    ],
)
def test_output_that_is_no_place_for_a_vocabulary_is_refused(
    out: str,
    code: int,
    message: str,
    shards: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("precious")
    assert run_build(*shards, "--output", out, "--size", SIZE) == code
    assert message in capsys.readouterr().err
    assert [path.name for path in tmp_path.rglob("*")] == ["mine", "thesis.txt"]


def test_words_of_the_wrong_pretokenizer_or_split_are_refused(
    shards: list[str], tmp_path: Path, read_build_error: ReadBuildError
) -> None:
    words = run_shards_to_words(tmp_path / "words", shards[:1])
    assert "--pretokenizer white-space" in read_build_error(words, "--preset", "bioalbert")
    assert "shards_to_words --validation-fraction" in read_build_error(words, "--validation-fraction", 0.1)
    assert "the same" in read_build_error(words, words)
    (words / "words.tsv").write_text("a\tb\n")
    assert "words.tsv is damaged" in read_build_error(words)


@pytest.mark.parametrize("inside", [".", "vocabulary"])
def test_output_inside_an_input_is_refused(
    inside: str, shards: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    before = published_digests(Path(shards[0]))
    assert run_build(*shards, "--output", f"{shards[0]}/{inside}", "--size", SIZE) == 2
    assert shards[0] in capsys.readouterr().err
    assert published_digests(Path(shards[0])) == before


def test_report_on_an_incomplete_vocabulary_is_refused(
    vocabulary: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "v"
    shutil.copytree(vocabulary, folder)
    (folder / "words.tsv").unlink()
    before = (folder / "report.json").read_bytes()
    assert vocab.main(["report", str(folder)]) == 2
    assert "lacks files" in capsys.readouterr().err
    assert (folder / "report.json").read_bytes() == before
    assert vocab.main(["report", str(tmp_path)]) == 2
    assert "not a finished vocabulary" in capsys.readouterr().err


def test_full_disk_is_reported_and_the_next_build_completes(
    vocabulary: Path,
    shards: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    read_build_error: ReadBuildError,
) -> None:
    with monkeypatch.context() as patch:
        fill_disk_at(patch, "vocab.txt")
        assert "the disk is full" in read_build_error(*shards, *HELD_OUT, code=1)
    assert run_build(*shards, "--output", tmp_path / "failed", *HELD_OUT) == 0
    assert published_digests(tmp_path / "failed") == published_digests(vocabulary)


@pytest.mark.parametrize(
    ("sent_signal", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -9)]
)
def test_interrupted_build_completes_when_rerun(
    sent_signal: signal.Signals, code: int, vocabulary: Path, shards: list[str], tmp_path: Path
) -> None:
    arguments = ["build", *shards, "--output", str(tmp_path / "v"), *map(str, HELD_OUT)]
    process = subprocess.Popen(
        [sys.executable, "-m", "bioshards.vocab", *arguments], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    assert "counting" in process.stderr.readline()
    process.send_signal(sent_signal)
    stderr = process.communicate()[1]
    assert process.returncode == code
    assert "Traceback" not in stderr
    assert not (tmp_path / "v" / "manifest.json").exists()
    assert vocab.main(arguments) == 0
    assert published_digests(tmp_path / "v") == published_digests(vocabulary)


@pytest.mark.parametrize("sent_signal", [signal.SIGINT, signal.SIGTERM])
def test_signal_stops_training_inside_a_library(
    sent_signal: signal.Signals, shards: list[str], tmp_path: Path
) -> None:
    """Minutes of hashing stand for the library; neither checks for signals."""
    library = (
        "import hashlib, os, sys; print('\\ntrainer', os.getpid(), file=sys.stderr, flush=True); "
        "hashlib.pbkdf2_hmac('sha256', b'', b'', 2_000_000_000)"
    )
    script = (
        "import sys; from bioshards.vocab import __main__ as vocab; "
        "from bioshards.vocab.training import subword_trainers; "
        f"subword_trainers._COMMAND = [sys.executable, '-c', {library!r}]; "
        "sys.exit(vocab.main(sys.argv[1:]))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, "build", shards[0], "--output", str(tmp_path / "v")],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    trainer = int(next(line for line in process.stderr if line.startswith("trainer ")).split()[1])
    process.send_signal(sent_signal)
    stderr = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert "run the same command again" in stderr
    with pytest.raises(ProcessLookupError):
        os.kill(trainer, 0)


def test_killed_training_process_is_a_failure(
    shards: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"]
    monkeypatch.setattr(subword_trainers, "_COMMAND", command)
    assert run_build(*shards, "--output", tmp_path / "v", "--size", SIZE) == 1
    assert "the training process ended with code -9 (out of memory?)" in capsys.readouterr().err


@pytest.mark.parametrize("library", ["sentencepiece", "tokenizers"])
def test_missing_library_error_names_the_extra(library: str, tmp_path: Path) -> None:
    (tmp_path / f"{library}.py").write_text(f"raise ImportError('No module named {library}')")
    command = [sys.executable, "-m", "bioshards", "vocab", "build", "x", "--output", "y"]
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    completed = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert completed.returncode == 2
    assert "pip install '.[vocab]'" in completed.stderr
    assert "Traceback" not in completed.stderr
