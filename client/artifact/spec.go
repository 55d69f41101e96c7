package artifact

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/nomadlite/nomadlite/client/taskenv"
	"github.com/nomadlite/nomadlite/structs"
)

// shortestSecret is how long a header's value is, in bytes, that errors do not show: a shorter one is a word like any other.
const shortestSecret = 8

// item reads one block. It does no I/O.
func (h *Hook) item(number int, a *structs.TaskArtifact, env *taskenv.Env, places dirs) (*item, error) {
	options := make(map[string]string, len(a.GetterOptions))
	for k, v := range a.GetterOptions {
		options[env.Replace(k)] = env.Replace(v)
	}
	source, err := parseSource(env.Replace(structs.Val(a.GetterSource)), options)
	if err != nil {
		return nil, err
	}
	settings := h.Config.Settings
	it := &item{number: number, label: fmt.Sprintf("artifact %d (%s)", number, source.shown()), hidden: source.secrets(),
		request: &Request{Source: *source, Mode: structs.Val(a.GetterMode), Insecure: structs.Val(a.GetterInsecure), Settings: settings,
			Headers: make(map[string]string, len(a.GetterHeaders))},
		look: look{anyLink: settings.NoInspection}}
	for k, v := range a.GetterHeaders {
		it.request.Headers[env.Replace(k)] = env.Replace(v)
		if v = env.Replace(v); len(v) >= shortestSecret {
			it.hidden = append(it.hidden, v)
		}
	}
	if source.By != byGit && settings.HTTPMaxSize > 0 && settings.UnpackedSize > 0 {
		it.look.maxBytes = max(settings.HTTPMaxSize, settings.UnpackedSize)
	}
	destination := env.Replace(structs.Val(a.RelativeDest))
	if destination == "" {
		destination = "local/"
	}
	if it.dir, err = places.find(destination); err != nil {
		return nil, err
	}
	switch it.request.Mode {
	case structs.ArtifactModeFile:
		it.dir, it.request.Name = filepath.Split(it.dir)
		it.dir = filepath.Clean(it.dir)
		if it.request.Name == "" || it.request.Name == "." || strings.HasSuffix(destination, "/") {
			return nil, structs.Errorf(structs.CodeInvalid, "mode file: destination %q is a directory, not a file", destination)
		}
	case "", structs.ArtifactModeAny, structs.ArtifactModeDir:
	default:
		return nil, structs.Errorf(structs.CodeInvalid, "mode %q is none of any, file and dir", it.request.Mode)
	}
	return it, nil
}
