// SPDX-License-Identifier: Apache-2.0

package config

import _ "embed" // for Example

// Example is a configuration with all keys, each explained.
//
//go:embed example.toml
var Example string
