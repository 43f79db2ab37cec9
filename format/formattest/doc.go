// Package formattest makes tapes for the tests of formats.
package formattest
