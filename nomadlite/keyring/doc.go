// Package keyring holds the cluster's root keys, which sign workload identities (RS256). A key is made in the
// background by the first leader, so that nothing waits for it but who wants to sign; signing happens only on demand.
//
// Where secrets are: the private key is in raft and in snapshots only sealed with AES-256-GCM under the servers' key
// file (data_dir/keyring/kek.json, mode 0600; in memory for dev agents), and in plain text only in the memory of
// servers. The key file itself travels only over authenticated sessions between servers (Handler, Config.Fetch).
package keyring
