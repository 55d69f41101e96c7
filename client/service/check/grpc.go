package check

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// The health protocol of gRPC is one call over HTTP/2: the request is a message with one string, the answer one with one
// enumeration. Both have a prefix of 5 bytes: whether it is compressed, and its length.
const (
	grpcPath    = "/grpc.health.v1.Health/Check"
	grpcPrefix  = 5
	grpcServing = 1
)

// probeGRPC asks whether a service, or with no name the server, is serving.
func probeGRPC(ctx context.Context, s *Spec) Outcome {
	protocols := new(http.Protocols)
	scheme := "http"
	if s.Check.GRPCUseTLS {
		scheme = "https"
		protocols.SetHTTP2(true)
	} else {
		protocols.SetUnencryptedHTTP2(true)
	}
	transport := &http.Transport{TLSClientConfig: s.tls(), Protocols: protocols, MaxResponseHeaderBytes: 64 << 10}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, scheme+"://"+s.Address+grpcPath,
		bytes.NewReader(grpcRequest(s.Check.GRPCService)))
	if err != nil {
		return failed(err)
	}
	req.Header.Set("Content-Type", "application/grpc")
	req.Header.Set("Te", "trailers")
	req.Header.Set("User-Agent", "nomadlite-check")
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return failed(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return failed(fmt.Errorf("grpc: the answer has the HTTP status %s", resp.Status))
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxOutput))
	if err != nil {
		return failed(err)
	}
	if err := grpcStatus(resp); err != nil {
		return failed(err)
	}
	status, err := grpcAnswer(body)
	if err != nil {
		return failed(err)
	}
	if status != grpcServing {
		return Outcome{Verdict: Failed, Output: "nomad: grpc " + grpcStatusName(status)}
	}
	return Outcome{Output: "nomad: grpc ok"}
}

// grpcRequest is the message with field 1, the service.
func grpcRequest(service string) []byte {
	var message []byte
	if service != "" {
		message = binary.AppendUvarint([]byte{1<<3 | 2}, uint64(len(service)))
		message = append(message, service...)
	}
	out := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message)))
	return append(out, message...)
}

// grpcStatus reads the call's own status, which comes after the message, or in its place.
func grpcStatus(resp *http.Response) error {
	from := resp.Trailer
	if from.Get("Grpc-Status") == "" {
		from = resp.Header
	}
	switch code := from.Get("Grpc-Status"); code {
	case "0":
		return nil
	case "":
		return errors.New("grpc: the answer is none of gRPC")
	case "5":
		return errors.New("grpc: the server knows no such service")
	case "12":
		return errors.New("grpc: the server does not offer the health protocol")
	default:
		text := from.Get("Grpc-Message")
		if plain, err := url.PathUnescape(text); err == nil {
			text = plain
		}
		return fmt.Errorf("grpc: status %s: %s", code, text)
	}
}

// grpcAnswer reads field 1 of the message, and passes over all others.
func grpcAnswer(body []byte) (uint64, error) {
	broken := errors.New("grpc: the answer is damaged")
	if len(body) < grpcPrefix || body[0] != 0 {
		return 0, broken
	}
	n := binary.BigEndian.Uint32(body[1:])
	body = body[grpcPrefix:]
	if uint64(n) > uint64(len(body)) {
		return 0, broken
	}
	var status uint64
	for body = body[:n]; len(body) > 0; {
		key, used := binary.Uvarint(body)
		if used <= 0 {
			return 0, broken
		}
		body = body[used:]
		var value uint64
		size := uint64(0)
		switch key & 7 {
		case 0:
			if value, used = binary.Uvarint(body); used <= 0 {
				return 0, broken
			}
			size = uint64(used)
		case 1:
			size = 8
		case 2:
			length, used := binary.Uvarint(body)
			if used <= 0 || length > uint64(len(body)) {
				return 0, broken
			}
			size = uint64(used) + length
		case 5:
			size = 4
		default:
			return 0, broken
		}
		if size > uint64(len(body)) {
			return 0, broken
		}
		body = body[size:]
		if key == 1<<3 {
			status = value
		}
	}
	return status, nil
}

func grpcStatusName(status uint64) string {
	switch status {
	case 0:
		return "UNKNOWN"
	case 2:
		return "NOT_SERVING"
	case 3:
		return "SERVICE_UNKNOWN"
	}
	return fmt.Sprintf("status %d", status)
}

var _ Prober = Probes{}
