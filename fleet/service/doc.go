// SPDX-License-Identifier: Apache-2.0

// Package service runs a collector as a service: with its own broker or an external one, and
// with a page that shows the fleet.
//
//	agents ──▶ fleet/broker ──▶ fleet/collector ──▶ DATA/staging
//	                                  └──▶ page, metrics
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package service
