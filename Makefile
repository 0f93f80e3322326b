# Everything a developer or an operator starts from. Needs make and Python 3.11 or newer, nothing else.

PYTHON ?= python3
ARGS ?=

BIN := .venv/bin
RUN_STAMP := .venv/.run-stamp
DEV_STAMP := .venv/.dev-stamp
BENCH_STAMP := .venv-bench/.stamp
S3_STAMP := .venv-s3/.stamp
INSTALL := $(BIN)/python -m pip install -q --disable-pip-version-check
# A lock names everything, also what it leaves out (release/left-out.txt), so nothing else is looked for.
LOCKED := --no-deps --require-hashes
# One version of each library for every Python (`fewest`): what is tested on 3.11 is what 3.13 gets.
LOCK := $(BIN)/uv pip compile -q --universal --python-version 3.11 --fork-strategy fewest --generate-hashes --no-header \
	--no-emit-index-url --no-emit-find-links

# What environments may have set, and what would compile everything anew in each of the tests' many processes.
unexport PYTHONDONTWRITEBYTECODE

# Two fifths of the time is spent in waiting, so one worker more than there are cores.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)

PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal
# In CI, what failed is run once more by itself, and named: processes, browsers and databases share its few cores.
AGAIN := -m tests.again -n $(WORKERS) --dist worksteal
PYTEST_AGAIN := $(BIN)/python $(AGAIN)

.PHONY: run demo lint unit test newest newest-dependencies verify web web-all cover simulate fuzz mutate bench soak crash chaos powerloss binary release cut upgrade-data format docs sdk site explorer vendor panel languages web-types web-lint clients containers image audit lock clean

run: $(RUN_STAMP)
	$(BIN)/deskwire serve --data ./data $(ARGS)

demo: $(RUN_STAMP)
	$(BIN)/deskwire demo --desk $(ARGS)

# The loops, from the shortest to the longest; how long each takes is in CONTRIBUTING.md.
lint: $(DEV_STAMP)
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

# The tests of the layers that start no process and no listener, and take no second.
UNITS := tests/engine tests/http tests/storage tests/program tests/repository

unit: $(DEV_STAMP)
	$(PYTEST) -m "unit and not thorough" $(UNITS) $(ARGS)

test: lint
	$(PYTEST_AGAIN) -m "not long and not web" $(ARGS)

# The tests with the newest Python at hand that is supported, in an environment of its own; what CI runs of them is in .ci/run.
NEWEST ?= $(shell .ci/newest-python)

newest:
	@test -n "$(NEWEST)" || { echo "There is no newer Python here that is supported; name one: make newest NEWEST=python3.13"; exit 1; }
	@$(NEWEST) -m venv --clear .venv-newest
	@for each in run build dev; do .venv-newest/bin/python -m pip install -q --disable-pip-version-check $(LOCKED) -r requirements/$$each.txt || exit 1; done
	@.venv-newest/bin/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	.venv-newest/bin/python $(AGAIN) -m "not long and not web" $(ARGS)

# What `pip install` takes without the locks: a few tests with the newest dependencies that pyproject.toml allows, in an
# environment of their own, if one of them is not the locked one. ARGS=--where-reached passes where no index can be reached.
newest-dependencies: $(DEV_STAMP)
	@$(BIN)/python -m tests.newest_dependencies $(ARGS)

# What of the engine and the API is tested on PostgreSQL too, each test with a database of its own.
ON_POSTGRES := $(addprefix tests/engine/,privacy search events stream agents importing uploads idempotency) \
	$(addprefix tests/api/,accounts audit contacts conventions customers desk inbox operating privacy reports search \
	snippets tickets translations uploads webhooks workflows)

# What `test` and `web` leave out: crashes, losses of power, simulated lives, what others publish, other examples of the
# property tests in each run, and all browser tests. The S3 is for both: `test`
# skips what needs it where its environment was never made. The examples in other languages are for `clients`.
verify: $(DEV_STAMP) $(S3_STAMP)
	$(PYTEST_AGAIN) -m "long or s3" --ignore=tests/examples $(ARGS)
	RANDOM_EXAMPLES=1 $(PYTEST) -m "hypothesis and not long and not web" $(ARGS)
	$(PYTEST_AGAIN) -m "not long and not web and not sqlite" --store postgres $(ON_POSTGRES) $(ARGS)
	$(MAKE) web-all

# Which branches no test of `test` takes, in build/coverage; those in processes of their own are not seen.
cover: $(DEV_STAMP)
	$(PYTEST) -m "not long and not web" --cov --cov-report=html:build/coverage --cov-report=term:skip-covered $(ARGS)

# The property tests with many more examples, other ones in each run; what fails is printed so that it can be played again.
fuzz: $(DEV_STAMP)
	RANDOM_EXAMPLES=1 FUZZ_FACTOR=20 MODEL_EXAMPLES=500 $(PYTEST) tests/model tests/protocol/test_http_bytes.py \
	  tests/api/conventions/test_fuzzed_requests.py tests/protocol/stream/test_fuzzed_streams.py \
	  tests/engine/webhooks/policy/test_signature_checks.py $(ARGS)

# Which small mistakes in what decides no test would notice (docs/mutation.md); ARGS are words of the modules' paths.
mutate: $(DEV_STAMP)
	PYTHONPATH=engine:http:storage nice $(BIN)/python -m tests.mutation $(ARGS)

# Lives of the whole service, one for each seed, on all cores: `make simulate SEEDS=10000 FIRST=0` for a night.
SEEDS ?= 200
FIRST ?= 0

simulate: $(DEV_STAMP)
	$(BIN)/python -m tests.simulation --seeds $(SEEDS) --first $(FIRST) $(ARGS)

# Has an environment of its own, with what Deskwire is compared with. wrk makes the load if the system has it.
bench: $(BENCH_STAMP)
	.venv-bench/bin/python -m benchmarks $(ARGS)

# Ends a server under load with SIGKILL, again and again, and checks what is there after that.
ROUNDS ?= 30

crash: $(DEV_STAMP)
	$(BIN)/python -m tests.crash.loop --rounds $(ROUNDS) $(ARGS)

# Several nodes on one PostgreSQL with a standby, and everything that can go wrong with them; for an hour by
# `make chaos ARGS="--seconds 3600"`.
chaos: $(DEV_STAMP)
	$(BIN)/python -m tests.chaos $(ARGS)

# Records what a server asks of its disk, and checks what a loss of power at any moment leaves. Linux with a C compiler.
CUTS ?= 500

powerloss: $(DEV_STAMP)
	$(BIN)/python -m tests.crash.powerloss --cuts $(CUTS) $(ARGS)

# One executable for machines without Python: dist/deskwire. The same inputs make the same bytes.
binary: $(DEV_STAMP)
	rm -rf build/wheel
	$(BIN)/python -m build --wheel --no-isolation --outdir build/wheel . > /dev/null
	$(BIN)/python -m release.binary build/wheel/*.whl dist

# What a version hands out, in dist/release, of the last commit; built twice and compared. docs/releasing.md
release: .venv/.release-stamp $(if $(shell command -v npm),tests/clients/tools/node_modules/.stamp)
	$(BIN)/python -m release $(ARGS)

# The changes of the commit that is a release, `make cut TO=0.2.0`, and of the one after it, `make cut NEXT=0.3.0`.
cut: $(DEV_STAMP)
	$(BIN)/python -m release.cut $(if $(NEXT),--next $(NEXT),--version $(TO))

# The data of the version in pyproject.toml, with which later versions are tried.
upgrade-data: $(DEV_STAMP)
	$(BIN)/python -m tests.upgrades.pack $(BASE_VERSION)

# Half the load for long, with everybody coming and going; says whether anything grows. Results: benchmarks/results/soak.*
MINUTES ?= 60

soak: $(DEV_STAMP)
	$(BIN)/python -m benchmarks.soak --minutes $(MINUTES) $(ARGS)

format: $(DEV_STAMP)
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

# The reference that the program writes about itself, the outlines of its API and commands, and the version and settings in
# the Helm chart; tests fail when they are out of date. The pages of all calls and of all commands are rendered by `make site`.
docs: $(DEV_STAMP)
	$(BIN)/deskwire config --markdown > docs/reference/settings.md
	for page in events errors metrics permissions surveys; do $(BIN)/deskwire reference $$page > docs/reference/$$page.md || exit 1; done
	$(BIN)/python -m tests.api.description.outline
	$(BIN)/python -m tests.commands.reference.outline
	$(BIN)/python -m tests.deploy.chart
	$(MAKE) sdk

# The types and resources of the SDKs, from the description that the service gives and sdk/operations.toml.
sdk: $(DEV_STAMP)
	$(BIN)/python -m sdk.generate.python
	$(BIN)/python -m sdk.generate.typescript

# docs/ as a site in build/site, whose pages need nothing from elsewhere.
site: .venv/.site-stamp
	$(BIN)/python docs/site/sources.py build/site-source
	$(BIN)/sphinx-build -q -W --keep-going -n -b html -c docs/site build/site-source build/site

# Whether an advisory names one of the pins; asks the network about each of them, in an environment of its own.
# What may pass for a while is in tests/audit/exceptions.toml; ARGS=--where-reached goes on where nobody can be asked.
audit:
	@$(PYTHON) -m venv --clear .venv-audit
	@.venv-audit/bin/python -m pip install -q --disable-pip-version-check $(LOCKED) -r requirements/audit.txt
	@.venv-audit/bin/python -m tests.audit $(ARGS)

# The explorer's two files and their licences, from their npm package; nothing that it depends on is installed or run.
SWAGGER_UI := swagger-ui-dist@5.35.0
ASSETS := http/deskwire/http/pages/assets

explorer:
	cd $(ASSETS) && npm pack --silent --ignore-scripts $(SWAGGER_UI) && tar -xzf swagger-ui-dist-*.tgz
	for file in swagger-ui-bundle.js swagger-ui.css; do gzip -9nc $(ASSETS)/package/$$file > $(ASSETS)/$$file.gz || exit 1; done
	for file in LICENSE NOTICE; do cp $(ASSETS)/package/$$file $(ASSETS)/$$file.swagger-ui || exit 1; done
	cp $(ASSETS)/package/swagger-ui-bundle.js.LICENSE.txt $(ASSETS)/
	rm -r $(ASSETS)/package $(ASSETS)/swagger-ui-dist-*.tgz

# What follows needs Node.js and npm, which nothing else does. No script of a package is run; the versions are in
# tests/web/tools and tests/web/openid, with a digest of each.
TOOLS := tests/web/tools
DESK := http/deskwire/http/pages/desk

$(TOOLS)/node_modules/.stamp: $(TOOLS)/package.json $(TOOLS)/package-lock.json
	cd $(TOOLS) && npm ci --silent --ignore-scripts
	@touch $@

# The OpenID provider that tests sign in at.
OPENID := tests/web/openid

$(OPENID)/node_modules/.stamp: $(OPENID)/package.json $(OPENID)/package-lock.json
	cd $(OPENID) && npm ci --silent --ignore-scripts
	@touch $@

# The libraries of the desk, a file each, and the licences of what is in them.
vendor: $(TOOLS)/node_modules/.stamp
	for each in preact ciphers; do (cd $(TOOLS) && node_modules/.bin/esbuild $$each.entry.js --bundle --format=esm --minify \
	  --legal-comments=none --target=es2022 --log-level=warning --outfile=$(CURDIR)/$(DESK)/vendor/$$each.js) || exit 1; done
	for each in preact htm @preact/signals @preact/signals-core @noble/ciphers; do \
	  cp $(TOOLS)/node_modules/$$each/LICENSE $(DESK)/vendor/$$(echo $$each | tr -d @ | tr / -).LICENSE || exit 1; done

# The widget's panel in few and small files. Run it after each change of its modules; a test compares the result.
panel: $(TOOLS)/node_modules/.stamp
	rm -rf $(DESK)/../widget/built
	node $(TOOLS)/widget.mjs $(CURDIR)/$(DESK)/../widget/built

# The desk's texts as modules, one for each language and part, made of their Fluent files. Run it after each change of a
# text; a test compares the result. A missing text is written in English, and named here.
languages: $(DEV_STAMP)
	@$(BIN)/python -m tests.languages.compile

# The types of the API's objects as the desk's modules know them, made from the description that the service gives.
web-types: $(TOOLS)/node_modules/.stamp $(DEV_STAMP)
	$(BIN)/python -m tests.web.tools.description > $(TOOLS)/openapi.json
	$(TOOLS)/node_modules/.bin/openapi-typescript $(TOOLS)/openapi.json --root-types --root-types-no-schema-prefix -o $(TOOLS)/api.d.ts > /dev/null
	@$(BIN)/python -m tests.web.tools.description --digest | cat - $(TOOLS)/api.d.ts > $(TOOLS)/openapi.json
	@mv $(TOOLS)/openapi.json $(TOOLS)/api.d.ts

# Whether the desk's modules keep to their types.
web-lint: $(TOOLS)/node_modules/.stamp
	$(TOOLS)/node_modules/.bin/tsc -p $(TOOLS)

# The main flows of desk and widget in the system's Chromium, and the types of their modules; fails where there is no Chromium
# or no npm. `web-all` runs all browser tests but the long ones.
web: web-lint $(OPENID)/node_modules/.stamp .venv/.web-stamp
	WEB=required $(PYTEST_AGAIN) -m "journey and not long" tests/web $(ARGS)

web-all: web-lint $(OPENID)/node_modules/.stamp .venv/.web-stamp
	WEB=required $(PYTEST_AGAIN) --dist loadfile -m "not long" tests/web $(ARGS)

# The descriptions of the API: linted, and made into clients for four languages, which call every operation; then the
# examples in six languages, and the SDK for TypeScript, also in Chromium. Needs a JDK, Ruby and PHP, too, and the
# websocket libraries that .ci/run installs. What else is installed is in tests/clients/tools and
# requirements/clients.txt; nothing is fetched besides.
CLIENT_TOOLS := tests/clients/tools

$(CLIENT_TOOLS)/node_modules/.stamp: $(CLIENT_TOOLS)/package.json $(CLIENT_TOOLS)/package-lock.json
	cd $(CLIENT_TOOLS) && npm ci --silent --ignore-scripts
	@touch $@

clients: $(CLIENT_TOOLS)/node_modules/.stamp .venv/.clients-stamp
	CLIENTS=required $(PYTEST_AGAIN) --dist loadfile tests/clients tests/examples tests/sdk/typescript $(ARGS)

# The image, built and run without an engine, and the files to deploy with, each read by the program that it is for. Needs
# Linux, root and promtool (Debian's package prometheus), and leaves out what kubectl alone could say where there is none.
containers: .venv/.containers-stamp
	CONTAINERS=required $(PYTEST_AGAIN) tests/deploy $(ARGS)

# The image as an engine builds it: deskwire:<version>, labelled with version and commit. A tag can't have a `+`.
DOCKER ?= docker
BASE_VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
VERSION = $(BASE_VERSION)$(if $(findstring .dev,$(BASE_VERSION)),+g$(shell git describe --always --abbrev=12 --dirty=.dirty --exclude '*'))

image:
	$(DOCKER) build -f docs/deploy/Dockerfile -t deskwire:$(subst +,-,$(VERSION)) --build-arg VERSION=$(VERSION) \
	  --build-arg COMMIT=$$(git describe --always --abbrev=40 --dirty --exclude '*') $(ARGS) .

# The newest versions that pyproject.toml allows; the others take their versions from dev.txt, so all agree.
lock: $(DEV_STAMP)
	$(LOCK) --upgrade --group dev pyproject.toml -o requirements/dev.txt
	$(LOCK) --upgrade -c requirements/dev.txt --override release/left-out.txt pyproject.toml -o requirements/run.txt
	for each in postgres s3; do $(LOCK) --upgrade -c requirements/dev.txt --override release/left-out.txt --extra $$each pyproject.toml -o requirements/extra-$$each.txt || exit 1; done
	for each in audit bench build clients containers peers site synapse web; do $(LOCK) --upgrade -c requirements/dev.txt --group $$each -o requirements/$$each.txt || exit 1; done
	$(LOCK) --upgrade -c requirements/dev.txt -c requirements/site.txt --group release -o requirements/release.txt
	$(LOCK) --upgrade --group s3 -o requirements/s3.txt

clean:
	rm -rf .venv .venv-audit .venv-bench .venv-newest .venv-newest-dependencies .venv-s3 build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage

# What the program itself needs; the tools of developers come on top when they are asked for.
$(RUN_STAMP): requirements/run.txt requirements/build.txt pyproject.toml
	@echo "Preparing .venv (once; about a minute) ..."
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Deskwire needs Python 3.11 or newer; try: make PYTHON=python3.12")'
	@$(PYTHON) -m venv --clear .venv
	@echo "Installing the locked dependencies ..."
	@$(INSTALL) $(LOCKED) -r requirements/run.txt
	@$(INSTALL) $(LOCKED) -r requirements/build.txt
	@$(INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

$(DEV_STAMP): $(RUN_STAMP) requirements/dev.txt
	@echo "Installing the tools of developers (once; about a minute) ..."
	@$(INSTALL) $(LOCKED) -r requirements/dev.txt
	@touch $@

$(BENCH_STAMP): requirements/run.txt requirements/build.txt requirements/bench.txt pyproject.toml
	@echo "Preparing .venv-bench (once; about a minute) ..."
	@$(PYTHON) -m venv --clear .venv-bench
	@for each in run build bench; do .venv-bench/bin/python -m pip install -q --disable-pip-version-check $(LOCKED) -r requirements/$$each.txt || exit 1; done
	@.venv-bench/bin/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(S3_STAMP): requirements/s3.txt
	@echo "Preparing .venv-s3 (once; about a minute) ..."
	@$(PYTHON) -m venv --clear .venv-s3
	@.venv-s3/bin/python -m pip install -q --disable-pip-version-check $(LOCKED) -r requirements/s3.txt
	@touch $@

.venv/.site-stamp: $(DEV_STAMP) requirements/site.txt
	@$(INSTALL) $(LOCKED) -r requirements/site.txt
	@touch $@

.venv/.web-stamp: $(DEV_STAMP) requirements/web.txt
	@$(INSTALL) $(LOCKED) -r requirements/web.txt
	@touch $@

.venv/.release-stamp: $(DEV_STAMP) requirements/release.txt
	@$(INSTALL) $(LOCKED) -r requirements/release.txt
	@touch $@

.venv/.containers-stamp: $(DEV_STAMP) requirements/containers.txt
	@$(INSTALL) $(LOCKED) -r requirements/containers.txt
	@touch $@

.venv/.clients-stamp: $(DEV_STAMP) requirements/clients.txt
	@$(INSTALL) $(LOCKED) -r requirements/clients.txt
	@touch $@
