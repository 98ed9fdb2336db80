# make demo     set up, then text -> records -> pre-training -> SavedModel -> answers, offline
# make test     set up, then the default tests; `make lint` is the style
# make test-slow   the slow tests: whole trainings, exports of each kind, the pages of the documentation
# make test-newer  the default tests with TensorFlow 2.21 and Keras 3; test-newer-slow the main slow ones
# make test-beam   the tests of the build with Apache Beam, in an environment of its own
# make test-all    all of these
# make docs     the documentation as a site that works offline, in build/docs
# make test-wheel  the tests with the built wheel in an environment of its own, without the repository
# make release-check  build and check what is published, use it in each Python that is here
# make check-tpu  compile the training step for six TPUs, without one; docs/tpu.md
# make check-gpu  compare a GPU with the CPU in four minutes; docs/gpu.md
# make requirements  write the pinned packages again after a change of pyproject.toml
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# The first of these that can make virtual environments is used; `make setup PYTHON=python3.13`
# chooses. Python 3.11 and 3.10 come first, because they get TensorFlow 2.15, with which everything
# is checked, including TPUs, keras-nlp and the server image. The others get
# TensorFlow 2.21; of these, Python 3.13 is maintained longest.
PYTHON ?= python3.11 python3.10 python3.13 python3.12 python3 python
VENV_NEWER ?= .venv-newer
PYTHON_NEWER ?= python3.13 python3.12
# Slow tests that run with both TensorFlows: the whole path, exports, serving, clusters, the pages,
# and text models beside models of Keras.
SLOW_NEWER := tests/test_end_to_end.py tests/albert_keras/test_families_end_to_end.py \
  tests/albert_keras/serving tests/albert_keras/training tests/documentation/test_pages_run.py \
  tests/albert_keras/models/test_losses.py tests/albert_keras/models/test_text_training.py \
  tests/albert_keras/tasks/test_text_model.py tests/albert_keras/optimization/test_in_keras_models.py
# Tests that need Apache Beam.
BEAM := tests/data_pipeline/building/test_beam.py tests/albert_keras/cli/test_data_build.py
DEMO ?= runs/demo
VENV_TPU ?= .venv-tpu
READY_TPU := $(VENV_TPU)/.ready
VENV_BEAM ?= .venv-beam
VENV_DOCS ?= .venv-docs
READY_DOCS := $(VENV_DOCS)/.ready
export TF_CPP_MIN_LOG_LEVEL ?= 2
# The tests start many processes. Without files of bytecode each one compiles all sources again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo test test-slow test-wheel release-check test-all test-newer test-newer-slow test-both test-beam docs check-tpu check-gpu lint format clean requirements
.DEFAULT_GOAL := help

help:
	@sed -n 's/^# make/make/p' Makefile

setup: $(READY)

COMPILE := uv pip compile --universal --python-version 3.10 --no-annotate --generate-hashes \
  --custom-compile-command "see CONTRIBUTING.md, Set-up"

# The site needs the packages of the extra `docs` alone.
requirements: $(READY)
	$(COMPILE) $(UPGRADE) --extra dev pyproject.toml -o requirements.txt
	$(BIN)/python -c "import tomllib; project = tomllib.load(open('pyproject.toml', 'rb'))['project']; \
	  print(*project['optional-dependencies']['docs'], sep='\n')" | \
	  $(COMPILE) $(UPGRADE) - -o docs/site/requirements.txt

demo: $(READY)
	$(BIN)/albert-keras demo --out $(DEMO)

# The tests run in three processes, because some tests wait. Each test file runs in one process,
# because its tests share costly fixtures. tests/conftest.py starts with the longest files.
IN_PROCESSES := -n 3 --dist loadfile --no-loadscope-reorder --max-worker-restart 0 --durations 10

test: $(READY)
	$(BIN)/python -m pytest $(IN_PROCESSES)

# They build the site, too.
test-slow: $(READY) $(READY_DOCS)
	ALBERT_KERAS_DOCS_PYTHON="$(abspath $(VENV_DOCS))/bin/python" $(BIN)/python -m pytest $(IN_PROCESSES) -m slow

test-all: test test-slow test-both test-newer-slow test-beam

test-newer:
	$(MAKE) setup VENV="$(VENV_NEWER)" PYTHON="$(PYTHON_NEWER)"
	$(VENV_NEWER)/bin/python -m pytest $(IN_PROCESSES)

# The slow tests of the whole path, exports, serving, training and the pages on the newer line.
test-newer-slow:
	$(MAKE) setup VENV="$(VENV_NEWER)" PYTHON="$(PYTHON_NEWER)"
	$(VENV_NEWER)/bin/python -m pytest $(IN_PROCESSES) -m slow $(SLOW_NEWER)

# The slow tests that use both TensorFlows.
test-both: test-newer $(READY)
	ALBERT_KERAS_OTHER_PYTHON="$(abspath $(VENV_NEWER))/bin/python" $(BIN)/python -m pytest -m slow \
	  tests/test_both_tensorflows.py

# Beam has requirements of its own, which pip adds to those of the project.
test-beam:
	$(MAKE) setup VENV="$(VENV_BEAM)"
	$(VENV_BEAM)/bin/python -m pip install --quiet --disable-pip-version-check --no-build-isolation -e '.[beam]'
	$(VENV_BEAM)/bin/python -m pytest -m "slow or not slow" --durations 10 $(BEAM)

docs: $(READY_DOCS)
	NO_MKDOCS_2_WARNING=1 $(VENV_DOCS)/bin/python -m mkdocs build --quiet -f docs/site/mkdocs.yml
	@echo "docs: open build/docs/index.html"

# The archives stay in build/release. The wheel is installed with the newest packages that it allows;
# ARGS=--quick uses one Python of each line, with an answer only, ARGS=--no-demo omits the demo.
release-check: $(READY)
	$(BIN)/python -m tests.release_check $(ARGS)

# The folder of the test has the tests and their settings only.
test-wheel: $(READY)
	@set -e; folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; \
	$(BIN)/python -m tests.release_check --only-build --out "$$folder/dist"; \
	$(BIN)/python -m venv "$$folder/venv"; python="$$folder/venv/bin/python -m"; \
	$$python pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt; \
	$$python pip install --quiet --disable-pip-version-check --no-deps "$$folder"/dist/*.whl; \
	cp -r tests pyproject.toml "$$folder"; cd "$$folder"; $$python pytest $(IN_PROCESSES) $(ARGS)

check-tpu: $(READY) $(READY_TPU)
	$(BIN)/python -m tests.tpu_check --compiler $(VENV_TPU)/bin/python $(ARGS)

check-gpu: $(READY)
	$(BIN)/python -m tests.gpu_check

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) $(VENV_NEWER) $(VENV_BEAM) $(VENV_TPU) $(VENV_DOCS) build *.egg-info

# If there is no Python of `PYTHON`, uv installs one, unless the user set `PYTHON`.
$(READY): requirements.txt pyproject.toml
	@set -e; \
	if [ ! -x $(BIN)/python ]; then \
	  found=; \
	  for name in $(PYTHON); do \
	    if $$name -c 'import ensurepip, sys, venv; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' \
	        >/dev/null 2>&1; then found=$$name; break; fi; \
	  done; \
	  if [ -n "$$found" ]; then \
	    echo "setup: making $(VENV) with $$found ($$($$found --version))"; \
	    $$found -m venv $(VENV); \
	  elif [ "$(origin PYTHON)" != file ]; then \
	    echo "setup: PYTHON must be Python 3.10, 3.11, 3.12 or 3.13 with the module venv; TensorFlow has no wheels for others. Received: $(PYTHON)"; \
	    exit 1; \
	  else \
	    echo "setup: no Python 3.10, 3.11, 3.12 or 3.13 here; getting 3.11 through uv"; \
	    if ! command -v uv >/dev/null 2>&1; then \
	      python3 -m venv $(VENV)-uv && $(VENV)-uv/bin/pip install --quiet uv && PATH="$(VENV)-uv/bin:$$PATH" \
	        || { echo "setup: install uv (https://docs.astral.sh/uv) or Python 3.10 to 3.13, then run make again"; exit 1; }; \
	    fi; \
	    uv venv --quiet --seed --python 3.11 $(VENV); \
	  fi; \
	else echo "setup: bringing $(VENV) up to date"; fi
	@echo "setup: installing requirements.txt, about 2 GB, a minute or more the first time"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(READY)
	@echo "setup: $(VENV) is ready"

# The TPU's compiler needs other packages than TensorFlow does.
$(READY_TPU): tests/tpu_check/requirements.txt | $(READY)
	@echo "check-tpu: installing the TPU compiler in $(VENV_TPU), about 1 GB"
	@$(BIN)/python -m venv --clear $(VENV_TPU)
	@$(VENV_TPU)/bin/python -m pip install --quiet --disable-pip-version-check -r $< \
	  || { echo "check-tpu: $< could not be installed; it needs pip and access to PyPI"; exit 1; }
	@touch $(READY_TPU)

# The site reads the sources and imports nothing of them, so it needs no TensorFlow.
$(READY_DOCS): docs/site/requirements.txt
	@echo "docs: installing MkDocs in $(VENV_DOCS), about 50 MB"
	@$(or $(wildcard $(BIN)/python),python3) -m venv --clear $(VENV_DOCS)
	@$(VENV_DOCS)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $< \
	  || { echo "docs: $< could not be installed; it needs pip and access to PyPI"; exit 1; }
	@touch $(READY_DOCS)
