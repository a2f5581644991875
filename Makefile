# Everything runs in .venv; README.md says how it is made.
PYTHON ?= .venv/bin/python
BIN := $(dir $(PYTHON))

.PHONY: test lint types contracts format lock bench crash fuzz

test:
	$(PYTHON) -m pytest

lint:
	$(BIN)ruff check .
	$(BIN)ruff format --check .

format:
	$(BIN)ruff check --fix .
	$(BIN)ruff format .

types:
	$(BIN)mypy --strict

contracts:
	$(BIN)lint-imports

# Pins every package of every platform by hash; names no index, so it works against any mirror.
LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --no-header --no-annotate pyproject.toml
lock:
	$(PYTHON) -m pip install --quiet uv
	$(BIN)$(LOCK) --output-file requirements/run.txt
	$(BIN)$(LOCK) --group dev --constraint requirements/run.txt --output-file requirements/dev.txt

crash:
	SHAPEUP_CRASH_FULL=1 $(PYTHON) -m pytest -s tests/crash

fuzz:
	SHAPEUP_FUZZ_EXAMPLES=10000 $(PYTHON) -m pytest $$(grep -rl --include='test_*.py' SHAPEUP_FUZZ_EXAMPLES tests)

bench:
	for file in tests/benchmarks/bench_*.py; do env -i PATH="$$PATH" HOME="$$HOME" $(PYTHON) $$file || exit 1; done
