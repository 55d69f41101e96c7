package command

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const (
	untidy = "job \"x\" {\n    priority=50\n  meta = {\n    a = 1\n    long_name = 2\n  }\n}\n"
	tidy   = "job \"x\" {\n  priority = 50\n  meta = {\n    a         = 1\n    long_name = 2\n  }\n}\n"
)

// format runs fmt with args in a folder of files and gives exit code and outputs.
func format(t *testing.T, stdin string, args ...string) (int, string, string) {
	t.Helper()
	s, out, errs := testStreams()
	s.in = strings.NewReader(stdin)
	code := run("nomadlite", append([]string{"fmt"}, args...), s)
	return code, out.String(), errs.String()
}

func write(t *testing.T, dir, name, body string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(body), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func holds(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s holds %q, want %q", path, got, want)
	}
}

func TestFmtRewritesTheFilesOfAFolder(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"a.nomad", "b.hcl", "c.nomad.hcl", "d.txt", "e.json", ".hidden.hcl", "sub/f.hcl", ".git/g.hcl"} {
		write(t, dir, name, untidy)
	}
	write(t, dir, "tidy.hcl", tidy)
	code, out, errs := format(t, "")
	if code != 0 || out != "a.nomad\nb.hcl\nc.nomad.hcl\n" || errs != "" {
		t.Fatalf("got %d, %q, %q", code, out, errs)
	}
	for name, want := range map[string]string{"a.nomad": tidy, "b.hcl": tidy, "c.nomad.hcl": tidy, "d.txt": untidy, "e.json": untidy,
		".hidden.hcl": untidy, "sub/f.hcl": untidy} {
		holds(t, filepath.Join(dir, name), want)
	}
	code, out, _ = format(t, "", "-recursive", "-list=false", dir)
	if code != 0 || out != "" {
		t.Fatalf("got %d, %q", code, out)
	}
	holds(t, filepath.Join(dir, "sub/f.hcl"), tidy)
	holds(t, filepath.Join(dir, ".git/g.hcl"), untidy)
}

func TestFmtCheckWritesNothing(t *testing.T) {
	dir := t.TempDir()
	path, good := write(t, dir, "a.nomad.hcl", untidy), write(t, dir, "b.hcl", tidy)
	code, out, errs := format(t, "", "-check", "-write=true", path, good)
	if code != 1 || out != path+"\n" || errs != "" {
		t.Fatalf("got %d, %q, %q", code, out, errs)
	}
	holds(t, path, untidy)
	if code, out, _ := format(t, "", "-check", good); code != 0 || out != "" {
		t.Fatalf("got %d, %q", code, out)
	}
	if code, out, _ := format(t, "", "-write=false", path); code != 0 || out != path+"\n" {
		t.Fatalf("got %d, %q", code, out)
	}
	holds(t, path, untidy)
}

func TestFmtReadsStandardInput(t *testing.T) {
	if code, out, _ := format(t, untidy, "-"); code != 0 || out != tidy {
		t.Fatalf("got %d, %q", code, out)
	}
	if code, out, _ := format(t, untidy, "-check", "-"); code != 1 || out != "" {
		t.Fatalf("got %d, %q", code, out)
	}
	code, _, errs := format(t, "job \"x\" {\n  a = = 1\n}\n", "-")
	if code != 1 || !strings.Contains(errs, "<stdin>:2:7") {
		t.Fatalf("got %d, %q", code, errs)
	}
	if code, _, errs := format(t, untidy, "-", "a.hcl"); code != 1 || !strings.Contains(errs, "alone") {
		t.Fatalf("got %d, %q", code, errs)
	}
}

func TestFmtShowsDifferences(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("# comment\n", 20)
	path := write(t, dir, "a.vars", "b=1\n"+long+"c  =  2")
	code, out, _ := format(t, "", "-diff", "-list=false", path)
	want := "--- old/" + path + "\n+++ new/" + path + `
@@ -1,4 +1,4 @@
-b=1
+b = 1
 # comment
 # comment
 # comment
@@ -19,4 +19,4 @@
 # comment
 # comment
 # comment
-c  =  2
\ No newline at end of file
+c = 2
\ No newline at end of file
`
	if code != 0 || out != want {
		t.Errorf("got %d:\n%s\nwant:\n%s", code, out, want)
	}
	holds(t, path, "b = 1\n"+long+"c = 2")
}

func TestFmtTellsFaultsAndFormatsTheRest(t *testing.T) {
	dir := t.TempDir()
	bad, good := write(t, dir, "a.hcl", "x = [\n"), write(t, dir, "b.hcl", untidy)
	deep := write(t, dir, "deep.hcl", "x = "+strings.Repeat("[", 5000))
	code, out, errs := format(t, "", bad, good, deep, filepath.Join(dir, "none.hcl"), write(t, dir, "c.json", "{}"))
	if code != 1 || out != good+"\n" {
		t.Fatalf("got %d, %q", code, out)
	}
	for _, want := range []string{bad + ":2:1: ", deep + ":1:1005: Nested too deep", "no file or folder at " + filepath.Join(dir, "none.hcl"), "only HCL"} {
		if !strings.Contains(errs, want) {
			t.Errorf("no %q in %s", want, errs)
		}
	}
	holds(t, bad, "x = [\n")
	holds(t, good, tidy)
}

func TestFmtKeepsModeOwnerAndLinks(t *testing.T) {
	dir := t.TempDir()
	path := write(t, dir, "real/a.hcl", untidy)
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(path, 12, 34); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link.hcl")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := format(t, "", link); code != 0 {
		t.Fatal(errs)
	}
	holds(t, path, tidy)
	after, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	a, b := before.Sys().(*syscall.Stat_t), after.Sys().(*syscall.Stat_t)
	if before.Mode() != after.Mode() || a.Uid != b.Uid || a.Gid != b.Gid {
		t.Errorf("%v %d:%d became %v %d:%d", before.Mode(), a.Uid, a.Gid, after.Mode(), b.Uid, b.Gid)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link is gone")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "real", ".fmt-*")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func TestFmtLosesNothingWhenItCannotWrite(t *testing.T) {
	dir := t.TempDir()
	path := write(t, dir, "a.hcl", untidy)
	if err := os.Chmod(path, 0o444); err != nil {
		t.Fatal(err)
	}
	code, _, errs := format(t, "", path)
	if code != 1 || !strings.Contains(errs, "stays as it was") || !strings.Contains(errs, "read-only") {
		t.Fatalf("got %d, %q", code, errs)
	}
	holds(t, path, untidy)
}
