// SPDX-License-Identifier: Apache-2.0

package anon

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/iotape/iotape/trace"
)

// ParseContent reads what becomes of content: encrypt, substitute or remove. Its error names
// the flag --content.
func ParseContent(s string) (trace.AnonymisedContent, error) {
	switch s {
	case "encrypt":
		return trace.ContentEncrypted, nil
	case "substitute":
		return trace.ContentSubstituted, nil
	case "remove":
		return trace.ContentRemoved, nil
	}
	return "", fmt.Errorf("--content %s: the value must be encrypt, substitute or remove", s)
}

// OpenKeyFile reads a key file, or makes it with new keys for all fields if there is none.
// shared reports whether others than its owner may read it.
func OpenKeyFile(name string) (keys Keys, made, shared bool, err error) {
	keys, shared, err = ReadKeyFile(name)
	if made = errors.Is(err, fs.ErrNotExist); made {
		keys, err = CreateKeyFile(name)
	}
	return keys, made, shared, err
}
