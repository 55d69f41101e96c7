package scenariotest

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// Command is one line of a scenario.
type Command struct {
	Line  string
	Name  string   // its first word
	Words []string // the others without a value, in order
	Args  Args     // key=value
}

// Args are the key=value words of a command.
type Args map[string]string

func parse(t *testing.T, line string) Command {
	t.Helper()
	words := strings.Fields(line)
	c := Command{Line: line, Name: words[0], Args: Args{}}
	for _, word := range words[1:] {
		key, value, ok := strings.Cut(word, "=")
		if !ok {
			c.Words = append(c.Words, word)
			continue
		}
		if _, twice := c.Args[key]; twice {
			t.Fatalf("%q says %s twice", line, key)
		}
		c.Args[key] = value
	}
	return c
}

// Number reads a whole number, 0 when the command has none; what is no number ends the test.
func (a Args) Number(t *testing.T, key string) int {
	t.Helper()
	text, ok := a[key]
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return n
}

// Duration reads a duration, 0 when the command has none; what is no duration ends the test.
func (a Args) Duration(t *testing.T, key string) time.Duration {
	t.Helper()
	text, ok := a[key]
	if !ok {
		return 0
	}
	return Duration(t, text)
}

// Duration reads a duration; what is none ends the test.
func Duration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
