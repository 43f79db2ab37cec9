// Package formattest is for the tests of the formats: it makes tapes of foreign files
// and prints them.
package formattest
