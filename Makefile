# Every target builds the environment it needs in .venv first; `make` alone lists the targets.
PYTHON ?= python3
VENV   ?= .venv
JOBS   ?= 2

BIN  := $(VENV)/bin
PY   := $(BIN)/python
PIP  := $(PY) -m pip --disable-pip-version-check

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test coverage lint format check-cuda docs bench wheel clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.ready ## check this machine, then run four calculations and write an HTML report
	@$(BIN)/cuanto doctor
	@sh tools/demo.sh $(BIN)/cuanto $(PY)

test: $(VENV)/.ready-test ## run the whole CPU test suite
	$(PY) -m pytest -n $(JOBS) $(PYTEST_ARGS)

coverage: $(VENV)/.ready-test ## the test suite with line coverage of src/; fails below 98 %
	$(PY) -m pytest -n $(JOBS) --cov --cov-report=term-missing:skip-covered $(PYTEST_ARGS)

lint: $(VENV)/.ready-test ## format, lint, types and layers of imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: $(VENV)/.ready-test ## format the sources
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

check-cuda: $(VENV)/.ready-test ## compile all CUDA kernels up to l = 3 (four centres: 2) with NVRTC; no GPU needed
	$(PY) tools/check_cuda.py --jobs $(JOBS)

docs: $(VENV)/.ready-docs ## build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo site/index.html

bench: $(VENV)/.ready-test ## time the three-centre integrals of octadecane beside PySCF
	$(PY) benchmarks/three_centre.py

wheel: $(VENV)/.ready ## build the wheel into dist/
	$(PIP) wheel --quiet --no-deps --wheel-dir dist .
	@ls -l dist/*.whl

clean: ## remove everything the targets created, including the environment
	rm -rf $(VENV) build dist site .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests examples tools -name __pycache__ -type d -prune -exec rm -rf {} +

# One environment, three levels of extras; a level is installed again when pyproject.toml changes.
$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "cuanto needs Python 3.11 or later; try: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.ready: pyproject.toml | $(PY)
	$(PIP) install --quiet --editable .
	@touch $@

$(VENV)/.ready-test: pyproject.toml | $(PY)
	$(PIP) install --quiet --editable '.[test]'
	@touch $@ $(VENV)/.ready

$(VENV)/.ready-docs: pyproject.toml | $(PY)
	$(PIP) install --quiet --editable '.[docs]'
	@touch $@ $(VENV)/.ready
