package rawexec

import (
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/nomadlite/nomadlite/structs"
)

// taskConfig is a task's config block.
type taskConfig struct {
	command     string
	args        []string
	workDir     string
	oomScoreAdj int
	deniedEnv   []string          // shell patterns
	joinV1      map[string]string // by controller
	joinUnified string
}

// knownKeys are the options of the config block.
func knownKeys() []string {
	return []string{"args", "cgroup_v1_override", "cgroup_v2_override", "command", "denied_envvars", "oom_score_adj", "work_dir"}
}

// parseConfig reads a config block and tells all its faults at once. References may not be resolved yet, so values
// that hold one are only checked for their type.
func parseConfig(config map[string]any) (taskConfig, error) {
	var c taskConfig
	var faults structs.Errors
	for _, key := range slices.Sorted(maps.Keys(config)) {
		if !slices.Contains(knownKeys(), key) {
			faults.Addf("raw_exec has no option %q; it has %s", key, strings.Join(knownKeys(), ", "))
		}
	}
	var err error
	if c.command, err = stringOption(config, "command"); err != nil {
		faults.Add(err)
	} else if strings.TrimSpace(c.command) == "" {
		faults.Addf("option \"command\" is missing")
	}
	if c.args, err = listOption(config, "args"); err != nil {
		faults.Add(err)
	}
	if c.workDir, err = stringOption(config, "work_dir"); err != nil {
		faults.Add(err)
	} else if c.workDir != "" && !filepath.IsAbs(c.workDir) && !strings.HasPrefix(c.workDir, "${") {
		faults.Addf("option \"work_dir\" must be an absolute path, not %q", c.workDir)
	}
	if v, ok := config["oom_score_adj"]; ok {
		n, ok := intValue(v)
		switch {
		case !ok:
			faults.Addf("option \"oom_score_adj\" must be a whole number, not %v", v)
		case n < 0 || n > 1000:
			faults.Addf("option \"oom_score_adj\" must be between 0 and 1000, not %d", n)
		}
		c.oomScoreAdj = n
	}
	if c.deniedEnv, err = listOption(config, "denied_envvars"); err != nil {
		faults.Add(err)
	}
	if c.joinV1, err = mapOption(config, "cgroup_v1_override"); err != nil {
		faults.Add(err)
	}
	if c.joinUnified, err = stringOption(config, "cgroup_v2_override"); err != nil {
		faults.Add(err)
	}
	return c, faults.Err()
}

// mapOption reads a block or map of strings; as a block it is a list of one.
func mapOption(config map[string]any, key string) (map[string]string, error) {
	fault := fmt.Errorf("option %q must be a map of strings, not %v", key, config[key])
	v := config[key]
	if list, ok := v.([]any); ok && len(list) == 1 {
		v = list[0]
	} else if list, ok := v.([]map[string]any); ok && len(list) == 1 {
		v = list[0]
	}
	switch v := v.(type) {
	case nil:
		return nil, nil
	case map[string]string:
		return v, nil
	case map[string]any:
		out := make(map[string]string, len(v))
		for name, value := range v {
			s, ok := value.(string)
			if !ok {
				return nil, fault
			}
			out[name] = s
		}
		return out, nil
	}
	return nil, fault
}

func stringOption(config map[string]any, key string) (string, error) {
	v, ok := config[key]
	if !ok || v == nil {
		return "", nil
	}
	s, ok := v.(string)
	if !ok {
		return "", fmt.Errorf("option %q must be a string, not %v", key, v)
	}
	return s, nil
}

// listOption reads a list of strings; numbers and booleans in it are taken as they are written.
func listOption(config map[string]any, key string) ([]string, error) {
	switch v := config[key].(type) {
	case nil:
		return nil, nil
	case []string:
		return v, nil
	case []any:
		out := make([]string, len(v))
		for i, item := range v {
			switch item := item.(type) {
			case string:
				out[i] = item
			case bool, int, int64, uint64:
				out[i] = fmt.Sprint(item)
			case float64:
				out[i] = strconv.FormatFloat(item, 'f', -1, 64)
			default:
				return nil, fmt.Errorf("option %q must be a list of strings; element %d is not one", key, i)
			}
		}
		return out, nil
	default:
		return nil, fmt.Errorf("option %q must be a list of strings, not %v", key, v)
	}
}

func intValue(v any) (int, bool) {
	switch v := v.(type) {
	case int:
		return v, true
	case int64:
		return int(v), true
	case uint64:
		return int(v), v <= math.MaxInt32
	case float64:
		return int(v), v == math.Trunc(v) && math.Abs(v) < math.MaxInt32
	case string:
		n, err := strconv.Atoi(v)
		return n, err == nil
	}
	return 0, false
}
