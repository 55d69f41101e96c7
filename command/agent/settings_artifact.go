package agent

import (
	"strings"
	"time"

	"github.com/nomadlite/nomadlite/client/artifact"
	"github.com/nomadlite/nomadlite/structs"
)

// artifacts reads the client's artifact block. The times for Google's and Amazon's storage and for Mercurial are checked,
// but nothing is fetched from there.
func (r *resolver) artifacts(in *ClientArtifactConfig) *artifact.Settings {
	if in == nil {
		return nil
	}
	out := artifact.DefaultSettings()
	timeout := func(name string, text *string, field *time.Duration) {
		if text != nil {
			*field = r.duration("client.artifact."+name, text)
		}
	}
	size := func(name string, text *string, field *int64) {
		if text != nil {
			*field = r.size("client.artifact."+name, text)
		}
	}
	timeout("http_read_timeout", in.HTTPReadTimeout, &out.HTTPTimeout)
	timeout("git_timeout", in.GitTimeout, &out.GitTimeout)
	var unused time.Duration
	timeout("gcs_timeout", in.GCSTimeout, &unused)
	timeout("hg_timeout", in.HgTimeout, &unused)
	timeout("s3_timeout", in.S3Timeout, &unused)
	size("http_max_size", in.HTTPMaxSize, &out.HTTPMaxSize)
	size("decompression_size_limit", in.DecompressionSizeLimit, &out.UnpackedSize)
	if n := in.DecompressionFileCountLimit; n != nil {
		if out.UnpackedFiles = *n; *n < 0 {
			r.faults.Addf("client.artifact.decompression_file_count_limit: %d is below 0", *n)
		}
	}
	out.NoInspection = structs.Val(in.DisableArtifactInspection)
	out.NoIsolation = structs.Val(in.DisableFilesystemIsolation)
	for _, text := range in.FilesystemIsolationExtraPaths {
		p, err := artifact.ParsePath(text)
		if err != nil {
			r.faults.Addf("client.artifact.filesystem_isolation_extra_paths: %w", err)
			continue
		}
		out.ExtraPaths = append(out.ExtraPaths, p)
	}
	for name := range strings.SplitSeq(structs.Val(in.SetEnvironmentVariables), ",") {
		if name = strings.TrimSpace(name); name != "" {
			out.Environment = append(out.Environment, name)
		}
	}
	return &out
}
