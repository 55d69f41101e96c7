package jobspec

import (
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// Bounds of single function calls: bytes of a text that is taken apart or made, elements of a list that is made or that
// is compared each with each, the width in a format, the cost of bcrypt.
const (
	maxText     = 4 << 20
	maxElements = 100_000
	maxCompared = 5_000
	maxWidth    = 4096
	maxBcrypt   = 14
	maxKey      = 16 << 10
)

// boundFunctions replaces the functions whose result, or whose effort, can be far greater than what they are given.
func boundFunctions(all map[string]function.Function, m *meter) {
	for name, check := range map[string]func(args []cty.Value) error{
		"setproduct": boundProduct, "format": boundFormat, "formatlist": boundFormatList, "indent": boundIndent,
		"join": boundJoin, "replace": boundReplace, "regex_replace": boundReplace, "bcrypt": boundBcrypt(m),
		"rsadecrypt": boundTexts(maxKey), "distinct": boundDistinct,
		"split": boundTexts(maxText), "jsondecode": boundTexts(maxText), "yamldecode": boundYAML,
		"csvdecode": boundTexts(maxText), "parseint": boundTexts(maxWidth),
	} {
		all[name] = boundedFunc(all[name], check)
	}
}

func boundedFunc(f function.Function, check func(args []cty.Value) error) function.Function {
	return function.New(&function.Spec{
		Description: f.Description(), Params: f.Params(), VarParam: f.VarParam(),
		Type: func(args []cty.Value) (cty.Type, error) {
			if err := check(args); err != nil {
				return cty.DynamicPseudoType, err
			}
			return f.ReturnTypeForValues(args)
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return f.Call(args) },
	})
}

// text gives a known text, "" for all else.
func text(v cty.Value) string {
	if v.IsKnown() && !v.IsNull() && v.Type() == cty.String {
		return v.AsString()
	}
	return ""
}

// length gives the number of elements of a known collection, 0 for all else.
func length(v cty.Value) int {
	if v.IsKnown() && !v.IsNull() && v.CanIterateElements() {
		return v.LengthInt()
	}
	return 0
}

func boundTexts(limit int) func([]cty.Value) error {
	return func(args []cty.Value) error {
		for i, v := range args {
			if n := len(text(v)); n > limit {
				return function.NewArgErrorf(i, "%s", tooLong(strconv.Itoa(n)+" bytes of text", limit))
			}
		}
		return nil
	}
}

func boundProduct(args []cty.Value) error {
	product := len(args)
	for _, v := range args {
		if product *= max(length(v), 1); product > maxElements {
			return tooLong("the product", maxElements)
		}
	}
	return nil
}

func boundDistinct(args []cty.Value) error {
	if n := length(args[0]); n > maxCompared {
		return function.NewArgErrorf(0, "%s", tooLong(strconv.Itoa(n)+" elements", maxCompared))
	}
	return nil
}

var formatWidth = regexp.MustCompile(`[0-9]{4,}`)

func boundFormat(args []cty.Value) error {
	if len(args) == 0 {
		return nil
	}
	for _, digits := range formatWidth.FindAllString(text(args[0]), -1) {
		if width, err := strconv.Atoi(digits); err == nil && width <= maxWidth {
			continue
		}
		if strings.Contains(text(args[0]), "%") {
			return function.NewArgErrorf(0, "%s", tooLong("the number "+digits[:min(len(digits), 20)]+" in a format", maxWidth))
		}
	}
	return nil
}

func boundFormatList(args []cty.Value) error {
	if err := boundFormat(args); err != nil {
		return err
	}
	rows, size := 1, 0
	for _, v := range args {
		rows = max(rows, length(v))
		size += len(text(v))
	}
	return boundResult(rows, size)
}

func boundIndent(args []cty.Value) error {
	spaces := 0
	if n := args[0]; n.IsKnown() && !n.IsNull() {
		if f, _ := n.AsBigFloat().Float64(); f > maxWidth || math.IsInf(f, 0) {
			return function.NewArgErrorf(0, "%s", tooLong("the indentation", maxWidth))
		} else if f > 0 {
			spaces = int(f)
		}
	}
	return boundResult(1+strings.Count(text(args[1]), "\n"), spaces)
}

func boundJoin(args []cty.Value) error {
	elements := 0
	for _, v := range args[1:] {
		elements += length(v)
	}
	return boundResult(elements, len(text(args[0])))
}

func boundReplace(args []cty.Value) error {
	if err := boundTexts(maxText)(args); err != nil {
		return err
	}
	return boundResult(len(text(args[0]))/max(len(text(args[1])), 1)+1, len(text(args[2])))
}

// boundResult refuses results of so many parts, each of size bytes more than what was given.
func boundResult(parts, size int) error {
	if size > 0 && parts > evaluationBudget/size {
		return tooLong("the resulting text", evaluationBudget)
	}
	return nil
}

// boundBcrypt also charges the time, of which bcrypt needs a lot by design.
func boundBcrypt(m *meter) func([]cty.Value) error {
	return func(args []cty.Value) error {
		cost := 10.0
		if len(args) > 1 && args[1].IsKnown() && !args[1].IsNull() {
			cost, _ = args[1].AsBigFloat().Float64()
		}
		if cost > maxBcrypt {
			return function.NewArgErrorf(1, "%s", tooLong("the cost", maxBcrypt))
		}
		m.left -= 1 << (10 + uint(max(cost, 4)))
		if m.left < 0 {
			return errors.New("bcrypt is called too often")
		}
		return nil
	}
}

// boundYAML also bounds aliases: each stands for all that its anchor names, and they may be nested.
func boundYAML(args []cty.Value) error {
	if err := boundTexts(maxText)(args); err != nil {
		return err
	}
	body := text(args[0])
	n := len(yamlAlias.FindAllStringIndex(body, -1))
	// The worst that n aliases can do is to make the text three times as large with each third of them.
	if n > 0 && math.Pow(3, float64(n)/3)*float64(len(body)) > evaluationBudget {
		return function.NewArgErrorf(0, "%d aliases in %d bytes may multiply the text beyond all bounds", n, len(body))
	}
	return nil
}

var yamlAlias = regexp.MustCompile(`(?m)(^|[\s\[{,:-])\*[A-Za-z0-9_-]`)
