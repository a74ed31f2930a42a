package serve

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"infill/internal/lines"
	"infill/internal/rawjson"
)

// Problem is the form of all errors that clients get, as in Hugging Face's API.
type Problem struct {
	Message string `json:"error" doc:"What is wrong, and what to do."`
	status  int
	retry   int   // seconds after which the same request may fare better; 0 stands for 1
	cause   error // written to the server's log only
}

// unfit returns a Problem for what this server cannot or may not do.
func unfit(format string, args ...any) *Problem {
	return &Problem{status: http.StatusUnprocessableEntity, Message: fmt.Sprintf(format, args...)}
}

var (
	_ huma.StatusError       = (*Problem)(nil)
	_ huma.ContentTypeFilter = (*Problem)(nil)
	_ huma.HeadersError      = (*Problem)(nil)
)

func (p *Problem) Error() string { return lines.Short(p.Message) }

func (p *Problem) MarshalJSON() ([]byte, error) {
	return rawjson.Encode(map[string]string{"error": p.Error()})
}

func (p *Problem) GetStatus() int            { return p.status }
func (p *Problem) ContentType(string) string { return "application/json" }
func (p *Problem) GetHeaders() http.Header {
	if p.status == http.StatusTooManyRequests || p.status == http.StatusServiceUnavailable {
		return http.Header{"Retry-After": {strconv.Itoa(max(1, p.retry))}}
	}
	return nil
}

// Unwrap returns the cause of an internal error; nil for other problems.
func (p *Problem) Unwrap() error { return p.cause }

const lateBody = "the request did not come within its time"

func init() {
	// In the whole program, huma's errors are Problems.
	huma.NewError = func(status int, message string, details ...error) huma.StatusError {
		var own huma.StatusError
		for _, d := range details { // one at most, as huma checks no body
			if errors.As(d, &own) {
				return own
			}
			message = d.Error()
		}
		if status == http.StatusRequestTimeout {
			message = lateBody
		}
		return &Problem{status: status, Message: message}
	}
}

// plainJSON writes JSON without escapes for HTML. It reads nothing: parse does.
var plainJSON = huma.Format{Marshal: writeLine}

// writeLine writes v as a line of JSON. A client that left wants no answer:
// huma would answer the failed write with another status.
func writeLine(w io.Writer, v any) error {
	text, err := rawjson.Encode(v)
	if err != nil {
		return err
	}
	_, _ = w.Write(append(text, '\n'))
	return nil
}

func writeProblem(w http.ResponseWriter, p *Problem) {
	w.Header().Set("Content-Type", "application/json")
	maps.Copy(w.Header(), p.GetHeaders())
	w.WriteHeader(p.status)
	writeLine(w, p) //nolint:errcheck // a Problem can always be encoded
}
