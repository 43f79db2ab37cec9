# iotape. A fresh clone needs Go, gcc, git and make; scripts/setup.sh adds the
# rest. `make help` lists the targets.

SHELL := /bin/bash
GO ?= go
# Version stamping needs a git that trusts this directory; where it does not, do without.
VCS := $(shell git rev-parse HEAD >/dev/null 2>&1 || echo -buildvcs=false)
TEST_TIMEOUT ?= 55m
FUZZ_SECONDS ?= 2
SOAK ?= 1h
MUTATIONS ?= 2000
# Set by hand, as the go command stamps no program that is built in a git worktree.
REVISION := $(shell git describe --always --exclude='*' --abbrev=12 --dirty=.modified 2>/dev/null)
STAMP := -buildvcs=false -ldflags "-X github.com/iotape/iotape/internal/buildinfo.revision=$(REVISION)"

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup setup-test build generate generate-check fmt-check vet lint gotestsum sbom vulncheck check prepare test demo bench accuracy fuzz mutate soak dist test-dist test-kernels clean

test-kernels: ## boots Debian's kernels under qemu, and records there; skips if it cannot
	@scripts/test-kernels.sh

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 18

setup:
	@scripts/setup.sh

setup-test:
	@scripts/setup.sh --test

build: setup ## bin/iotape, bin/iotape-full, bin/iotape-agent
	$(GO) build $(STAMP) -o bin/ ./cmd/iotape ./cmd/iotape-full
	CGO_ENABLED=0 $(GO) build $(STAMP) -o bin/ ./cmd/iotape-agent

generate: ## writes what is generated: tables, documents, eBPF objects (needs clang 14)
	$(GO) generate ./event/... ./record/...
	@$(MAKE) --no-print-directory THIRD_PARTY_NOTICES

THIRD_PARTY_NOTICES: go.mod internal/notices/native.txt
	$(GO) run $(VCS) ./internal/notices >$@.new && mv $@.new $@

generate-check: ## fails if the committed generated files are not what generating gives
	@scripts/generate-check.sh

fmt-check:
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then echo "gofmt -w is due on:"; echo "$$files"; exit 1; fi

vet:
	$(GO) vet ./...

lint: ## staticcheck and vet in one pass
	@cd internal/tools && $(GO) build $(VCS) -o ../../bin/linters ./linters
	bin/linters ./...

sbom: build ## bin/iotape.cdx.json: what the programs are made of, in CycloneDX
	$(GO) run $(VCS) ./internal/sbom bin/iotape bin/iotape-full bin/iotape-agent >bin/iotape.cdx.json

vulncheck: build ## known vulnerabilities in what is linked; needs vuln.go.dev, or VULNDB=file:///DIR
	@scripts/vulncheck.sh

gotestsum:
	@cd internal/tools && $(GO) build $(VCS) -o ../../bin/gotestsum gotest.tools/gotestsum

# Many tests wait for programs, so more run at a time than there are processors. The packages
# that take longest begin first. Vet was run above. No test needs the debug information of its own
# program (-w), which takes a third of the time of linking.
check: setup fmt-check vet ## the fast lane, under three minutes: format, vet, short tests
	$(GO) test -short -vet=off -ldflags=-w -p 3 -parallel 4 ./e2e/... ./record/capture/... ./...

fuzz: ## every parser's fuzz target, FUZZ_SECONDS each
	@scripts/fuzz.sh $(FUZZ_SECONDS)

mutate: ## changes each foreign sample MUTATIONS times, and runs everything over each; about an hour
	IOTAPE_MUTATIONS=$(MUTATIONS) $(GO) test -count=1 -timeout 0 -v -run '^TestNoPanic$$' ./e2e/hostile

soak: setup-test build ## an hour of everything, and whether programs grow; SOAK=24h for a day
	IOTAPE_SOAK=$(SOAK) $(GO) test -count=1 -timeout 0 -v -run '^TestSoak$$' ./e2e/fleet

# Installing waits for the network and the disk; what needs processors goes on meanwhile.
prepare: setup
	@mkdir -p bin; scripts/setup.sh --test >bin/setup.log 2>&1 & installing=$$!; status=0; \
	$(MAKE) --no-print-directory fmt-check gotestsum lint build || status=$$?; \
	wait $$installing || status=$$?; cat bin/setup.log; exit $$status

# Real programs race with each other, and two cores are few: up to five tests may fail once
# and have to pass alone then. The summary names them all the same, and what was skipped.
# The race detector waits for a second at the end of each test program unless it is told not to.
test: prepare generate-check ## everything: set-up, linters, generated files, all tests, with -race where it can find something
	GORACE=atexit_sleep_ms=0 TEST_TIMEOUT=$(TEST_TIMEOUT) bin/gotestsum --format standard-quiet --rerun-fails=1 --rerun-fails-max-failures=5 --rerun-fails-abort-on-data-race --raw-command -- scripts/gotest.sh

demo: setup build ## records a real program, shows the statistics, replays it, prints the verdict
	@scripts/demo.sh

bench: build ## what tracing costs, as ratios, beside the budgets
	@scripts/setup.sh --bench
	@scripts/bench.sh

accuracy: build ## how long replays take against the application, on storage of other speeds; as root, on an idle machine (docs/accuracy.md)
	@scripts/setup.sh --accuracy
	@$(GO) run $(VCS) ./bench/accuracy/run $(ACCURACY)

dist: ## archives, .deb and .rpm for amd64 and arm64, in dist/ (docs/packaging.md)
	@scripts/setup.sh --dist
	@scripts/dist.sh dist

test-dist: dist ## installs the .deb in fresh Debian 12 and 13, and records and replays there; as root
	@scripts/test-dist.sh dist

clean: ## removes bin/ and dist/
	rm -rf bin dist
