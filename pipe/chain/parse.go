// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"filippo.io/age"

	"github.com/iotape/iotape/pipe"
	"github.com/iotape/iotape/pipe/checksum"
	"github.com/iotape/iotape/pipe/compress"
	"github.com/iotape/iotape/pipe/encrypt"
)

// Spec is a chain and its options, ready for pipe.NewWriter.
type Spec struct {
	Layers    []pipe.Layer
	Options   pipe.Options
	Encrypted bool     // nobody without a recipient's secret key reads what comes out
	Keys      Keys     // what was used to write, and reads it, too
	Variables []string // of the environment that hold secrets
}

// Parse reads a chain: layers with commas between, each a name and, after a colon, what
// it needs. Files that it names are read.
//
//	async[:BLOCKS]                 a queue, and a goroutine for the layers after it
//	zstd[:LEVEL]                   1 to 22; 3
//	s2[:better|:best]
//	checksum[:@FILE|:env:NAME]     keyed, or against accidents only
//	encrypt:RECIPIENT[+RECIPIENT]  age1…, or @FILE with one a line
//	block:SIZE                     bytes of a block: 64K, 1M; 256K
//	flush:TIME                     how long bytes wait for a block to be full; 200ms
//	none                           nothing
func Parse(text string) (*Spec, error) {
	s := &Spec{}
	for word := range strings.SplitSeq(text, ",") {
		name, arg, has := strings.Cut(strings.TrimSpace(word), ":")
		parse, ok := words[name]
		if !ok {
			return nil, fmt.Errorf(
				"%q is no layer: they are async, zstd, s2, checksum and encrypt, and block and flush", name)
		}
		if has && arg == "" {
			return nil, fmt.Errorf("%s: nothing after the colon", name)
		}
		if err := parse(s, arg); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return s, nil
}

var words = map[string]func(s *Spec, arg string) error{
	"async":    (*Spec).async,
	"zstd":     (*Spec).zstd,
	"s2":       (*Spec).s2,
	"checksum": (*Spec).checksum,
	"encrypt":  (*Spec).encrypt,
	"block":    (*Spec).block,
	"flush":    (*Spec).flush,
	"none": func(_ *Spec, arg string) error {
		if arg != "" {
			return errors.New("it has no options")
		}
		return nil
	},
}

// Words returns the names of what a chain is made of, in order.
func Words() []string { return slices.Sorted(maps.Keys(words)) }

func (s *Spec) add(l pipe.Layer, err error) error {
	if err != nil {
		return err
	}
	if len(s.Layers) >= pipe.MaxLayers {
		return fmt.Errorf("a chain has at most %d layers", pipe.MaxLayers)
	}
	s.Layers = append(s.Layers, l)
	return nil
}

func (s *Spec) async(arg string) error {
	n, err := number(arg, pipe.DefaultQueue, pipe.MaxQueue)
	return s.add(pipe.Async{Blocks: n}, err)
}

func (s *Spec) zstd(arg string) error {
	n, err := number(arg, compress.DefaultLevel, 22)
	if err != nil {
		return err
	}
	return s.add(compress.Zstd(n))
}

func (s *Spec) s2(arg string) error { return s.add(compress.S2(arg)) }

// number reads a number from 1 to most.
func number(arg string, otherwise, most int) (int, error) {
	if arg == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(arg)
	if err != nil || n < 1 || n > most {
		return 0, fmt.Errorf("%q is no number from 1 to %d", arg, most)
	}
	return n, nil
}

func (s *Spec) checksum(arg string) error {
	if arg == "" {
		return s.add(checksum.Plain(), nil)
	}
	if !strings.HasPrefix(arg, "@") && !strings.HasPrefix(arg, envPrefix) {
		return errors.New("a key is named as @FILE or env:NAME, it is not itself on the command line")
	}
	keys, err := readKeys(strings.TrimPrefix(arg, "@"))
	if err != nil {
		return err
	}
	if len(keys) != 1 {
		return fmt.Errorf("%s has %d keys, one is needed", arg, len(keys))
	}
	if name, ok := strings.CutPrefix(arg, envPrefix); ok {
		s.Variables = append(s.Variables, name)
	}
	s.Keys.Checksum = append(s.Keys.Checksum, keys[0])
	return s.add(checksum.Layer(keys[0]), nil)
}

func (s *Spec) encrypt(arg string) error {
	var all []age.Recipient
	for r := range strings.SplitSeq(arg, "+") {
		text := []byte(r)
		if file, ok := strings.CutPrefix(r, "@"); ok {
			var err error
			if text, err = readLimited(file, false); err != nil {
				return err
			}
		}
		if strings.HasPrefix(strings.ToUpper(string(bytes.TrimSpace(text))), "AGE-SECRET-KEY-") {
			return errors.New("this is a secret key; a recipient is a public one, age1…")
		}
		parsed, err := age.ParseRecipients(bytes.NewReader(text))
		if err != nil {
			return fmt.Errorf("recipient: %w", err)
		}
		all = append(all, parsed...)
	}
	s.Encrypted = true
	return s.add(encrypt.Layer(all...))
}

func (s *Spec) block(arg string) error {
	digits := strings.TrimRight(arg, "KM")
	shift, ok := map[string]uint{"": 0, "K": 10, "M": 20}[arg[len(digits):]]
	n, err := strconv.ParseUint(digits, 10, 32)
	if n <<= shift; !ok || err != nil || n < pipe.MinBlockBytes || n > pipe.MaxBlockBytes {
		return fmt.Errorf("%q is no size from %dK to %dM", arg, pipe.MinBlockBytes>>10, pipe.MaxBlockBytes>>20)
	}
	s.Options.BlockBytes = int(n)
	return nil
}

func (s *Spec) flush(arg string) error {
	d, err := time.ParseDuration(arg)
	if err != nil || d < time.Millisecond {
		return fmt.Errorf("%q is no time such as 200ms or 5s", arg)
	}
	s.Options.FlushAfter = d
	return nil
}
