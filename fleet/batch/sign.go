// SPDX-License-Identifier: Apache-2.0

package batch

import "crypto/sha256"

// SignatureHeader has a message's signature by the key of the host that its subject
// names, in base64 without padding.
//
// Permissions say who may publish to a subject, but a broker also sends answers, to
// whatever subject was asked for: so somebody may have a server's words, or a stored
// message of his own, delivered as another's. What is signed cannot be made up so.
const SignatureHeader = "Iotape-Signature"

// Digest returns what is signed of a message: its subject, its FloorHeader, and its data.
func Digest(subject, floor string, data []byte) []byte {
	h := sha256.New()
	h.Write([]byte(subject + "\x00" + floor + "\x00"))
	h.Write(data)
	return h.Sum(nil)
}
