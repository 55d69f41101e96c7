package jobspec_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/jobspec"
	"github.com/nomadlite/nomadlite/structs"
)

// slow is how long one text may take at most, also on a busy machine.
const slow = 20 * time.Second

// tryParse parses a text and does with the job what servers do. It gives the parse view, nil when the text was refused.
func tryParse(t *testing.T, cfg jobspec.Config) []byte {
	t.Helper()
	begun := time.Now()
	result, err := jobspec.Parse(cfg)
	if took := time.Since(begun); took > slow {
		t.Fatalf("took %s", took)
	}
	if err != nil {
		if strings.TrimSpace(err.Error()) == "" {
			t.Fatal("refused without a word")
		}
		return nil
	}
	view, err := structs.ParseView(result.Job)
	if err != nil {
		t.Fatalf("what was parsed cannot be written: %v", err)
	}
	result.Job.Canonicalize()
	_ = result.Job.Validate()
	_ = result.Job.Warnings()
	result.Job.Canonicalize()
	return view
}

// FuzzParse: no text ends the process, and a job that was read can be written as JSON and be read again as the same.
// The corpus was made from the recorded cases.
func FuzzParse(f *testing.F) {
	f.Fuzz(func(t *testing.T, body string) {
		view := tryParse(t, jobspec.Config{Body: []byte(body)})
		if view == nil || jobspec.IsJSON([]byte(body)) {
			return
		}
		again := tryParse(t, jobspec.Config{Body: view})
		if again != nil && string(again) != string(view) {
			t.Fatalf("read again:\n%s\n%s", view, again)
		}
	})
}

// FuzzParseJSON: the same for JSON; what is written is a fixed point.
func FuzzParseJSON(f *testing.F) {
	f.Fuzz(func(t *testing.T, body string) {
		if !jobspec.IsJSON([]byte(body)) {
			return
		}
		view := tryParse(t, jobspec.Config{Body: []byte(body)})
		if view == nil {
			return
		}
		again := tryParse(t, jobspec.Config{Body: view})
		if again != nil && string(again) != string(view) {
			t.Fatalf("read again:\n%s\n%s", view, again)
		}
	})
}

const variablesJob = `
variable "text" {
  type    = string
  default = "a"
}
variable "number" {
  type    = number
  default = 1
  validation {
    condition     = var.number < 100
    error_message = "The number is too large."
  }
}
variable "list" {
  type    = list(string)
  default = []
}
variable "map" {
  type    = map(number)
  default = {}
}
variable "object" {
  type = object({ name = string, ports = set(number), flag = tuple([bool, number]) })
  default = { name = "x", ports = [1], flag = [true, 1] }
}
variables {
  any = "any"
}
job "x" {
  meta = { text = var.text, number = var.number, list = join(",", var.list), any = var.any, name = var.object.name }
  group "g" {
    task "t" {
      driver = "raw_exec"
      config {
        list   = var.list
        map    = var.map
        object = var.object
        any    = var.any
      }
    }
  }
}
`

// FuzzVariables: values of variables by argument, file and environment.
func FuzzVariables(f *testing.F) {
	f.Fuzz(func(t *testing.T, argument, file, environment string, strict bool) {
		tryParse(t, jobspec.Config{Body: []byte(variablesJob), Vars: strings.Split(argument, "\n"), VarContent: file,
			Env: strings.Split(environment, "\n"), Strict: strict})
	})
}
