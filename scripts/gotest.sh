#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs all tests, and prints what go test -json does: gotestsum reads it (make test). With
# arguments, which gotestsum gives for tests that failed, it runs those.
#
# The race detector makes a program that computes five to ten times slower. Packages that start
# no goroutine, neither in their code nor in their tests, and have no locks and no atomic variables
# in their code, are tested without it.
set -u
flags=(-json -vet=off -ldflags=-w -timeout "${TEST_TIMEOUT:-55m}")
if [ $# -gt 0 ]; then
	exec go test -race "${flags[@]}" "$@"
fi

goroutine='\bgo func\b|^\s*go [[:alpha:]]|\.Go\(|errgroup'
shared='\bsync\.(RW)?(Mutex|Map|Cond|WaitGroup)\b|\batomic\.'
# The packages that take longest begin first.
mapfile -t all < <(go list -f '{{.ImportPath}} {{.Dir}}' ./e2e/... ./record/capture/... ./store/... ./transform/... ./...)
[ ${#all[@]} -gt 0 ] || exit 1 # go list has said why
declare -A seen
race=() plain=()
for line in "${all[@]}"; do
	package=${line%% *} dir=${line#* }
	[ -z "${seen[$package]:-}" ] || continue
	seen[$package]=1
	if grep -qE "$goroutine" "$dir"/*.go ||
		[ -n "$(grep -lE "$shared" "$dir"/*.go | grep -v '_test\.go$')" ]; then
		race+=("$package")
	else
		plain+=("$package")
	fi
done
status=0
go test -race "${flags[@]}" "${race[@]}" || status=$?
go test "${flags[@]}" "${plain[@]}" || status=$?
exit $status
