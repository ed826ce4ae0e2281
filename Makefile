# Parley is built with Go alone. `make run` and `make test` also install the Debian or Ubuntu packages that are missing, once, and say so.

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help go build run test race rest plain e2e check static bench baddays soak stacks simulate release

# One way of building for all but the race detector, which needs C: what one part has compiled, the next one finds.
export GOFLAGS += -trimpath
export CGO_ENABLED = 0
race stacks: export CGO_ENABLED = 1

GROUP ?= all
TIMEOUT ?= 15m

# With CI set, as a CI service does, up to two tests that failed are run once more, and the summary names them: a machine that others
# share stalls now and then, and half an hour is lost by it. A data race or a panic fails at once. A developer's run forgives nothing.
again := $(if $(CI),--rerun-fails=1 --rerun-fails-max-failures=2 --rerun-fails-run-root-test --rerun-fails-abort-on-data-race)
gotest = go tool gotestsum --format pkgname --hide-summary skipped $(again) --packages

# The tests don't vet (-vet=off): `make static` has vetted everything, and for the race detector every package would be vetted again.

# Packages that test in their own process; the end-to-end tests build and run the whole program instead.
# The packages that take longest begin, so that none of them is left for the end.
longest = $(addprefix parley/internal/,store sip voice call chat campaign knowledge manifest provider/openai provider/local)
# The structure of the house is tested whole by `make static`.
units = $(longest) $(filter-out $(longest) parley/e2e% parley/internal/house,$(shell go list ./...))
# Requests and pages: what they call is raced in its own tests; with the race detector these two would take as long as all others together.
faces = parley/internal/api parley/internal/console
# Packages that share nothing between goroutines and count much: the race detector would find nothing, and take minutes. What in
# audio is used by several at once is raced by name.
pure = parley/internal/audio parley/internal/turn parley/internal/document parley/internal/document/pdf
shared = TestBridge.*|TestPair|TestTape.*
# Packages that only compute, the database's engine before all: what they do with memory is not watched, which halves the time. None
# may use generic types of sync or sync/atomic: the linker would take its unwatched copy for everybody, and safe code would look like a race.
calm = modernc.org/sqlite/lib modernc.org/libc modernc.org/memory bytes compress/flate math regexp regexp/syntax strconv strings \
	unicode unicode/utf8 parley/internal/audio parley/internal/audio/... parley/internal/detector parley/internal/turn
# Weeks of fake time, beat by beat, many nodes, and much sound: the race detector would take minutes for each. What they run is raced in
# the tests beside them; what the nodes of TestNodesKilled run (6 to 10 s without the race detector), in those of call, campaign and node.
weeks = TestNodesKilled|TestWeekOfThousands|TestWeeksOfCalls|TestSlowRecording|TestRecordingAcrossRestart|TestOverlaps|TestVoicemail

# End-to-end tests that wait for a browser, not for speech: several at once, but not beside calls, whose time is real. Chromium sets its own
# priority, so nice would not help.
browsers = TestConsole.*|TestInbox|TestFirstChatInConsole|TestTwoFactor.*|TestWidget.*

# What the program says of itself; without git, nothing. Stripped, it is 66 MB instead of 91 (24 MB packed), and panics still name their lines.
build = $(shell git describe --tags --always --dirty 2>/dev/null)
commit = $(shell git rev-parse HEAD 2>/dev/null)
date = $(shell git show -s --format=%cI HEAD 2>/dev/null)

help: ## List these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# What needs Go says which one, where there is none or an old one.
go:
	@scripts/needs-go
build run test race plain e2e check static bench baddays soak stacks release: go

build: ## Build bin/parley, one static file
	go build -trimpath -ldflags '-s -w -X main.version=$(build) -X main.commit=$(commit) -X main.date=$(date)' -o bin/parley ./cmd/parley

run: ## Install the speech packages if they are missing (SETUP=off: nothing), build, and serve
	@scripts/setup run
	@$(MAKE) --no-print-directory build
	@exec bin/parley serve

test: ## Install what the tests need if it is missing, and run all of them
	@scripts/setup test
	@failed=; for part in static race rest; do $(MAKE) --no-print-directory $$part || failed="$$failed $$part"; done; \
		if [ -z "$$failed" ]; then echo "make test: everything passed"; else echo "make test: FAILED in:$$failed"; exit 1; fi

# Whatever is missing here fails a test that would be skipped elsewhere.
race plain e2e: export CI := true

# Each part goes on after a failure, and the last line of one that fails names it. Tests wait for the clock, too: three packages at once
# keep two processors busy.
race:
	@failed=0; $(gotest) '$(filter-out $(faces) $(pure),$(units))' -- -vet=off -race -p 3 $(foreach package,$(calm),-gcflags=$(package)=-race=false) -timeout $(TIMEOUT) -skip '^($(weeks))$$' || failed=1; \
		$(gotest) parley/internal/audio -- -vet=off -race -timeout $(TIMEOUT) -run '^($(shared))$$' || failed=1; \
		[ $$failed = 0 ] || { echo "make race: FAILED"; exit 1; }

# The end-to-end tests mostly wait: what runs without the race detector runs beside them, when they need no processor, and may wait for
# as long as they take. The package is tried beside them too.
rest:
	@log=$$(mktemp); { failed=0; nice -n 19 $(MAKE) --no-print-directory plain || failed=1; \
			nice -n 19 scripts/try-package bookworm || failed=1; exit $$failed; } >$$log 2>&1 & beside=$$!; \
		$(MAKE) --no-print-directory e2e; e2e=$$?; wait $$beside; beside=$$?; cat $$log; rm -f $$log; \
		[ $$e2e -eq 0 ] && [ $$beside -eq 0 ]

plain:
	@failed=0; $(gotest) './internal/call ./internal/voice ./internal/campaign ./internal/cluster' -- -vet=off -timeout $(TIMEOUT) -run '^($(weeks))$$' || failed=1; \
		$(gotest) '$(faces) $(pure)' -- -vet=off -timeout 30m || failed=1; \
		(cd scripts/release && go vet . && go test -vet=off .) || failed=1; \
		[ $$failed = 0 ] || { echo "make plain: FAILED"; exit 1; }

stacks: ## Call the telephone stacks that are installed (docs/lab/stacks.md), be called by them, and print the table
	go test -tags stacks -run '^TestStack' -parallel 4 -timeout $(TIMEOUT) -v ./internal/sip

e2e:
	@failed=0; $(gotest) ./e2e -- -vet=off -timeout 60m -run '^($(browsers))$$' || failed=1; \
		$(gotest) ./e2e -- -vet=off -timeout 60m -skip '^($(browsers))$$' || failed=1; \
		[ $$failed = 0 ] || { echo "make e2e: FAILED"; exit 1; }

check: static ## Format, vet, staticcheck, structure, macOS, unit tests on SQLite: within 90 seconds once the caches are warm
	PARLEY_TEST_POSTGRES=off go test -vet=off $(units)
	@echo "make check: everything passed"

static:
	@echo gofmt; out=$$(gofmt -l . | grep -v '_templ\.go$$'); if [ -n "$$out" ]; then echo "not formatted, run gofmt -w:"; echo "$$out"; exit 1; fi
	@echo templ generate; was=$$(cat internal/console/*_templ.go | cksum); (cd internal/console && go tool templ generate >/dev/null 2>&1); \
		if [ "$$was" != "$$(cat internal/console/*_templ.go | cksum)" ]; then echo "the console's pages were not generated from their templates; they are now"; exit 1; fi
	go vet ./...
	go vet -tags stacks ./internal/sip
	go tool staticcheck ./...
	go test -count=1 -run '^TestHouse' ./internal/house

bench: build ## Measure; GROUP=api measures that group alone
	go run ./bench -group $(GROUP)

baddays: build ## Kill the program, take its disk, database, model (docs/operating.md): ARGS="-day kill -kills 1000 -seed 2"
	go run ./scripts/baddays $(ARGS)

soak: build ## Work for an hour with retention set, and see that memory, files and tables stay flat: ARGS="-for 8h -crowd 3 -postgres"
	go run ./scripts/baddays -day soak -for 1h $(ARGS)

simulate: go ## Simulate 50 nodes with 10,000 calls, and write the table of docs/lab/nodes.md; ARGS=-costs measures the statements first
	go test ./internal/cluster -vet=off -count=1 -timeout 2h -v -run '^Test(Costs|Table)$$' -table ../../docs/lab/nodes.md $(ARGS)

release: ## Build archives and packages for all systems into dist/ (ten minutes or more); ONLY=linux-amd64 builds for that one alone
	@cd scripts/release && go build -o ../../bin/release .
	@bin/release -only '$(ONLY)'
