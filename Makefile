# Two commands to know: `make demo` and `make test`. Each prepares what it needs in .venv; a second call is quick.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
MARKS := $(VENV)/.installed
ROOM ?=
# One more than the cores of a small machine: many tests wait for programs and clocks.
WORKERS ?= 3
# How many random examples the laws are tried with: quick, ci (as the tests say) or nightly (ten times as many).
PROFILE ?= quick
# Workers take whole stretches of the tests, so of few rooms; one that is done takes half of what another has left.
PYTEST := -m pytest -n $(WORKERS) --dist worksteal
NAMES ?=
OLD ?=
REPEATS ?= 3
OPTIONS ?=
SYSTEMS := rover-homing akrobat-free-gait scitos-no-obstacles cell-collaboration youbot-pick-place-loop
export MPLBACKEND := Agg
export NO_MKDOCS_2_WARNING := 1

# The first Python that the package supports; PYTHON=/path/to/python chooses another.
PYTHON ?= $(shell for name in python3 python3.13 python3.12 python3.11; do \
	command -v $$name >/dev/null && \
	$$name -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null && \
	echo $$name && break; done)

.PHONY: help demo view gallery benchmarks compare test test-slow test-ros acceptance nightly bytecode lint structure docs \
	serve-docs lock format clean

help: ## what can be made
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 18

demo: $(MARKS)/base ## install, let the rover come home when its link is lost, and say where report and video lie
	$(BIN)/roboyard run rover-homing --video

view: $(MARKS)/base ## the same at real time in a browser: open the address that it prints
	$(BIN)/roboyard run rover-homing --view

gallery: $(MARKS)/e2e ## the gallery's pictures and clips anew, from real runs (needs /usr/bin/chromium)
	$(BIN)/python tools/gallery.py

benchmarks: $(MARKS)/bench ## docs/benchmarks.md anew (NAMES="bus ik" for some, REPEATS=5, OPTIONS="--data DIR")
	$(BIN)/python tools/bench.py $(NAMES) --repeats $(REPEATS) $(if $(OPTIONS),-- $(OPTIONS))

compare: $(MARKS)/base ## all smoke variants here against OLD=REVISION, message by message (OPTIONS="--scenarios rover-drive")
	@[ -n "$(OLD)" ] || { echo "make: OLD is missing (OLD=REVISION, a commit, branch or tag)" >&2; exit 2; }
	$(BIN)/python tools/compare_recordings.py $(OLD) $(OPTIONS)

test: $(MARKS)/test bytecode ## the quick tests (ROOM=geometry for one room's)
	$(BIN)/python $(PYTEST) --hypothesis-profile $(PROFILE) tests/$(ROOM)

test-slow: $(MARKS)/test bytecode ## the slow tests
	$(BIN)/python $(PYTEST) -m slow tests/$(ROOM)

test-ros: $(MARKS)/test bytecode ## the bridges with programs that others wrote, as far as they can be installed here
	$(BIN)/python tools/ros_peers.py
	$(BIN)/python -m pytest -m ros -rs tests/bridges

acceptance: $(MARKS)/base ## every scenario's short variant, then the five systems whole, and a report of each in runs/: five to ten minutes
	$(BIN)/roboyard batch all --smoke --runs 2 --no-video
	$(BIN)/roboyard batch $(SYSTEMS) --runs 3 --no-video

nightly: $(MARKS)/test ## all laws with ten times the examples, every scenario whole five times, and a report in runs/: hours
	$(BIN)/python $(PYTEST) --hypothesis-profile nightly -m "slow or not slow" --timeout 7200 tests
	$(BIN)/roboyard batch all --runs 5

# Once for all the programs that tests start, which may be forbidden to keep what they compile.
bytecode: | $(BIN)/python
	@$(BIN)/python -m compileall -q src

lint: $(MARKS)/dev ## style, types, which room may import which, and that no count of `make structure` rose
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/structure.py

structure: | $(BIN)/python ## cycles, names, sizes and signatures of each room, counted (tools/structure.py --help)
	@$(BIN)/python tools/structure.py --table

format: $(MARKS)/dev ## let ruff lay out and mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(MARKS)/docs ## build the pages into site/
	$(BIN)/mkdocs build --strict
	@echo "the pages lie in site/index.html"

serve-docs: $(MARKS)/docs ## show the pages while they are written
	$(BIN)/mkdocs serve

lock: $(MARKS)/base ## resolve all dependencies anew into requirements.lock
	$(BIN)/python tools/lock.py

clean: ## remove the environment and what was built; runs/ stays
	rm -rf $(VENV) site dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .structure_cache

$(BIN)/python:
	@if command -v uv >/dev/null; then uv venv --quiet --seed --python $(or $(PYTHON),3.12) $(VENV); \
	elif [ -n "$(PYTHON)" ]; then $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo "make: Python's venv module is missing (on Debian: apt install python3-venv)" >&2; exit 2; }; \
	else echo "make: no Python from 3.11 to 3.13 was found; PYTHON=/path/to/python names one" >&2; exit 2; fi

# One mark for each set of extras. `lint` needs what `test` has too: the checkers read the tests.
$(MARKS)/base: EXTRAS := video
$(MARKS)/test: EXTRAS := test
$(MARKS)/dev: EXTRAS := test dev
$(MARKS)/docs: EXTRAS := docs
$(MARKS)/e2e: EXTRAS := video e2e
$(MARKS)/bench: EXTRAS := bench gym mesh ros2
$(MARKS)/%: pyproject.toml requirements.lock | $(BIN)/python
	@echo "installing roboyard with $(EXTRAS) into $(VENV)"
	@if command -v uv >/dev/null; then \
		uv pip install --quiet --python $(BIN)/python --constraints requirements.lock \
			$(EXTRAS:%=--editable '.[%]') && $(BIN)/python tools/bytecode.py; \
	else \
		$(BIN)/python tools/install.py $(EXTRAS); \
	fi
	@mkdir -p $(@D) && touch $@
