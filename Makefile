# Everything is installed in .venv from requirements.lock (hashes, no index URL), before the first target that needs it.
PYTHON ?= python3
UV_VERSION := $(shell sed -n 's/^uv==\([0-9.]*\).*/\1/p' requirements.lock)
BIN := .venv/bin
KAFKA ?=
PACKAGES := kafkatrial chaos conformance fixtures reports linearizability reference_broker

.PHONY: trial install test nightly lint docs lock clean
.DEFAULT_GOAL := trial

trial: .venv/.synced    ## run the conformance suite on the reference broker, and on Apache Kafka too with KAFKA=4.3.1
	@$(BIN)/python make.py trial $(if $(KAFKA),--kafka $(KAFKA))

install: .venv/.synced  ## only install everything in .venv

test: .venv/.synced     ## everything that CI runs
	@$(BIN)/python make.py test

nightly: .venv/.synced  ## hours: every part of the sampled tests, hundreds of thousands of histories, two hours of fuzzing, an hour of chaos
	@$(BIN)/pytest -m "nightly or sampled" -o faulthandler_timeout=0
	@$(BIN)/pytest -m chaos --target=reference --target=apache-kafka:4.3.1
	@$(BIN)/kafkatrial nightly --minutes 60

lint: .venv/.synced
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tools.language

docs: .venv/.synced     ## generate docs/kafka-classes.md from the module headers of the reference broker
	$(BIN)/python -m tools.kafka_classes

lock:                   ## resolve requirements.lock again from pyproject.toml
	$(BIN)/uv pip compile pyproject.toml --universal --generate-hashes --all-extras --group dev \
	  --no-emit-index-url --no-header --quiet -o requirements.lock

clean:
	rm -rf .venv build dist

.venv/.synced: requirements.lock pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@$(BIN)/uv pip sync --quiet --require-hashes --compile-bytecode requirements.lock
	@$(BIN)/uv pip install --quiet --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q $(PACKAGES)    # as pip does for a wheel, because a run starts many processes
	@touch $@
