package structs

import "slices"

// Copy gives a deep copy, nil for nil.
func (r *RootKey) Copy() *RootKey {
	if r == nil {
		return nil
	}
	out := *r
	out.WrappedKey = slices.Clone(r.WrappedKey)
	out.Nonce = slices.Clone(r.Nonce)
	out.PublicKey = slices.Clone(r.PublicKey)
	return &out
}
