// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/duckdb/duckdb-go/v2"
)

// Syntax returns what the engine's parser makes of a statement: JSON, as the engine's
// function json_serialize_sql has it.
func (t *Tables) Syntax(ctx context.Context, query string) (syntax string, err error) {
	return t.text(ctx, "SELECT json_serialize_sql(?::VARCHAR)::VARCHAR", query)
}

// Statement returns the statement of a syntax, which Syntax made.
func (t *Tables) Statement(ctx context.Context, syntax string) (query string, err error) {
	return t.text(ctx, "SELECT json_deserialize_sql(?::JSON)", syntax)
}

func (t *Tables) text(ctx context.Context, query string, arg any) (text string, err error) {
	err = t.Each(ctx, query, []any{arg}, func(values []any) error {
		var ok bool
		if text, ok = values[0].(string); !ok {
			return errors.New("query: the engine has no answer")
		}
		return nil
	})
	return text, err
}

// Fill makes a temporary table of rows, in place of one that has the same name.
func (t *Tables) Fill(ctx context.Context, table string, columns []Column, rows iter.Seq[[]driver.Value]) error {
	var list []string
	for _, c := range columns {
		list = append(list, identifier(c.Name)+" "+c.Type)
	}
	if err := t.s.exec(ctx, "CREATE OR REPLACE TEMP TABLE "+identifier(table)+" ("+strings.Join(list, ", ")+
		")"); err != nil {
		return err
	}
	return t.s.conn.Raw(func(c any) (err error) {
		a, err := duckdb.NewAppenderFromConn(c.(driver.Conn), "", table)
		if err != nil {
			return fmt.Errorf("fill table %s: %w", table, err)
		}
		defer func() { err = errors.Join(err, a.Close()) }()
		for row := range rows {
			if err := a.AppendRow(row...); err != nil {
				return fmt.Errorf("fill table %s: %w", table, err)
			}
		}
		return nil
	})
}

// PureFunctions returns the names of the engine's functions of values that depend on their
// arguments alone.
func (t *Tables) PureFunctions(ctx context.Context) (map[string]bool, error) {
	pure := map[string]bool{}
	err := t.Each(ctx, "SELECT lower(function_name) AS name FROM duckdb_functions() GROUP BY name "+
		"HAVING bool_and(function_type = 'scalar' AND stability = 'CONSISTENT')", nil, func(values []any) error {
		// Settings and variables are of a session.
		if name, _ := values[0].(string); !strings.HasPrefix(name, "current_") && name != "getvariable" {
			pure[name] = true
		}
		return nil
	})
	return pure, err
}
