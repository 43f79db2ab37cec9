// SPDX-License-Identifier: Apache-2.0

package lake

import "errors"

func newREST(*Lake) (tableCatalogue, error) { return nil, errors.New("not yet") }
