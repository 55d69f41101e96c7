package structs

// RootKeyMeta is what may be known about a root key; times are in Unix nanoseconds.
type RootKeyMeta struct {
	KeyID       string
	Algorithm   string
	CreateTime  int64
	CreateIndex uint64
	ModifyIndex uint64
	State       string
	PublishTime int64
}

// RootKey is a root key as raft and snapshots hold it: its material is wrapped by the key file of the servers and
// never in plain text.
type RootKey struct {
	RootKeyMeta
	// WrappedKey is the key material, sealed with AES-256-GCM under the key-encryption key named by KEKID.
	WrappedKey []byte
	Nonce      []byte
	KEKID      string
	// PublicKey is the PKIX form of the RS256 signing key's public half, for /.well-known/jwks.json.
	PublicKey []byte
}
