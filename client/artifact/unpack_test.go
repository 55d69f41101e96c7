package artifact

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"github.com/nomadlite/nomadlite/structs"
)

// zipped packs members as a zip.
func zipped(t *testing.T, members ...member) string {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, m := range members {
		h := &zip.FileHeader{Name: m.Name, Method: zip.Deflate}
		content := m.content
		h.SetMode(fs.FileMode(m.Mode))
		if m.Typeflag == tar.TypeSymlink {
			h.SetMode(fs.ModeSymlink | 0o777)
			content = m.Linkname
		}
		f, err := w.CreateHeader(h)
		if err == nil {
			_, err = f.Write([]byte(content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func xzipped(t *testing.T, content string) string {
	t.Helper()
	var out bytes.Buffer
	w, err := xz.NewWriter(&out)
	if err == nil {
		_, err = w.Write([]byte(content))
	}
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func zstandard(t *testing.T, content string) string {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(w.EncodeAll([]byte(content), nil))
}

// bzipped needs the program: no library here writes the format.
func bzipped(t *testing.T, content string) string {
	t.Helper()
	if _, err := exec.LookPath("bzip2"); err != nil {
		t.Skip("there is no bzip2 to pack a file with")
	}
	cmd := exec.CommandContext(t.Context(), "bzip2", "-c")
	cmd.Stdin = strings.NewReader(content)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestFormats(t *testing.T) {
	packers := map[string]func(*testing.T, string) string{"gz": gzipped, "bz2": bzipped, "xz": xzipped, "zst": zstandard}
	short := map[string]string{"gz": "tgz", "bz2": "tbz2", "xz": "txz", "zst": "tzst"}
	for ext, pack := range packers {
		t.Run(ext, func(t *testing.T) {
			t.Parallel()
			archive := pack(t, tarred(t, regular("d/a", "A"), link("d/l", "a"), hardLink("h", "d/a")))
			srv := serve(t, map[string]string{"/x." + short[ext]: archive, "/x.tar." + ext: archive, "/plain." + ext: pack(t, "text")})
			s := newStand(t)
			s.add(srv.URL+"/x."+short[ext], func(a *structs.TaskArtifact) { a.RelativeDest = structs.Ptr("local/short") })
			s.add(srv.URL+"/x.tar."+ext+"//d", func(a *structs.TaskArtifact) { a.RelativeDest = structs.Ptr("local/part") })
			s.add(srv.URL+"/x.tar."+ext, func(a *structs.TaskArtifact) { a.GetterOptions["archive"] = "false" })
			s.add(srv.URL+"/plain."+ext, nil)
			s.add(srv.URL+"/plain."+ext, func(a *structs.TaskArtifact) {
				a.GetterMode, a.RelativeDest = structs.Ptr("file"), structs.Ptr("local/as/named")
			})
			want := map[string]string{"local/short/d/a": "A", "local/short/d/l": "-> a", "local/short/h": "A", "local/part/a": "A", "local/part/l": "-> a",
				"local/x.tar." + ext: archive, "local/plain": "text", "local/as/named": "text"}
			if got := s.good(); !maps.Equal(got, want) {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestZips(t *testing.T) {
	srv := serve(t, map[string]string{
		"/x.zip": zipped(t, member{Header: tar.Header{Name: "d/", Mode: 0o755}}, regular("d/run", "A"), link("l", "d/run")),
		"/y":     zipped(t, regular("one", "1")),
	})
	s := newStand(t)
	s.add(srv.URL+"/x.zip", nil)
	s.add(srv.URL+"/y", func(a *structs.TaskArtifact) {
		a.GetterOptions["archive"], a.GetterMode, a.RelativeDest = "zip", structs.Ptr("file"), structs.Ptr("local/single")
	})
	if got := s.good(); !maps.Equal(got, map[string]string{"local/d/run": "A", "local/l": "-> d/run", "local/single": "1"}) {
		t.Errorf("got %q", got)
	}
}

// TestModesAndTimes keeps what an archive says of its members, but no bits that lend rights.
func TestModesAndTimes(t *testing.T) {
	when := time.Unix(1_600_000_000, 0)
	lent, closed := regular("lent", "x"), member{Header: tar.Header{Name: "closed/", Typeflag: tar.TypeDir, Mode: 0o500, ModTime: when}}
	lent.Mode, lent.ModTime = 0o6754, when
	srv := serve(t, map[string]string{"/x.tar": tarred(t, closed, regular("closed/a", "A"), lent)})
	s := newStand(t)
	s.add(srv.URL+"/x.tar", nil)
	s.good()
	for name, mode := range map[string]fs.FileMode{"lent": 0o754, "closed": fs.ModeDir | 0o700} {
		info, err := os.Stat(filepath.Join(s.Dir.LocalDir("web"), name))
		if err != nil || info.Mode() != mode || !info.ModTime().Equal(when) {
			t.Errorf("%s: %v %v %v", name, info.Mode(), info.ModTime(), err)
		}
	}
}

// TestArchivesThatLeadOut are refused, or lead inside; nothing of them is left, and nothing lies outside.
func TestArchivesThatLeadOut(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(outside, []byte("mine"), 0o666); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		members []member
		want    string
	}{
		"up":                {[]member{regular("a", ""), regular("../../../evil", "x")}, "leads out of the archive"},
		"up in the middle":  {[]member{regular("a/../../evil", "x")}, "leads out of the archive"},
		"absolute link":     {[]member{link("l", outside)}, "leads out of the artifact"},
		"through a link":    {[]member{link("l", filepath.Dir(outside)), regular("l/victim", "x")}, "escapes"},
		"link up":           {[]member{link("d/l", "../../x")}, "leads out of the artifact"},
		"link by links":     {[]member{regular("p/q/a", ""), link("p/q/l", "../.."), link("m", "p/q/l/../x")}, "leads out of the artifact"},
		"over a link":       {[]member{link("l", outside), regular("l", "x"), link("l", outside)}, "leads out of the artifact"},
		"hard link up":      {[]member{hardLink("h", "../../../victim")}, "leads out of the archive"},
		"hard link outside": {[]member{hardLink("h", outside)}, "no such file"},
		"hard link by link": {[]member{link("l", filepath.Dir(outside)), hardLink("h", "l/victim")}, "escapes"},
		"device":            {[]member{{Header: tar.Header{Name: "d", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}}}, "is a device"},
		"FIFO":              {[]member{{Header: tar.Header{Name: "f", Typeflag: tar.TypeFifo}}}, "is a FIFO"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := serve(t, map[string]string{"/x.tar": tarred(t, tt.members...)})
			s := newStand(t)
			s.add(srv.URL+"/x.tar", nil)
			s.bad(tt.want, false)
			if data, err := os.ReadFile(outside); err != nil || string(data) != "mine" {
				t.Errorf("the file outside is now %q, %v", data, err)
			}
		})
	}
	t.Run("absolute", func(t *testing.T) {
		srv := serve(t, map[string]string{"/x.tar": tarred(t, regular(outside, "x"))})
		s := newStand(t)
		s.add(srv.URL+"/x.tar", nil)
		if got := s.good(); got["local"+outside] != "x" {
			t.Errorf("%v", got)
		}
	})
	t.Run("zip", func(t *testing.T) {
		srv := serve(t, map[string]string{"/a.zip": zipped(t, regular("../evil", "x")), "/b.zip": zipped(t, link("l", outside))})
		for file, want := range map[string]string{"/a.zip": "leads out of the archive", "/b.zip": "leads out of the artifact"} {
			s := newStand(t)
			s.add(srv.URL+file, nil)
			s.bad(want, false)
		}
	})
}

// TestUninspectedLinks lets links lead anywhere where the node's configuration says so; nothing follows them.
func TestUninspectedLinks(t *testing.T) {
	srv := serve(t, map[string]string{"/x.tar": tarred(t, link("l", "/etc/alternatives/vi"))})
	s := newStand(t)
	s.Config.Settings.NoInspection = true
	s.add(srv.URL+"/x.tar", nil)
	if got := s.good(); got["local/l"] != "-> /etc/alternatives/vi" {
		t.Errorf("%v", got)
	}
}

func TestWhatIsPackedTooLarge(t *testing.T) {
	t.Parallel()
	zeros := strings.Repeat("\x00", 8<<20)
	many := []member{}
	for _, c := range "abcdefghijk" {
		many = append(many, regular(string(c), ""))
	}
	srv := serve(t, map[string]string{
		"/bomb.tar.gz": gzipped(t, tarred(t, regular("zeros", zeros))), "/bomb.gz": gzipped(t, zeros), "/bomb.zip": zipped(t, regular("zeros", zeros)),
		"/bomb.tar.zst": zstandard(t, tarred(t, regular("zeros", zeros))), "/many.tar": tarred(t, many...), "/many.zip": zipped(t, many...),
		"/empty.tar": "", "/broken.tar.gz": "nonsense", "/broken.zip": "nonsense", "/broken.xz": "nonsense", "/broken.zst": "nonsense",
		"/cut.tar.gz": gzipped(t, tarred(t, regular("a", "A")))[:30],
	})
	for file, want := range map[string]string{
		"/bomb.tar.gz": "above 1000000 bytes", "/bomb.gz": "above 1000000 bytes", "/bomb.zip": "above 1000000 bytes", "/bomb.tar.zst": "above 1000000 bytes",
		"/many.tar": "more than 10 members", "/many.zip": "more than 10 members", "/empty.tar": "archive is empty", "/broken.tar.gz": "read archive",
		"/broken.zip": "read archive", "/broken.xz": "read archive", "/broken.zst": "magic number", "/cut.tar.gz": "unexpected EOF",
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			s := newStand(t)
			s.Config.Settings.UnpackedSize, s.Config.Settings.UnpackedFiles = 1_000_000, 10
			s.add(srv.URL+file, nil)
			s.bad(want, false)
		})
	}
}
