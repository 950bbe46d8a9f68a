# Each target does all the set-up it needs.  `make` alone tells what there is.
VENV := .venv
BIN := $(VENV)/bin
PYTEST_ARGS ?=

.PHONY: help demo test lint soak bench bench-detection clean

help:
	@echo 'make demo   watch a recorded run live: the messages a team would get, in under a minute'
	@echo 'make test   linters, type checks and the whole test suite'
	@echo 'make soak   the same, with 10,000 file histories, 720 kills, 10,000 fuzzed lines of each form, ten minutes of silence'
	@echo 'make bench  all benchmarks, one table each (make bench-detection: those of the detector alone)'
	@echo 'make clean  remove the virtual environment and caches'

$(VENV)/.installed: pyproject.toml .ci/setup
	@.ci/setup

$(VENV)/.dev: pyproject.toml .ci/setup
	@.ci/setup dev

demo: $(VENV)/.installed
	@$(BIN)/verlwatch demo

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: $(VENV)/.dev
	@.ci/test $(PYTEST_ARGS)

soak: $(VENV)/.dev
	VERLWATCH_SOAK=1 $(BIN)/pytest $(PYTEST_ARGS)

bench: $(VENV)/.dev bench-detection
	for script in benchmarks/[!_]*.py; do $(BIN)/python $$script || exit 1; done

bench-detection: $(VENV)/.dev
	for script in score peers months tcpd; do $(BIN)/python benchmarks/detection/$$script.py || exit 1; done

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +
