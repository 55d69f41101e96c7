package endpoint

import (
	"net/http"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/structs"
)

// aclRoutes answer as the public API does while access control is off.
func aclRoutes() []route.Route {
	paths := []string{
		"policies", "policy/{name}", "policy/self", "token/onetime", "token/onetime/exchange", "bootstrap", "tokens",
		"token", "token/self", "token/{accessor_id}", "roles", "role", "role/name/{name}", "role/{id}", "auth-methods",
		"auth-method", "auth-method/{name}", "binding-rules", "binding-rule", "binding-rule/{id}", "oidc/auth-url",
		"oidc/complete-auth", "login", "identity/client-introduction-token",
	}
	var rows []route.Route
	for _, path := range paths {
		rows = append(rows, route.Route{
			Path: "/v1/acl/" + path, ServedBy: route.Any, Callers: route.Public,
			Handle: func(http.ResponseWriter, *route.Request) error {
				return structs.Errorf(structs.CodeInvalid, "ACL support disabled")
			},
		})
	}
	return rows
}
