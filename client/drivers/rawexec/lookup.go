package rawexec

import (
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/nomadlite/nomadlite/client/supervisor"
)

// lookCommand finds the program: in the task's local directory, in its root, then along PATH, the task's before the
// agent's. What lies in the task's directories is made executable, since downloads often are not.
func lookCommand(command, taskDir, taskPath, hostPath string) (string, error) {
	notFound := fmt.Errorf("%q: executable file not found", command)
	if filepath.IsAbs(command) {
		info, err := os.Stat(command)
		switch {
		case err != nil:
			return "", notFound
		case info.IsDir():
			return "", fmt.Errorf("%q: is a directory", command)
		case info.Mode()&0o111 == 0 && !within(command, taskDir):
			return "", fmt.Errorf("%q: permission denied: it is not executable", command)
		}
		return command, makeExecutable(command, taskDir, info)
	}
	for _, dir := range []string{filepath.Join(taskDir, "local"), taskDir} {
		path := filepath.Join(dir, command)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && within(path, taskDir) {
			return path, makeExecutable(path, taskDir, info)
		}
	}
	if strings.ContainsRune(command, '/') {
		return "", notFound
	}
	for _, list := range []string{taskPath, hostPath} {
		for _, dir := range filepath.SplitList(list) {
			if !filepath.IsAbs(dir) {
				continue // relative to what the agent happens to run in
			}
			path := filepath.Join(dir, command)
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("%q: executable file not found in task directory or $PATH", command)
}

func within(path, dir string) bool {
	return strings.HasPrefix(filepath.Clean(path), filepath.Clean(dir)+"/")
}

func makeExecutable(path, taskDir string, info fs.FileInfo) error {
	if info.Mode()&0o111 == 0o111 || !within(path, taskDir) {
		return nil
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil || !within(real, taskDir) {
		return nil // a link to a file of the host, which is left as it is
	}
	if err := os.Chmod(real, info.Mode().Perm()|0o111); err != nil && info.Mode()&0o111 == 0 {
		return fmt.Errorf("make command executable: %w", err)
	}
	return nil
}

// lookUser finds a user by name or number. nil means the agent's own.
func lookUser(name string) (*supervisor.User, error) {
	if name == "" {
		return nil, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		if byID, idErr := user.LookupId(name); idErr == nil {
			u = byID
		} else {
			return nil, fmt.Errorf("look up user %q: %w", name, err)
		}
	}
	out := &supervisor.User{}
	for _, f := range []struct {
		text string
		to   *uint32
	}{{u.Uid, &out.UID}, {u.Gid, &out.GID}} {
		n, err := strconv.ParseUint(f.text, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("look up user %q: its id %q is no number", name, f.text)
		}
		*f.to = uint32(n)
	}
	groups, err := u.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("look up groups of user %q: %w", name, err)
	}
	for _, g := range groups {
		if n, err := strconv.ParseUint(g, 10, 32); err == nil {
			out.Groups = append(out.Groups, uint32(n))
		}
	}
	if int(out.UID) == os.Geteuid() && int(out.GID) == os.Getegid() {
		return nil, nil
	}
	return out, nil
}
