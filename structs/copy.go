package structs

// The building blocks of the Copy methods. All keep nil apart from empty, since the difference is visible in JSON.

func copyPtr[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

func copySlice[T interface{ Copy() T }](s []T) []T {
	if s == nil {
		return nil
	}
	c := make([]T, len(s))
	for i, v := range s {
		c[i] = v.Copy()
	}
	return c
}

func copyValues[T any](s []T, copyOne func(*T) *T) []T {
	if s == nil {
		return nil
	}
	c := make([]T, len(s))
	for i := range s {
		c[i] = *copyOne(&s[i])
	}
	return c
}

func copyMap[T interface{ Copy() T }](m map[string]T) map[string]T {
	if m == nil {
		return nil
	}
	c := make(map[string]T, len(m))
	for k, v := range m {
		c[k] = v.Copy()
	}
	return c
}

func copyLists[T any](m map[string][]T) map[string][]T {
	if m == nil {
		return nil
	}
	c := make(map[string][]T, len(m))
	for k, v := range m {
		if v != nil {
			v = append([]T{}, v...)
		}
		c[k] = v
	}
	return c
}

func copyAnyMap(m map[string]any) map[string]any {
	if m == nil {
		return nil
	}
	c := make(map[string]any, len(m))
	for k, v := range m {
		c[k] = copyAny(v)
	}
	return c
}

// copyAny copies what a driver's config may hold: what JSON, CBOR and the jobspec parser make, and the typed lists
// and maps that code may put there.
func copyAny(v any) any {
	switch t := v.(type) {
	case map[string]any:
		return copyAnyMap(t)
	case []any:
		if t == nil {
			return t
		}
		c := make([]any, len(t))
		for i, e := range t {
			c[i] = copyAny(e)
		}
		return c
	case []map[string]any:
		if t == nil {
			return t
		}
		c := make([]map[string]any, len(t))
		for i, e := range t {
			c[i] = copyAnyMap(e)
		}
		return c
	case []string:
		if t == nil {
			return t
		}
		return append([]string{}, t...)
	case []byte:
		if t == nil {
			return t
		}
		return append([]byte{}, t...)
	case map[string]string:
		if t == nil {
			return t
		}
		c := make(map[string]string, len(t))
		for k, e := range t {
			c[k] = e
		}
		return c
	default:
		return v
	}
}
