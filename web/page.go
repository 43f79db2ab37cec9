// SPDX-License-Identifier: Apache-2.0

package web

import (
	"embed"
	"encoding/json"
	"io"
	"strings"

	"github.com/iotape/iotape/analyze/report/page"
	"github.com/iotape/iotape/web/viewmodel"
)

//go:embed ui
var ui embed.FS

// scripts are the parts of the script, in their order. They are put together as they are,
// in one function.
var scripts = []string{"format.js", "source.js", "view.js", "draw.js", "panel.js", "main.js"}

func file(name string) string {
	b, err := ui.ReadFile("ui/" + name)
	if err != nil {
		panic(err) // it is in the program
	}
	return string(b)
}

// picture is the page's picture for the data that it begins with.
func picture(data any, live bool) (*page.Picture, error) {
	b, err := json.Marshal(data)
	if err != nil {
		return nil, err
	}
	var script strings.Builder
	script.WriteString("\"use strict\";\n(() => {\n")
	for _, name := range scripts {
		script.WriteString(file(name))
	}
	script.WriteString("})();\n")
	return &page.Picture{Markup: file("picture.html"), Style: file("picture.css"), Script: script.String(),
		Data: b, Live: live}, nil
}

// Limits of the picture in a file.
const (
	fileBytes   = 4 << 20
	fileRows    = 200
	fileColumns = 2000
)

// embedded is what a page in a file knows.
type embedded struct {
	About   *viewmodel.About   `json:"about"`
	Picture *viewmodel.Picture `json:"picture"`
}

// WriteFile writes a report with the picture of a scene as one file, which is self-contained
// and of a bounded size: of what is too much, the picture shows rows together, and larger
// parts of the time.
func WriteFile(w io.Writer, p *page.Page, s *viewmodel.Scene) error {
	d, err := shrink(s)
	if err != nil {
		return err
	}
	pic, err := picture(d, false)
	if err != nil {
		return err
	}
	return p.HTML(w, pic)
}
