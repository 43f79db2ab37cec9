// SPDX-License-Identifier: Apache-2.0

// Package broker is the NATS server within the collector, and who may do what with
// one: the keys of agents, of readers and of collectors. It is the only package that
// links the server.
//
//	DATA/keys/NAME.json   Key: a public key, and what its owner may do
//	DATA/broker/          what the server keeps until the collector has it
//
// The package knows the subjects of package batch, and nothing of what is sent.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package broker
