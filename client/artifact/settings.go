package artifact

import (
	"strings"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// Settings are what the agent's configuration says of artifacts. Of times and sizes 0 means no limit.
type Settings struct {
	HTTPTimeout   time.Duration // of one download
	HTTPMaxSize   int64         // bytes of one download
	GitTimeout    time.Duration // of all that git does for one artifact
	UnpackedSize  int64         // bytes of what lies in one archive
	UnpackedFiles int           // entries of one archive
	// NoInspection lets links lead wherever they like; nothing is written through them all the same.
	NoInspection bool
	// NoIsolation lets the fetching process see the whole host with all rights of the agent.
	NoIsolation bool
	// ExtraPaths are shown to the fetching process beside those that it always sees.
	ExtraPaths []Path
	// Environment names the variables of the agent which the fetching process gets.
	Environment []string
}

const (
	defaultTimeout = 30 * time.Minute
	defaultSize    = 100 * 1000 * 1000 * 1000
	defaultFiles   = 4096
)

// DefaultSettings are those of the public documentation.
func DefaultSettings() Settings {
	return Settings{HTTPTimeout: defaultTimeout, HTTPMaxSize: defaultSize, GitTimeout: defaultTimeout,
		UnpackedSize: defaultSize, UnpackedFiles: defaultFiles}
}

// Path is a file or directory of the host with what the fetching process may do there.
type Path struct {
	Name                         string
	Dir                          bool
	Read, Write, Create, Execute bool
}

// ParsePath reads KIND:MODE:PATH, as in "d:rx:/opt/bin": kind f or d, mode of the letters r, w, c and x.
func ParsePath(text string) (Path, error) {
	parts := strings.SplitN(text, ":", 3)
	wrong := structs.Errorf(structs.CodeInvalid, "%q is not KIND:MODE:PATH, such as d:rx:/opt/bin", text)
	if len(parts) != 3 || parts[0] != "f" && parts[0] != "d" || !strings.HasPrefix(parts[2], "/") {
		return Path{}, wrong
	}
	p := Path{Name: parts[2], Dir: parts[0] == "d"}
	for _, letter := range parts[1] {
		switch letter {
		case 'r':
			p.Read = true
		case 'w':
			p.Write = true
		case 'c':
			p.Create = true
		case 'x':
			p.Execute = true
		default:
			return Path{}, wrong
		}
	}
	return p, nil
}
