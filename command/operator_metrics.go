package command

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/nomadlite/nomadlite/api"
)

func operatorMetrics() *spec {
	return &spec{name: "operator metrics", args: "", synopsis: "Show the figures of the agent", client: true,
		help: "Shows the figures of the agent that is asked, as GET /v1/metrics gives them.", maxArgs: 0,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			var pretty, asJSON bool
			var format, tmpl string
			fs.BoolVar(&pretty, "pretty", false, "Print JSON over several lines.")
			fs.BoolVar(&asJSON, "json", false, "Print JSON over several lines.")
			fs.StringVar(&format, "format", "", "`FORMAT` of the answer: prometheus, or JSON when not given.")
			fs.StringVar(&tmpl, "t", "", "Print through a Go `TEMPLATE`.")
			return func(ctx context.Context, c *call) error {
				params := url.Values{}
				if format != "" {
					params.Set("format", format)
				}
				resp, err := c.client.Do(ctx, http.MethodGet, "/v1/metrics", params, nil)
				if err != nil {
					return fmt.Errorf("error querying metrics: %s", api.Text(err))
				}
				defer resp.Body.Close()
				if format == "" && (pretty || asJSON || tmpl != "") {
					var figures any
					if err := json.NewDecoder(resp.Body).Decode(&figures); err != nil {
						return fmt.Errorf("error reading metrics: %w", err)
					}
					_, err := data(c.out, figures, tmpl == "", tmpl)
					return err
				}
				if _, err := io.Copy(c.out, resp.Body); err != nil {
					return fmt.Errorf("error reading metrics: %w", err)
				}
				return nil
			}
		}}
}
