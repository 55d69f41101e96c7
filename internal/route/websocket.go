package route

import (
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gorilla/websocket"

	"github.com/nomadlite/nomadlite/structs"
)

// closeBase is added to a status of HTTP to make a code for closing a websocket, in the range that is free for
// applications: 4404 is not found.
const closeBase = 4000

// CloseTime bounds how long the last message of a websocket may take to be sent, and the other side to close after it.
const CloseTime = 5 * time.Second

// webSocket wraps the handler of a row that upgrades.
func webSocket(entry Callers, handle Handler) Handler {
	return func(w http.ResponseWriter, r *Request) error {
		if !websocket.IsWebSocketUpgrade(r.Request) {
			return structs.Errorf(structs.CodeInvalid, "this is a websocket: ask for an upgrade to one")
		}
		if entry == Public && !sameOrigin(r.Request) {
			return structs.Errorf(structs.CodePermission, "a page of another origin may not open this websocket")
		}
		err := handle(w, r)
		if a, ok := w.(*answer); err == nil || !ok || a.wrote || a.hijacked {
			return err
		}
		conn, upgradeErr := Upgrade(w, r)
		if upgradeErr != nil {
			return nil // the upgrade has answered
		}
		CloseWebSocket(conn, err)
		return nil
	}
}

// sameOrigin says whether a browser's page that opens a websocket came from the same host; others than browsers tell no
// origin.
func sameOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && strings.EqualFold(u.Host, r.Host)
}

// Upgrade makes the request's connection a websocket. An error has been answered.
func Upgrade(w http.ResponseWriter, r *Request) (*websocket.Conn, error) {
	u := websocket.Upgrader{ReadBufferSize: 4 << 10, WriteBufferSize: 4 << 10, HandshakeTimeout: CloseTime,
		CheckOrigin: func(*http.Request) bool { return true }} // the public port has looked
	return u.Upgrade(w, r.Request, nil)
}

// CloseWebSocket ends a websocket that nobody else reads: with the text of err, shortened to what fits, or normally for
// none. It waits a little for the other side to close too: a connection that is closed with unread messages is reset, and
// what was sent last is lost with it.
func CloseWebSocket(conn *websocket.Conn, err error) {
	WriteClose(conn, err)
	_ = conn.SetReadDeadline(time.Now().Add(CloseTime))
	for {
		if _, _, err := conn.NextReader(); err != nil {
			break
		}
	}
	_ = conn.Close()
}

// WriteClose sends the last message of a websocket.
func WriteClose(conn *websocket.Conn, err error) {
	code, text := websocket.CloseNormalClosure, ""
	if err != nil {
		code, text = closeBase+structs.ErrorCode(err).HTTPStatus(), shorten(err.Error())
	}
	_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, text), time.Now().Add(CloseTime))
}

// shorten cuts text to the bytes of a control frame, less its code, and not within a character.
func shorten(text string) string {
	const most = 123
	if len(text) <= most {
		return text
	}
	text = text[:most]
	for !utf8.ValidString(text) && len(text) > most-utf8.UTFMax {
		text = text[:len(text)-1]
	}
	return text
}
