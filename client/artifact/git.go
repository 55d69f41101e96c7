package artifact

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// keyName is where a key for ssh lies while git runs.
const keyName = tmpName + "/key"

// git clones a repository and checks out what is meant of it.
func (f *fetcher) git(ctx context.Context) error {
	if _, err := exec.LookPath("git"); err != nil {
		return errors.New("this node has no git")
	}
	from := f.Source
	if f.Mode == structs.ArtifactModeFile && from.Subdir == "" {
		if err := splitFile(&from); err != nil {
			return err
		}
		f.Source.Subdir = from.Subdir
	}
	env, err := f.gitEnv(from)
	if err != nil {
		return err
	}
	err = timed(ctx, f.Settings.GitTimeout, "git", func(ctx context.Context) error {
		for _, args := range gitSteps(from) {
			if err := runGit(ctx, env, args...); err != nil {
				return err
			}
		}
		return nil
	})
	if removed := f.stage.RemoveAll(keyName); err == nil {
		err = removed
	}
	if err != nil {
		return err
	}
	return f.keepTree()
}

// splitFile takes the last part of a repository's URL as the file in it that mode file asks for.
func splitFile(s *Source) error {
	u, err := url.Parse(s.URL)
	if err != nil || path.Dir(u.Path) == "/" || path.Dir(u.Path) == "." {
		return final("mode file: write which file of the repository is meant behind //")
	}
	s.Subdir = path.Base(u.Path)
	u.Path = path.Dir(u.Path)
	s.URL = u.String()
	return nil
}

// gitSteps are the calls of git that bring a repository to where it is unpacked.
func gitSteps(s Source) [][]string {
	in := func(args ...string) []string { return append([]string{"-C", wholeName}, args...) }
	depth := []string{}
	if s.Depth > 0 {
		depth = []string{"--depth", strconv.Itoa(s.Depth)}
	}
	var steps [][]string
	switch {
	case s.Depth > 0 && isCommit(s.Ref): // which clone cannot name
		steps = [][]string{{"init", "--quiet", wholeName}, in("remote", "add", "origin", "--", s.URL),
			in("fetch", "--quiet", depth[0], depth[1], "origin", s.Ref), in("checkout", "--quiet", "FETCH_HEAD", "--")}
	case s.Depth > 0 && s.Ref != "":
		steps = [][]string{{"clone", "--quiet", depth[0], depth[1], "--branch", s.Ref, "--", s.URL, wholeName}}
	case s.Ref != "":
		steps = [][]string{{"clone", "--quiet", "--", s.URL, wholeName}, in("checkout", "--quiet", s.Ref, "--")}
	default:
		steps = [][]string{append(append([]string{"clone", "--quiet"}, depth...), "--", s.URL, wholeName)}
	}
	return append(steps, in(append([]string{"submodule", "--quiet", "update", "--init", "--recursive"}, depth...)...))
}

// isCommit says whether a ref is the full id of a commit.
func isCommit(ref string) bool {
	raw, err := hex.DecodeString(ref)
	return err == nil && (len(raw) == 20 || len(raw) == 32)
}

// gitEnv is the environment of git: it asks nobody, and uses no protocol but those that are supported, for submodules too.
func (f *fetcher) gitEnv(s Source) ([]string, error) {
	protocols := "http:https:ssh:git"
	if f.showsHost() == nil {
		protocols += ":file"
	}
	env := append(os.Environ(), "GIT_TERMINAL_PROMPT=0", "GIT_ALLOW_PROTOCOL="+protocols,
		"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=gc.auto", "GIT_CONFIG_VALUE_0=0",
		"GIT_CONFIG_KEY_1=advice.detachedHead", "GIT_CONFIG_VALUE_1=false")
	if f.Insecure {
		env = append(env, "GIT_SSL_NO_VERIFY=1")
	}
	ssh := "ssh -o BatchMode=yes"
	if s.SSHKey != "" {
		key, err := base64.StdEncoding.DecodeString(s.SSHKey)
		if err != nil {
			return nil, final("sshkey is not in base64")
		}
		if !bytes.HasSuffix(key, []byte("\n")) {
			key = append(key, '\n') // without it ssh does not know the format
		}
		if err := f.stage.WriteFile(keyName, key, 0o600); err != nil {
			return nil, fmt.Errorf("keep sshkey: %w", err)
		}
		dir, err := os.Getwd()
		if err != nil {
			return nil, fmt.Errorf("keep sshkey: %w", err)
		}
		ssh += " -o IdentitiesOnly=yes -i '" + strings.ReplaceAll(filepath.Join(dir, keyName), "'", `'\''`) + "'"
	}
	return append(env, "GIT_SSH_COMMAND="+ssh), nil
}

// maxSaid bounds what an error quotes of git, in bytes.
const maxSaid = 2 << 10

func runGit(ctx context.Context, env []string, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", args...)
	var said tail
	cmd.Env, cmd.Stdout, cmd.Stderr = env, &said, &said
	cmd.WaitDelay = time.Second // its helpers hold the output; they end with this process
	if err := cmd.Run(); err != nil {
		what := args[0]
		if what == "-C" {
			what = args[2]
		}
		return fmt.Errorf("git %s: %w: %s", what, err, strings.TrimSpace(string(said.buf)))
	}
	return nil
}

// tail keeps the last bytes.
type tail struct{ buf []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - maxSaid; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(p), nil
}
