// SPDX-License-Identifier: Apache-2.0

package account

import "testing"

// TestNames: root is known everywhere, and the number is said of those that nobody knows.
func TestNames(t *testing.T) {
	const nobody = 4_000_000_123
	for _, c := range []struct{ what, got, want string }{
		{"user 0", User(0), "root"},
		{"the text of user 0", UserText(0), "root"},
		{"the text of group 0", GroupText(0), "group root"},
		{"an unknown user", User(nobody), ""},
		{"the text of an unknown user", UserText(nobody), "user 4000000123"},
		{"the text of an unknown group", GroupText(nobody), "group 4000000123"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, want %q", c.what, c.got, c.want)
		}
	}
}
