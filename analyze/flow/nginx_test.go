// SPDX-License-Identifier: Apache-2.0

package flow_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/iotape/iotape/internal/testenv"
)

// TestNginx has nginx serve files, through the proxy, to another nginx that is a proxy itself, from which a
// client fetches them.
func TestNginx(t *testing.T) {
	nginx := "/usr/sbin/nginx"
	testenv.NeedProgram(t, nginx, "curl")
	through(t, "line 7 of the flow test, ", func(t *testing.T, s *scene, to string) {
		server, proxied := ports(to)
		front := port(t)
		files := filepath.Join(s.dir, "files")
		if err := os.Mkdir(files, 0o777); err != nil {
			t.Fatal(err)
		}
		var argv []string
		for k := range 12 {
			var b strings.Builder
			for i := range 20 + 3*k {
				fmt.Fprintf(&b, "line %d of the flow test, file %d, %d\n", i, k, i*i*7919+k)
			}
			name := fmt.Sprintf("file%d", k)
			if err := os.WriteFile(filepath.Join(files, name), []byte(b.String()), 0o666); err != nil {
				t.Fatal(err)
			}
			argv = append(argv, "-o", filepath.Join(s.dir, name), "http://127.0.0.1:"+front+"/"+name)
		}
		begin := func(name, port, location string) *running {
			conf := filepath.Join(s.dir, name+".conf")
			text := fmt.Sprintf("daemon off;\nmaster_process off;\nuser root;\n"+
				"pid %[1]s/%[2]s.pid;\nerror_log stderr;\n"+
				"events {}\nhttp {\naccess_log %[1]s/%[2]s.log;\nclient_body_temp_path %[1]s/%[2]s.body;\n"+
				"proxy_temp_path %[1]s/%[2]s.proxy;\nfastcgi_temp_path %[1]s/%[2]s.1;\n"+
				"uwsgi_temp_path %[1]s/%[2]s.2;\n"+
				"scgi_temp_path %[1]s/%[2]s.3;\nserver {\nlisten 127.0.0.1:%[3]s;\nlocation / { %[4]s }\n}\n}\n",
				s.dir, name, port, location)
			if err := os.WriteFile(conf, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
			r := s.start(name, nginx, "-c", conf)
			for range 600 {
				if b, err := os.ReadFile(filepath.Join(s.dir, name+".pid")); err == nil && len(b) > 0 {
					return r
				}
				time.Sleep(50 * time.Millisecond)
			}
			t.Fatalf("%s does not begin: %s", name, r.err.String())
			return nil
		}
		origin := begin("origin", server, "root "+files+";")
		relay := begin("relay", front, "proxy_pass http://127.0.0.1:"+proxied+";")
		s.end(s.start("client", append([]string{"curl", "-sS", "--retry", "5", "--retry-connrefused"}, argv...)...))
		for name, r := range map[string]*running{"origin": origin, "relay": relay} {
			pid, err := os.ReadFile(filepath.Join(s.dir, name+".pid"))
			if err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command("kill", "-QUIT", strings.TrimSpace(string(pid))).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			s.end(r)
		}
	})
}
