# Everything here makes its own virtual environment in .venv; only python3 (3.11 or newer) and make are needed.

PYTHON ?= python3
BIN := .venv/bin
ARGS ?=

.PHONY: demo test test-slow lint bench gallery pictures docs clean

demo: .venv/ready  ## a crowd of devices, and what is learnt from it; ARGS=--exit
	$(BIN)/hubbub demo $(ARGS)

test: lint  ## everything that has to be green
	$(BIN)/pytest -m "not slow" --numprocesses 2 --dist loadscope --cov $(ARGS)

test-slow: .venv/ready  ## the longer proofs
	$(BIN)/pytest -m slow --numprocesses 2 --dist loadscope $(ARGS)

lint: .venv/ready  ## style, types and who may import whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/ready  ## us beside everybody, in one run: docs/benchmarks.md; ARGS=client for one alone
	$(BIN)/python -m benchmarks $(ARGS)

gallery: .venv/ready  ## every experiment, its figure and docs/gallery.md
	$(BIN)/python -m hubbub.simulations.gallery docs $(ARGS)

pictures: .venv/ready  ## the pictures of the dashboard in docs/pictures; needs chromium
	PYTHONPATH=tests $(BIN)/python -m browser.screenshots docs/pictures

docs: .venv/ready-docs  ## the documentation as a site, in site/; warnings are errors, so never --quiet
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

clean:
	rm -rf .venv site

.venv/ready-docs: .venv/ready
	$(BIN)/python -m pip install --quiet --group docs
	touch $@

.venv/ready: pyproject.toml Makefile
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "hubbub needs Python 3.11 or newer: make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable ".[collector]" --group dev
	touch $@
