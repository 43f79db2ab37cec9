// SPDX-License-Identifier: Apache-2.0

package store

/*
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// A function of the engine, of duckdb.h. It is weak because this package is linked alone once, to find what it imports.
extern void *duckdb_create_enum_type(const char **names, uint64_t count) __attribute__((weak));

// create_enum returns a type with count names, which stand one behind the other, each with a NUL.
static void *create_enum(const char *names, uint64_t count)
{
	const char **list = calloc(count, sizeof(*list));
	void *type;

	if (!list || !duckdb_create_enum_type) {
		free(list);
		return NULL;
	}
	for (uint64_t i = 0; i < count; i++) {
		list[i] = names;
		names += strlen(names) + 1;
	}
	type = duckdb_create_enum_type(list, count);
	free(list);
	return type;
}
*/
import "C"

import (
	"strings"
	"unsafe"

	"github.com/duckdb/duckdb-go/v2/mapping"
)

// enumType returns a type whose values have names. mapping.CreateEnumType must not be used: it stores pointers from
// Go into memory that malloc returned, and while Go collects garbage, a store tells the collector what was there
// before. That is anything, such as the address of a Go object that is gone: the program ends with "found bad pointer
// in Go heap" or "found pointer to free object" (duckdb-go-bindings 0.10505, allocNames).
func enumType(names []string) mapping.LogicalType {
	all := []byte(strings.Join(names, "\x00") + "\x00")
	t := C.create_enum((*C.char)(unsafe.Pointer(unsafe.SliceData(all))), C.uint64_t(len(names)))
	if t == nil {
		panic("the engine makes no type of names")
	}
	return mapping.LogicalType{Ptr: t}
}
