package structs

// The messages of an exec session: JSON over a websocket, one message a frame, as the public API has them.

// ExecStream is a piece of one stream of an exec session, or its end.
type ExecStream struct {
	Data  []byte `json:"data,omitempty"`
	Close bool   `json:"close,omitempty"`
}

// TerminalSize is how large the terminal of a session is, in characters.
type TerminalSize struct {
	Height int `json:"height,omitempty"`
	Width  int `json:"width,omitempty"`
}

// ExecInput is what the user of a session sends. One without any field only tells that he is still there.
type ExecInput struct {
	Stdin   *ExecStream   `json:"stdin,omitempty"`
	TTYSize *TerminalSize `json:"tty_size,omitempty"`
}

// ExecOutput is what a session answers. The one with Exited is the last.
type ExecOutput struct {
	Stdout *ExecStream `json:"stdout,omitempty"`
	Stderr *ExecStream `json:"stderr,omitempty"`
	Exited bool        `json:"exited,omitempty"`
	Result *ExecResult `json:"result,omitempty"`
}

// ExecResult is how the command of a session ended: its exit code, or 128 and the number of the signal that killed it.
type ExecResult struct {
	ExitCode int `json:"exit_code"`
}

// ExecHandshake is the first message of a session that was asked for with ws_handshake, by browsers, which cannot set
// the header of a token.
type ExecHandshake struct {
	Version   int    `json:"version"`
	AuthToken string `json:"auth_token"`
}
