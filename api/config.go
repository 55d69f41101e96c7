package api

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// DefaultAddress is where an agent listens unless it is told otherwise.
const DefaultAddress = "http://127.0.0.1:4646"

// Config says which agent to talk to, and how. The zero value is the agent on this machine.
type Config struct {
	Address   string // http://, https:// or unix:// ; empty: DefaultAddress
	Region    string // empty: the agent's own
	Namespace string // empty: default
	Token     string
	HTTPAuth  string // user:password of a proxy before the agent
	Headers   http.Header
	TLS       TLSConfig

	// HTTPClient replaces the client's own; TLS is then ignored.
	HTTPClient *http.Client
	// WaitTime is how long blocking queries wait unless QueryOptions says otherwise; 0 leaves it to the server.
	WaitTime time.Duration
}

// TLSConfig names the files with which an agent is verified and convinced.
type TLSConfig struct {
	CACert     string // a PEM file
	CAPath     string // a folder of PEM files
	ClientCert string
	ClientKey  string
	ServerName string // checked instead of the address's host
	Insecure   bool   // do not verify the agent at all
}

// ConfigFromEnv reads the NOMAD_* variables through getenv (os.Getenv; a test's map). Flags override its fields.
func ConfigFromEnv(getenv func(string) string) Config {
	cfg := Config{
		Address:   getenv("NOMAD_ADDR"),
		Region:    getenv("NOMAD_REGION"),
		Namespace: getenv("NOMAD_NAMESPACE"),
		Token:     getenv("NOMAD_TOKEN"),
		HTTPAuth:  getenv("NOMAD_HTTP_AUTH"),
		TLS: TLSConfig{
			CACert:     getenv("NOMAD_CACERT"),
			CAPath:     getenv("NOMAD_CAPATH"),
			ClientCert: getenv("NOMAD_CLIENT_CERT"),
			ClientKey:  getenv("NOMAD_CLIENT_KEY"),
			ServerName: getenv("NOMAD_TLS_SERVER_NAME"),
		},
	}
	// Whatever is no truth value leaves the agent verified.
	cfg.TLS.Insecure, _ = strconv.ParseBool(getenv("NOMAD_SKIP_VERIFY"))
	return cfg
}

// baseURL checks the address and gives the URL requests are made to and, for unix://, the socket's path.
func (c *Config) baseURL() (base *url.URL, socket string, err error) {
	address := c.Address
	if address == "" {
		address = DefaultAddress
	}
	if path, ok := strings.CutPrefix(address, "unix://"); ok {
		if path == "" {
			return nil, "", fmt.Errorf("invalid address %q: a unix address needs a path", address)
		}
		return &url.URL{Scheme: "http", Host: "127.0.0.1"}, path, nil
	}
	base, err = url.Parse(address)
	if err != nil {
		return nil, "", fmt.Errorf("invalid address %q: %w; expected http://HOST:PORT, https://HOST:PORT or unix://PATH", address, err)
	}
	if (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" {
		return nil, "", fmt.Errorf("invalid address %q: expected http://HOST:PORT, https://HOST:PORT or unix://PATH", address)
	}
	base.Path = strings.TrimSuffix(base.Path, "/")
	return base, "", nil
}

// clientConfig reads the named files.
func (t *TLSConfig) clientConfig() (*tls.Config, error) {
	cfg := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         t.ServerName,
		InsecureSkipVerify: t.Insecure, // asked for by the user
	}
	if (t.ClientCert == "") != (t.ClientKey == "") {
		return nil, fmt.Errorf("a client certificate and its key must be given together")
	}
	if t.ClientCert != "" {
		cert, err := tls.LoadX509KeyPair(t.ClientCert, t.ClientKey)
		if err != nil {
			return nil, fmt.Errorf("load client certificate: %w", err)
		}
		cfg.Certificates = []tls.Certificate{cert}
	}
	files, err := t.authorities()
	if err != nil || len(files) == 0 {
		return cfg, err
	}
	cfg.RootCAs = x509.NewCertPool()
	for _, file := range files {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read certificate authority: %w", err)
		}
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read certificate authority %q: no certificate in it", file)
		}
	}
	return cfg, nil
}

// authorities lists the PEM files of CACert and CAPath.
func (t *TLSConfig) authorities() ([]string, error) {
	if t.CACert != "" {
		return []string{t.CACert}, nil
	}
	if t.CAPath == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(t.CAPath)
	if err != nil {
		return nil, fmt.Errorf("read certificate authorities: %w", err)
	}
	var files []string
	for _, entry := range entries {
		if !entry.IsDir() {
			files = append(files, filepath.Join(t.CAPath, entry.Name()))
		}
	}
	return files, nil
}
