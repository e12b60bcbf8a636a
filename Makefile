# The project's commands. Each makes what it needs: a fresh machine needs Python 3.11 to 3.14 and make.
#   make run       both corpora from the bundled sample
#   make vocab     a vocabulary from what make run made
#   make examples  a pretraining set from both
#   make train     a tiny model on the pretraining set
#   make evaluate  its scores on invented benchmarks, two seeds a task, beside the majority class, and a report
#   make test      the tests of every change, in minutes    make test-all  all tests
#   make lint      format, types, import contracts          make check     lint and test
#   make bench     speed and memory against peers           make clean     remove what make made
#   make engines   the pipelines on Prism, Flink and Spark, also after kills: needs Go, Java 17, Maven, unshare
#   make test-scispacy  the tests of --splitter scispacy, in an environment of their own
#   make coverage  lines and branches that make test-all runs, workers and other processes included
#   make mutants FILE=corpus/xml/entities.py [TESTS=tests/corpus/xml]  changes of a file that its tests do not notice
#   make docs      these documents as a site, build/docs/docs/index.html
#   make wheel     the package, for workers of Dataflow without an image
#   make release-check  sdist and wheel, and the sample run by the wheel in an environment of its own
#   make image     container images: needs Docker, and nothing else of this (docker/README.md)
# make vocab SHARDS="abstracts fulltext" SIZE=30522 VOCAB=vocabulary builds one from your own shards,
# make examples SHARDS=... VOCAB=... PRESET=pubmedbert EXAMPLES=examples a pretraining set, and
# make train EXAMPLES=examples MODEL=pubmedbert RUN=pubmedbert trains on it, and
# make evaluate CHECKPOINT=pubmedbert/step-0062500/hf DATA=benchmarks SEEDS=5 SCORES=scores scores a checkpoint.
# make image REGISTRY=us-docker.pkg.dev/my-lab/images TAG=2026-11 names images for a registry; push likewise.

# In a new environment, TORCH=cpu (make TORCH=cpu test) takes torch's CPU build from torch's own index: 0.2 GB
# instead of CUDA's several.
TORCH ?=
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
# PYTHON=... names an interpreter; else it is the first of these with the versions that all libraries support.
PYTHON ?=
PYTHONS := python3 python3.14 python3.13 python3.12 python3.11
VENV ?= .venv
OUT ?= out/sample
SHARDS ?= $(OUT)/pubmed $(OUT)/pmc
VOCAB ?= $(OUT)/vocab
SIZE ?= 600
PRESET ?= bio-electra
EXAMPLES ?= $(OUT)/examples
# Short rows for the tiny model.
EXAMPLES_RECIPE ?= $(if $(filter $(OUT)/%,$(SHARDS)),--max-seq-length 64)
VALIDATION ?= $(if $(filter $(OUT)/%,$(SHARDS)),0.1,0.01)
MODEL ?= tiny
RUN ?= $(OUT)/$(MODEL)
# On the sample: masked language modelling with a narrow model, which learns from context within a minute.
TRAIN_RECIPE ?= $(if $(filter tiny,$(MODEL)),$(if $(filter $(OUT)/%,$(EXAMPLES)),--family bert --hidden-size 64 \
  --intermediate-size 256 --steps 1000 --learning-rate 0.004 --dropout 0 --attention-dropout 0 --log-every 20))
CHECKPOINT ?= $$(ls -d $(RUN)/step-*/hf | tail -1)
DATA ?= evaluate/sample
TASKS ?= blurb
SEEDS ?= 2
SCORES ?= $(OUT)/scores
RECIPE ?= $(if $(filter evaluate/sample,$(DATA)),--epochs 6 --batch-size 8 --learning-rate 0.005 --max-seq-length 128)
REGISTRY ?=
TAG ?= $(VERSION)
DOCKER ?= docker
VERSION := $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' src/bioshards/__init__.py)
BUILD = $(DOCKER) build --file docker/Dockerfile --build-arg VERSION=$(VERSION)
IMAGES := worker trainer
NAME = $(REGISTRY:%=%/)bioshards-$(1):$(TAG)
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet

# Compiled code is kept, whatever the environment says: tests start hundreds of processes.
PYTEST = OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --numprocesses $(PROCESSES) \
  --dist loadfile --no-loadscope-reorder --max-worker-restart 0 $(if $(COVERAGE),--cov --cov-append --cov-report=)
# A third process uses two cores while others wait for servers and pauses.
PROCESSES ?= 3
SEED := $(shell date +%s)
# Folders with long files first, those with many short ones last, so that no process is left with a long one.
TESTS := tests/corpus/jats tests/vocab $(filter-out tests/vocab/ tests/corpus/,$(wildcard tests/*/)) \
  $(filter-out tests/corpus/jats/,$(wildcard tests/corpus/*/)) $(wildcard tests/corpus/test_*.py)

# The files that have quick tests: each process of a run reads all files that it is given.
QUICK_TESTS = $(foreach folder,$(TESTS),\
  $(sort $(shell grep -rL '^pytestmark = .*thorough' --include='test_*.py' $(folder))))

# The files that have others.
THOROUGH_TESTS = $(foreach folder,$(TESTS),\
  $(sort $(shell grep -rlE 'thorough|needs_data|@given' --include='test_*.py' $(folder))))

# Print the first interpreter that can make environments and of whose version this is true.
find_python = for name in $(or $(PYTHON),$(PYTHONS)); do \
  "$$name" -c 'import ensurepip, sys, venv; sys.exit(not ($(if $(PYTHON),sys.version_info >= (3, 11),$(1))))' \
  2>/dev/null && echo "$$name" && exit; done; false
NO_PYTHON = bioshards needs Python 3.11 to 3.14 with its venv module, and none of these is one: \
  $(or $(PYTHON),$(PYTHONS)). Install one (on Debian and Ubuntu: python3 and python3-venv), or name one: \
  make PYTHON=/path/to/python3

.PHONY: run vocab examples train evaluate test test-all test-thorough test-scispacy engines lint types check bench
.PHONY: coverage mutants docs wheel image push clean release-check

run: $(VENV)/.core
	$(BIN)/beam run pubmed_to_shards --input corpus/sample/pubmed --input corpus/sample/topics --output $(OUT)/pubmed
	$(BIN)/beam run pmc_to_shards --output $(OUT)/pmc --find-overlap-with $(OUT)/pubmed

vocab: $(VENV)/.vocab $(if $(filter $(OUT)/%,$(SHARDS)),run)
	$(BIN)/bioshards vocab build $(SHARDS) --output $(VOCAB) --size $(SIZE)

examples: $(VENV)/.vocab $(if $(filter $(OUT)/%,$(VOCAB)),vocab)
	$(BIN)/beam run shards_to_pretraining $(foreach shards,$(SHARDS),--input $(shards)) --vocab $(VOCAB) \
	  --preset $(PRESET) $(EXAMPLES_RECIPE) --validation-fraction $(VALIDATION) --output $(EXAMPLES)

train: $(VENV)/.train $(if $(filter $(OUT)/%,$(EXAMPLES)),examples)
	$(BIN)/bioshards train $(EXAMPLES) --vocab $(VOCAB) --preset $(MODEL) --output $(RUN) $(TRAIN_RECIPE)

evaluate: $(VENV)/.train $(if $(filter $(OUT)/%,$(CHECKPOINT)),train)
	$(BIN)/bioshards evaluate run $(CHECKPOINT) --benchmarks $(DATA) --tasks $(TASKS) --seeds $(SEEDS) \
	  --output $(SCORES) $(RECIPE)
	$(BIN)/bioshards evaluate report $(SCORES) --output $(SCORES)

test: $(VENV)/.dev
	@$(PYTEST) -m "not thorough" $(if $(filter file,$(origin TESTS)),$(QUICK_TESTS),$(TESTS))

test-all: test test-thorough

# All others, and those with generated examples again, with all of their examples, other ones in each run:
# make test-thorough SEED=... draws those of an earlier run again.
test-thorough: $(VENV)/.dev
	HYPOTHESIS_PROFILE=full $(PYTEST) -m "thorough or property" --hypothesis-seed=$(SEED) \
	  $(if $(filter file,$(origin TESTS)),$(THOROUGH_TESTS),$(TESTS))

test-scispacy: $(VENV)-scispacy/.made
	$(VENV)-scispacy/bin/python -m pytest -m scispacy \
	  tests/corpus/sentences/test_splitters.py tests/pipelines/pubmed_to_shards/test_text_options.py

# ENGINES="prism flink" tries these only.
ENGINES ?=
engines: $(VENV)/.dev
	@failed=0; $(BIN)/python -m tests.engines.manifests || failed=1; \
	  $(BIN)/python -m tests.engines $(ENGINES) || failed=1; exit $$failed

check: lint test

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/hadolint docker/Dockerfile
	@$(MAKE) --no-print-directory types

types: $(VENV)/.dev
	$(BIN)/lint-imports --no-cache
	$(BIN)/mypy

bench: $(VENV)/.bench
	$(BIN)/python -m tests.bench.bench_corpus
	$(BIN)/python -m tests.bench.bench_text
	$(BIN)/python -m tests.bench.bench_sentences
	$(BIN)/python -m tests.bench.bench_vocab
	$(BIN)/python -m tests.bench.bench_pretraining_sets
	$(BIN)/python -m tests.bench.bench_batches
	$(BIN)/python -m tests.bench.bench_contamination
	$(BIN)/python -m tests.bench.bench_near_duplicates
	$(BIN)/python -m tests.bench.bench_scale

coverage: $(VENV)/.dev
	$(BIN)/coverage erase
	@$(MAKE) --no-print-directory test-all COVERAGE=1
	$(BIN)/coverage report --fail-under=92

mutants: $(VENV)/.dev
	$(BIN)/python -m tests.mutants $(FILE) $(if $(filter command,$(origin TESTS)),--tests $(TESTS)) $(if $(SAMPLE),--sample $(SAMPLE))

docs: $(VENV)/.dev
	$(BIN)/python -m sphinx --quiet --fail-on-warning -c docs --builder html . build/docs

wheel: $(VENV)/.dev
	$(BIN)/python -m build --wheel --outdir dist .

RELEASE := build/release
release-check: $(VENV)/.dev
	rm -rf $(RELEASE)
	$(BIN)/python -m build --outdir $(RELEASE)/dist .
	$(BIN)/python -m twine check --strict $(RELEASE)/dist/*
	$(BIN)/python -m venv $(RELEASE)/venv
	$(RELEASE)/venv/bin/python -m pip install --quiet --constraint constraints.txt $(RELEASE)/dist/*.whl
	cd $(RELEASE) && venv/bin/bioshards --version && venv/bin/bioshards doctor run && \
	  venv/bin/beam run pubmed_to_shards --output shards && venv/bin/python -c \
	  "import bioshards; assert len(bioshards.open_documents('shards')) == 77; print('the release works')"

image: $(IMAGES:%=image/%)
	@echo 'Built: $(foreach image,$(IMAGES),$(call NAME,$(image)))'
	@echo '$(if $(REGISTRY),make push brings,With REGISTRY=HOST/PROJECT/REPOSITORY make push brings) them there.'

$(IMAGES:%=image/%): image/%:
	$(BUILD) --target $* --tag $(call NAME,$*) .

push: $(IMAGES:%=push/%)

push/%:
	$(if $(REGISTRY),,$(error say where to: make push REGISTRY=HOST/PROJECT/REPOSITORY))
	$(DOCKER) push $(call NAME,$*)

clean:
	rm -rf $(VENV) $(VENV)-scispacy build dist out *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis

# An environment is made once, and again only when what it is made from has changed.
$(VENV)/.python:
	@python=$$($(call find_python,(3, 11) <= sys.version_info < (3, 15))) || { echo "$(NO_PYTHON)" >&2; exit 1; }; \
	  echo "environment: $(VENV), of $$python ($$($$python --version))"; $$python -m venv $(VENV)
	@touch $@

# scispaCy needs numpy below 2 and Python below 3.13.
$(VENV)-scispacy/.made: pyproject.toml constraints-scispacy.txt
	@python=$$($(call find_python,(3, 11) <= sys.version_info < (3, 13))) || { echo "$(NO_PYTHON)" >&2; exit 1; }; \
	  echo "environment: $(VENV)-scispacy, of $$python ($$($$python --version))"; \
	  $$python -m venv $(VENV)-scispacy
	$(VENV)-scispacy/bin/python -m pip --disable-pip-version-check install --quiet --constraint \
	  constraints-scispacy.txt --editable '.[scispacy,treebank,vocab]' hypothesis jsonschema pytest pytest-timeout
	touch $@

$(VENV)/.core: $(VENV)/.python pyproject.toml constraints.txt
	$(PIP) --constraint constraints.txt --editable .
	touch $@

$(VENV)/.vocab: $(VENV)/.core
	$(PIP) --constraint constraints.txt --editable '.[vocab]'
	touch $@

$(VENV)/.torch: $(VENV)/.python
	$(if $(filter cpu,$(TORCH)),$(PIP) --no-deps --index-url $(TORCH_INDEX) --constraint constraints.txt torch || \
	  { echo "$(TORCH_INDEX) has no torch for this machine or does not answer: leave TORCH=cpu out" >&2; exit 1; })
	touch $@

$(VENV)/.train: $(VENV)/.vocab $(VENV)/.torch
	$(PIP) --constraint constraints.txt --editable '.[vocab,train]'
	touch $@

$(VENV)/.dev: $(VENV)/.python $(VENV)/.torch pyproject.toml constraints.txt
	$(PIP) --constraint constraints.txt --editable '.[dev]'
	touch $@ $(VENV)/.core $(VENV)/.vocab $(VENV)/.train

$(VENV)/.bench: $(VENV)/.dev
	$(PIP) --constraint constraints.txt --editable '.[dev,bench]'
	touch $@
