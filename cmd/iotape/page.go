package main

import (
	"bufio"
	"io"
	"os"

	"github.com/iotape/iotape/analyze/report/page"
)

// writePage writes a page as one file, whole or not at all.
func writePage(p *page.Page, name string) error {
	return writeHTML(name, func(w io.Writer) error { return p.HTML(w, nil) })
}

// writeHTML writes a file, whole or not at all.
func writeHTML(name string, write func(w io.Writer) error) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
		if err != nil {
			os.Remove(name)
		}
	}()
	w := bufio.NewWriterSize(f, 1<<20)
	if err := write(w); err != nil {
		return err
	}
	return w.Flush()
}
