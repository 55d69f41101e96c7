package artifact

import (
	"maps"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nomadlite/nomadlite/structs"
)

// repository is a repository with two commits, a branch and a tag.
type repository struct {
	t   *testing.T
	dir string
}

func newRepository(t *testing.T) *repository {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	r := &repository{t: t, dir: filepath.Join(t.TempDir(), "repo")}
	r.git("init", "--quiet", "--initial-branch=main", r.dir)
	r.commit("old", "one")
	r.git("-C", r.dir, "tag", "v1")
	r.git("-C", r.dir, "checkout", "--quiet", "-b", "side")
	r.commit("side", "side")
	r.git("-C", r.dir, "checkout", "--quiet", "main")
	r.commit("new", "two")
	r.git("-C", r.dir, "config", "uploadpack.allowAnySHA1InWant", "true")
	return r
}

func (r *repository) git(args ...string) string {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "git", args...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@t.test", "GIT_COMMITTER_NAME=t",
		"GIT_COMMITTER_EMAIL=t@t.test", "GIT_ALLOW_PROTOCOL=file")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r *repository) commit(content, message string) {
	r.t.Helper()
	if err := os.MkdirAll(filepath.Join(r.dir, "part"), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.dir, "part", "file"), []byte(content), 0o644); err != nil {
		r.t.Fatal(err)
	}
	r.git("-C", r.dir, "add", ".")
	r.git("-C", r.dir, "commit", "--quiet", "-m", message)
}

// shown is a stand whose configuration shows the repository.
func (r *repository) shown() *stand {
	s := newStand(r.t)
	s.Config.Settings.ExtraPaths = []Path{{Name: filepath.Dir(r.dir), Dir: true, Read: true}}
	return s
}

func TestGit(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	first := r.git("-C", r.dir, "rev-parse", "v1")
	for query, want := range map[string]string{
		"": "new", "?ref=main": "new", "?ref=v1": "old", "?ref=side": "side", "?ref=" + first: "old", "?ref=" + first[:10]: "old",
		"?depth=1": "new", "?depth=1&ref=side": "side", "?depth=1&ref=v1": "old", "?depth=1&ref=" + first: "old",
	} {
		t.Run(query, func(t *testing.T) {
			t.Parallel()
			s := (&repository{t: t, dir: r.dir}).shown()
			s.add("git::file://"+r.dir+query, mode("any", "local/r"))
			if got := s.good(); !maps.Equal(got, map[string]string{"local/r/part/file": want}) {
				t.Errorf("%v", got)
			}
			if strings.Contains(query, "depth") {
				if n := r.git("-C", filepath.Join(s.Dir.LocalDir("web"), "r"), "rev-list", "--count", "HEAD"); n != "1" {
					t.Errorf("%s commits", n)
				}
			}
		})
	}
}

func TestPartsOfARepository(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	s := r.shown()
	s.add("git::file://"+r.dir+"//part", mode("dir", "local/part"))
	s.add("git::file://"+r.dir+"//part/file?ref=v1", mode("file", "local/named"))
	s.add("git::file://"+r.dir, func(a *structs.TaskArtifact) { a.GetterOptions["ref"] = "side" })
	if got := s.good(); !maps.Equal(got, map[string]string{"local/part/file": "side", "local/named": "old"}) &&
		!maps.Equal(got, map[string]string{"local/part/file": "new", "local/named": "old"}) { // two artifacts for one file
		t.Errorf("%v", got)
	}
	s = r.shown()
	s.add("git::file://"+r.dir+"?ref=none", nil)
	s.bad("git checkout: exit status", false)
	s = r.shown()
	s.add("git::file://"+r.dir+"x", nil)
	s.bad("git clone: exit status", false)
	s = r.shown()
	s.add("git::file://"+r.dir, func(a *structs.TaskArtifact) { a.GetterOptions["sshkey"] = "not base64!" })
	s.bad("sshkey is not in base64", true)
}

// TestRepositoriesThatLeadOut holds git to the protocols and places that the configuration shows, submodules included.
func TestRepositoriesThatLeadOut(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	hidden := newStand(t)
	hidden.add("git::file://"+r.dir, nil)
	hidden.bad("transport 'file' not allowed", false)
	hidden = newStand(t)
	hidden.add("git::ext::sh -c true", nil)
	hidden.bad("git clone", false)

	other := newRepository(t)
	r.git("-C", r.dir, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "file://"+other.dir, "sub")
	r.git("-C", r.dir, "commit", "--quiet", "-m", "sub")
	s := r.shown()
	s.add("git::file://"+r.dir, nil)
	s.bad("git submodule", false) // it lies where nothing is shown
	s.Config.Settings.ExtraPaths = append(s.Config.Settings.ExtraPaths, Path{Name: filepath.Dir(other.dir), Dir: true, Read: true})
	if got := s.good(); got["local/sub/part/file"] != "new" {
		t.Errorf("%v", got)
	}

	if err := os.Symlink("/etc/passwd", filepath.Join(r.dir, "link")); err != nil {
		t.Fatal(err)
	}
	r.git("-C", r.dir, "rm", "--quiet", "-f", "sub")
	r.git("-C", r.dir, "add", ".")
	r.git("-C", r.dir, "commit", "--quiet", "-m", "link")
	s = r.shown()
	s.add("git::file://"+r.dir, nil)
	s.bad(`link "link" leads out of the artifact, to "/etc/passwd"`, false)
}

// TestNobodyIsAsked fails where git or ssh would ask a person.
func TestNobodyIsAsked(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	srv := serveUnauthorised(t)
	s := r.shown()
	s.add("git::"+srv.URL+"/r.git", nil)
	s.bad("terminal prompts disabled", false)
}

func TestGitThatTakesTooLong(t *testing.T) {
	t.Parallel()
	newRepository(t)
	srv, _, _ := slow(t)
	s := newStand(t)
	s.Config.Settings.GitTimeout = 300e6
	s.add("git::"+srv.URL+"/r.git", nil)
	s.bad("git took longer than the node's configuration allows (300ms)", false)
}

// TestGitByHTTP clones and reads submodules by the protocol that most repositories are reached by, certificates included.
func TestGitByHTTP(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	backend := filepath.Join(r.git("--exec-path"), "git-http-backend")
	if _, err := os.Stat(backend); err != nil {
		t.Skip("this git has no server for HTTP")
	}
	srv := httptest.NewTLSServer(&cgi.Handler{Path: backend, Env: []string{"GIT_PROJECT_ROOT=" + filepath.Dir(r.dir), "GIT_HTTP_EXPORT_ALL=1",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"}})
	defer srv.Close()
	s := newStand(t)
	s.add("git::"+srv.URL+"/repo?ref=v1&depth=1", nil)
	s.bad("git clone: exit status", false) // nobody vouches for the certificate
	s.task.Artifacts[0].GetterInsecure = structs.Ptr(true)
	if got := s.good(); got["local/part/file"] != "old" {
		t.Errorf("%v", got)
	}
}
