// SPDX-License-Identifier: Apache-2.0

// Flowfaults runs clusters of processes, each recorded on its own, of which one does
// something wrong, or none, and counts what iotape flow says of their tapes.
//
//	flowfaults [-seeds N] [-only WORDS] [-v] IOTAPE
//
// IOTAPE is the program to record with. Clusters are pipelines, replication, broadcast,
// shipping of logs, and requests, of 2 to 10 hosts; messages are sent as they are, in
// chunks, or compressed; the tapes have their content, hashes or signatures. Each is
// judged with its tapes in three orders. Where flow recognises how something is compressed
// (gzip, zstd, snappy, lz4), a fault counts as found if it is found with --decode, and found,
// or named as what cannot be compared, without it.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"slices"
	"strings"
)

// nodeWord is the argument by which the program is a node of a cluster.
const nodeWord = "node"

func main() {
	log.SetFlags(0)
	log.SetPrefix("flowfaults: ")
	if len(os.Args) == 3 && os.Args[1] == nodeWord {
		if err := runNode(os.Args[2]); err != nil {
			log.Fatal(err)
		}
		return
	}
	seeds := flag.Int("seeds", 3, "clusters of each kind")
	only := flag.String("only", "", "only clusters whose description has these words, with commas")
	verbose := flag.Bool("v", false, "name what is not as it should be")
	flag.Parse()
	if flag.NArg() != 1 || *seeds < 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(flag.Arg(0), *seeds, *only, *verbose); err != nil {
		log.Fatal(err)
	}
}

// faults are those of each shape; "" is none.
var faults = map[string][]string{
	"pipeline":    {"", "lost", "truncated", "duplicated", "reordered", "changed", "cut"},
	"replication": {"", "lost", "truncated", "duplicated", "reordered", "changed", "cut"},
	"broadcast":   {"", "lost", "truncated", "duplicated", "reordered", "changed", "cut"},
	"logs":        {"", "lost", "truncated", "reordered", "changed", "cut"},
	"requests":    {"", "stale", "changed", "cut"},
}

var shapes = []string{"pipeline", "replication", "broadcast", "logs", "requests"}

// hostsOf returns how many hosts cluster n has.
func hostsOf(shape string, n int) int {
	if shape == "requests" {
		return 2
	}
	return []int{3, 4, 5, 3, 6, 4, 3, 10}[n%8]
}

// scenarios returns all that are measured.
func scenarios(seeds int) (list []*scenario) {
	for _, shape := range shapes {
		for _, form := range []string{"plain", "framed", "chunked", "compressed"} {
			for _, content := range []string{"full", "hash", "signature"} {
				for _, fault := range faults[shape] {
					for seed := range seeds {
						n := len(list) // all kinds of bytes and numbers of hosts have their turn
						list = append(list, &scenario{Shape: shape, Hosts: hostsOf(shape, n), Form: form,
							Content: content, Fault: fault, Kind: []string{"random", "text"}[n%2],
							Seed: uint64(n/2 + seed)})
					}
				}
			}
		}
	}
	for _, shape := range shapes {
		for i := range 3 * len(formats) {
			format := formats[i%len(formats)]
			form, kind := format, []string{"text", "random"}[i/2%2]
			switch i / len(formats) {
			case 1:
				form += eachAlone
			case 2:
				form, kind = []string{"plain", "framed", "chunked"}[len(list)%3], format
			}
			for _, fault := range faults[shape] {
				for seed := range seeds {
					n := len(list)
					list = append(list, &scenario{Shape: shape, Hosts: hostsOf(shape, n), Form: form, Content: "full",
						Fault: fault, Kind: kind, Seed: uint64(n/2 + seed)})
				}
			}
		}
	}
	return list
}

// score counts the verdicts of scenarios.
type score struct{ runs, found, others int }

func run(iotape string, seeds int, only string, verbose bool) error {
	dir, err := os.MkdirTemp("", "flowfaults")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	type row struct{ content, form, kind, fault string }
	scores := map[row]*score{}
	var rows []row
	for _, s := range scenarios(seeds) {
		if slices.ContainsFunc(strings.Split(only, ","),
			func(w string) bool { return !strings.Contains(s.String(), w) }) {
			continue
		}
		v, err := try(context.Background(), s, iotape, dir)
		if err != nil {
			return err
		}
		k := row{content: s.Content, form: s.Form, fault: s.Fault}
		if compressors[s.Kind] != nil {
			k.kind = " of " + s.Kind
		}
		x := scores[k]
		if x == nil {
			x = &score{}
			scores[k] = x
			rows = append(rows, k)
		}
		x.runs++
		x.others += len(v.Others)
		if v.Found {
			x.found++
		}
		if verbose && (len(v.Others) > 0 || s.Fault != "" && !v.Found) {
			log.Printf("%s, fault %q: found %t, others: %s", s, s.Fault, v.Found, strings.Join(v.Others, "\n  "))
		}
	}
	fmt.Println("| content | form | fault | runs | found | other findings |")
	fmt.Println("|---|---|---|--:|--:|--:|")
	var sum score
	for _, k := range rows {
		x := scores[k]
		found := fmt.Sprint(x.found)
		if k.fault == "" {
			k.fault, found = "none", "–"
		}
		fmt.Printf("| %s | %s | %s | %d | %s | %d |\n", k.content, k.form+k.kind, k.fault, x.runs, found, x.others)
		sum.found, sum.others = sum.found+x.found, sum.others+x.others
	}
	fmt.Printf("\nprecision %.3f of %d findings\n", float64(sum.found)/float64(max(sum.found+sum.others, 1)),
		sum.found+sum.others)
	return nil
}
